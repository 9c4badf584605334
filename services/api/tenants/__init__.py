"""Tenants and their rules for policies."""
