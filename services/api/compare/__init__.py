"""Comparison with KEDA's `kafka` trigger."""
