"""The API: administers tenants, clusters, monitors, keys and namespaces, and explains decisions."""
