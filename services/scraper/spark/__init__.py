"""The stream: source, sink, rows and query. Every module here imports pyspark."""
