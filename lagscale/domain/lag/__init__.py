"""From offsets to lag: samples, rounds and time lag."""
