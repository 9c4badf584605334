"""The engine: leader, workers and writes, as they run in Spark's processes. Imports no pyspark."""
