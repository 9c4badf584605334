"""Polling of one slot against a shared deadline, and the rounds that come of it."""
