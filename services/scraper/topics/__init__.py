"""Discovery of topics for monitors that do not list them."""
