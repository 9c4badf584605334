"""Health of tenants and of the process."""
