"""The shared Spark session starts workers with this interpreter and this checkout."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def _where_the_worker_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import gc

    import kafka_records_runtime

    place = {"python": [sys.executable], "package": [str(kafka_records_runtime.__file__)]}
    for _ in batches:
        yield pa.RecordBatch.from_pydict({**place, "is_a_fork": [gc.get_freeze_count() > 0]})


def test_workers_run_this_interpreter_and_import_this_checkout(spark: SparkSession) -> None:
    """Workers are forks of tests/spark_daemon.py: only it has objects that garbage collection leaves out."""
    import kafka_records_runtime

    columns = "python string, package string, is_a_fork boolean"
    rows = spark.range(1, numPartitions=1).mapInArrow(_where_the_worker_runs, columns).collect()
    assert [tuple(row) for row in rows] == [(sys.executable, str(kafka_records_runtime.__file__), True)]
