"""Source of data sets in Spark, by Spark Connect: SQL over them runs there. Imports no gRPC."""

from mplang_spark.source import SparkTables

__all__ = ["SparkTables"]
