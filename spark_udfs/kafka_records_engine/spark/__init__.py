"""Generic Spark functions, which work with any schemas passed to them.

Workers need numpy and pyarrow, but not msgspec. Functions accept and return DataFrames and Columns. They use no RDDs or
private JVM calls, and never collect rows.
"""

try:
    import pyspark  # noqa: F401 (every module here needs it, and this is the first to be imported)
except ModuleNotFoundError as missing:
    from kafka_records_runtime.text.installing import with_hint

    raise with_hint(missing, "spark") from None

from kafka_records_engine.spark.modes import DROPMALFORMED, FAILFAST, PERMISSIVE, Mode

__all__ = ["DROPMALFORMED", "FAILFAST", "PERMISSIVE", "Mode"]
