"""One poll of one slot: rounds against a shared deadline."""
