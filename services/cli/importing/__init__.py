"""From KEDA's `kafka` triggers to monitors: reads manifests, writes registrations, ScaledObjects and a report."""
