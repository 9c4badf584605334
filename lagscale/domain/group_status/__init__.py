"""Status of consumer groups and partitions. Reported only; it changes no verdict."""
