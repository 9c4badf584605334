"""The scaler: answers KEDA over gRPC; stateless but for caches."""
