"""Generic Spark functions: they are handed schemas and know no single record.

Workers need numpy and pyarrow, never msgspec. Functions take and give DataFrames and Columns: no RDD, no reach into the
JVM, no hidden collect.
"""

from kafka_records_engine.spark.modes import DROPMALFORMED, FAILFAST, PERMISSIVE, Mode

__all__ = ["DROPMALFORMED", "FAILFAST", "PERMISSIVE", "Mode"]
