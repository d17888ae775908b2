"""Sources: what can be read, as log partitions that return raw rows in the order of the log."""

from kafka_records_engine.sources.protocol import PLACE_COLUMNS, Context, Counts, LogPartition, Source

__all__ = ["PLACE_COLUMNS", "Context", "Counts", "LogPartition", "Source"]
