"""The reference of the verdict: from rounds and a policy to a verdict, a value and an activity."""
