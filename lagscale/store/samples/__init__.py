"""Samples of lag: their columns, written by the scraper, read by the API."""
