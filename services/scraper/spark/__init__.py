"""The Spark query and its data source. Every module here imports pyspark."""
