"""From registrations to answers, and the log of decisions."""
