"""What explanations and comparisons compute: decisions against samples, KEDA's trigger, replicas."""
