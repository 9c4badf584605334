"""Objects in files: read, compared with the API, written."""
