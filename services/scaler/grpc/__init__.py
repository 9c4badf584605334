"""The gRPC edge: server, calls, streams, certificates, status codes."""
