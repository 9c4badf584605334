"""The processes of Lagscale; each speaks to the store and none knows another."""
