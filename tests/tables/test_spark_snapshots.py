"""Snapshots with Spark: the same rows as with processes on this machine, from `read_table` and from the data source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_tables import read_table
from kafka_records_tables.spark import register
from tests.sources.snapshot_logs import TOPIC, Logs
from tests.tables.topic import Topic
from tools.judge.cleaner import CleanedLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_spark_reads_what_the_log_has_lost(spark: SparkSession, tmp_path: Path) -> None:
    topic = Topic()
    topic.commit("gone", 1)
    topic.commit("stays", 2)
    take_snapshot(Logs((CleanedLog(topic.table(), TOPIC, 0),)), tmp_path)
    topic.commit("gone", None)
    topic.commit("new", 3)
    cleaned = topic.table().take([1, 3])
    take_snapshot(Logs((CleanedLog(cleaned, TOPIC, 3),)), tmp_path)
    register(spark, engine="python")

    for table, groups in (("current_offsets", ["new", "stays"]), ("offset_commits", ["gone", "new", "stays"])):
        local = read_table(table, tmp_path)
        assert local.table["group_id"].to_pylist() == groups
        assert read_table(table, tmp_path, spark=spark).table.equals(local.table)
        frame = spark.read.format("kafka-records").option("table", table).load(str(tmp_path))
        assert sorted(row.group_id for row in frame.collect()) == groups
    raw = spark.read.parquet(str(tmp_path))
    assert sorted((row.topic, row.partition, row.offset) for row in raw.collect()) == [(TOPIC, 0, n) for n in (0, 1, 3)]
