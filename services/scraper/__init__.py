"""The scraper: polls Kafka consumer groups through Spark and writes lag samples."""
