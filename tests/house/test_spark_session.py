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
    import kafka_records_runtime

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable], "package": [str(kafka_records_runtime.__file__)]})


def test_workers_run_this_interpreter_and_import_this_checkout(spark: SparkSession) -> None:
    import kafka_records_runtime

    rows = spark.range(1, numPartitions=1).mapInArrow(_where_the_worker_runs, "python string, package string").collect()
    assert [tuple(row) for row in rows] == [(sys.executable, str(kafka_records_runtime.__file__))]
