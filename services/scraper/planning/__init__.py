"""Planning of ticks: which groups are polled, and in which slots. Pure."""
