"""Which groups are polled at a tick, and in which slots. Pure."""
