"""Objects in manifests: parsed, compared with the API, applied."""
