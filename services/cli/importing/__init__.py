"""Import of KEDA manifests: from `kafka` triggers to monitors, ScaledObjects and a report."""
