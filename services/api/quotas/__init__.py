"""Quotas of tenants."""
