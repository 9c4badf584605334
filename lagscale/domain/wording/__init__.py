"""All sentences that people read, and nothing else."""
