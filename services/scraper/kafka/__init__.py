"""Kafka clients and requests: the only package of the scraper that imports confluent_kafka."""
