"""Freezing scaling."""
