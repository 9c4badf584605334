"""Explanations of points in time."""
