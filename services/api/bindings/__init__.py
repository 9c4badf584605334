"""Bindings of Kubernetes namespaces to tenants."""
