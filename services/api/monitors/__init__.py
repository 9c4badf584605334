"""Monitors, one by one and in bulk."""
