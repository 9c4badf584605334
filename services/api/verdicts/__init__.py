"""Verdicts, samples and health of monitors."""
