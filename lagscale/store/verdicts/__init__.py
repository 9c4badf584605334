"""Verdicts by SQL, and judgments of past instants."""
