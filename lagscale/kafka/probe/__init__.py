"""Probes one cluster in a process of its own: connection, authentication, access."""
