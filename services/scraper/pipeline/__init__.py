"""The only room that knows Spark: source, transform, sink and query of the scraper."""
