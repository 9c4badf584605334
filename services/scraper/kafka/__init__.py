"""The only room of the scraper that knows the Kafka client."""
