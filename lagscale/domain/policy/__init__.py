"""The policy of a monitor: its keys, its values, and what a tenant allows of them."""
