"""Generic Spark functions: they are handed schemas and know no single record.

Workers need numpy and pyarrow, never msgspec. Functions take and give DataFrames and Columns: no RDD, no reach into the
JVM, no hidden collect.
"""

try:
    import pyspark  # noqa: F401 (every module here needs it, and this is the first to be imported)
except ModuleNotFoundError as missing:
    from kafka_records_runtime.installing import with_hint

    raise with_hint(missing, "spark") from None

from kafka_records_engine.spark.modes import DROPMALFORMED, FAILFAST, PERMISSIVE, Mode

__all__ = ["DROPMALFORMED", "FAILFAST", "PERMISSIVE", "Mode"]
