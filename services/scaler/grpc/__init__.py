"""The gRPC server: calls, streams, callers, TLS, status codes."""
