"""The tables of the metadata log with Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_records_tables import read_table
from kafka_records_tables.spark import read_table as read_by_spark

FOLDER = "__cluster_metadata-0"
FIRST = 643
"""The first offset of the copy of the log: earlier records are in a checkpoint."""


@pytest.mark.parametrize("name", ["topics", "partitions", "configs", "brokers", "features"])
def test_spark_gives_the_same_rows(name: str, spark: SparkSession, data_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(data_dir / "metadata/kafka-4.3" / FOLDER, tmp_path / FOLDER)
    for file in (tmp_path / FOLDER).glob("*.log"):
        if int(file.stem) < FIRST:
            file.unlink()
    found = read_by_spark(spark, name, str(tmp_path)).toArrow().to_pylist()
    here = read_table(name, tmp_path).table.to_pylist()
    assert len(here) > 0
    assert sorted(map(str, found)) == sorted(map(str, here))
