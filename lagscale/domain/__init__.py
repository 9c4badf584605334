"""Pure arithmetic of lag, policy and verdict: no clock, no input or output; `now` is an argument."""
