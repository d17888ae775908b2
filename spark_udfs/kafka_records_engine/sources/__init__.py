"""Sources of records. Each source consists of log partitions, which return raw rows in log order."""

from kafka_records_engine.sources.protocol import PLACE_COLUMNS, Context, Counts, LogPartition, Source

__all__ = ["PLACE_COLUMNS", "Context", "Counts", "LogPartition", "Source"]
