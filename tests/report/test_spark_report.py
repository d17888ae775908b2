"""The report on the captured topics with Spark equals that of the local engine: the same rows and the same findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_records_tables.report.making import REPORTED, read_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.matrix]


def test_the_report_by_spark_is_the_local_one(spark: SparkSession, topics_dir: Path) -> None:
    """This compares every table, all findings and numbers, and the findings of the reading."""
    segments = topics_dir / "kafka-4.3" / "segments"
    local, report = read_report(segments, processes=1), read_report(segments, spark=spark)
    assert tuple(report.tables) == REPORTED == tuple(local.tables)
    for name in REPORTED:
        assert report.tables[name].equals(local.tables[name]), name
    assert report.findings == local.findings
    assert (report.numbers, report.missing) == (local.numbers, local.missing)
    assert sorted(map(str, report.reading)) == sorted(map(str, local.reading))
    assert replace(report.request, engine="local", made_timestamp_ms=0) == replace(local.request, made_timestamp_ms=0)
