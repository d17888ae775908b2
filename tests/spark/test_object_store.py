"""Spark's workers read an object store and archives, with unchanged paths; no plan shows a secret."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records_engine.spark.segments import read_segments
from kafka_records_tables.spark import register
from tests.log.archives import archived
from tests.log.logs import TOPICS
from tests.object_store import KEY, SECRET, ObjectStore, object_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SEGMENTS = TOPICS / "kafka-4.3" / "segments"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with object_store() as store:
        store.put_folder("data", SEGMENTS)
        yield store


def rows(frame: DataFrame) -> list[Any]:
    return sorted(map(tuple, frame.select("topic", "partition", "offset", "key", "value").collect()))


@pytest.mark.matrix
def test_the_data_source(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    register(spark, engine="python")
    reader = spark.read.format("kafka-records")
    expected = rows(reader.load(str(SEGMENTS)))
    archive = archived(SEGMENTS, tmp_path, ".tar.gz")
    assert rows(reader.load(store.url("data", user=False, anonymous="true"))) == expected
    assert rows(reader.load([f"file://{SEGMENTS}"])) == expected
    assert rows(reader.load(f"{archive}!/var/lib/kafka/data")) == expected
    assert rows(reader.load(f"{SEGMENTS}/*")) == expected
    table = reader.option("table", "current_offsets")
    assert table.load(str(archive)).count() == table.load(str(SEGMENTS)).count() > 0


def test_secrets(spark: SparkSession, store: ObjectStore) -> None:
    register(spark, engine="python")
    with pytest.raises(Exception, match="would be readable in Spark's plans") as caught:
        spark.read.format("kafka-records").load(store.url("data")).count()
    frame = read_segments(spark, store.url("data"))
    assert frame.count() == read_segments(spark, SEGMENTS).count()
    plan = frame._jdf.queryExecution().toString()
    for text in (KEY, SECRET, "Top%2F"):
        assert text not in f"{caught.value}"
        assert text not in plan
