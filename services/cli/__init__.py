"""The `lagscale` command."""
