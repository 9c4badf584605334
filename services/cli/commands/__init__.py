"""The commands of `lagscale`, one module each."""
