"""Log segment files and columns: numpy and pyarrow, no Spark, no msgspec, and no knowledge of any single record."""
