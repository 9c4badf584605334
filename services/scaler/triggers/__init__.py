"""From trigger metadata to resolved monitors."""
