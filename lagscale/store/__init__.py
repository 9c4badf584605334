"""The only room that knows the database."""
