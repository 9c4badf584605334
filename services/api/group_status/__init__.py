"""Status of consumer groups."""
