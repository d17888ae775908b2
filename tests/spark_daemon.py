"""PySpark's daemon for the session that tests share. It imports the modules of its workers once.

A worker is a fork of the daemon. PySpark's own daemon has imported nothing, so each worker takes a second to import
modules, and each of its tasks ends with a garbage collection over everything that was imported. Sessions in separate
processes use PySpark's own daemon.
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
    """Import the modules, then run PySpark's daemon. The argument is the module that its workers run."""
    for name in (*sys.argv[1:], *_IMPORTED):
        with suppress(ImportError):  # older releases of PySpark lack some
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
