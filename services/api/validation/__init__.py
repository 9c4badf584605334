"""Validation of monitors before they are registered."""
