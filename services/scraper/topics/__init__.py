"""Topic discovery for monitors that do not list their topics."""
