"""Source of data sets in Spark, by Spark Connect: SQL runs there. Imports no gRPC."""
