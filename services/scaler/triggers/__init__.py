"""From trigger metadata to registrations."""
