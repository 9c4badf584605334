"""The scaler: answers KEDA over gRPC and holds no state."""
