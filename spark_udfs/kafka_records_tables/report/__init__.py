"""Finished tables as text, JSON, CSV and Parquet: Arrow in, no Spark, nothing computed."""
