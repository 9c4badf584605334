"""Kafka clusters of tenants."""
