"""Preflight: probes of registered clusters."""
