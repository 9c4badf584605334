"""Lagscale: scales Kafka consumers on lag that lasts. The library under the services."""
