"""PySpark's daemon for the session that tests share, with what its workers import imported once.

A worker is a fork of the daemon. PySpark's own daemon has imported nothing then, so that each worker takes a second for
that, and each of its tasks ends with a search for garbage among all that was imported. Sessions that tests start in
processes of their own have PySpark's daemon.
"""

from __future__ import annotations

import gc
import importlib
import sys
from contextlib import suppress
from typing import Final

from pyspark.daemon import manager

_IMPORTED: Final = (
    "pyarrow.parquet",
    "pyspark.sql.pandas.serializers",
    "kafka_records_engine.spark.decode",
    "kafka_records_tables.spark",
    "kafka_records_tables.engines.spark_source",
    "kafka_records_tables.engines.worker",
)


def main() -> None:
    """Import, then do what PySpark's daemon does; the argument is the module that its workers run."""
    for name in (*sys.argv[1:], *_IMPORTED):
        with suppress(ImportError):  # older releases of PySpark lack some
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
