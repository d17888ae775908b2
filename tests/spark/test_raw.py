"""Converting rows of other forms to the raw schema, and the filters that run before Python."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_engine.spark.errors import MissingColumn
from kafka_records_engine.spark.framing_in_jvm import has_record_type, is_unframed
from kafka_records_engine.spark.raw import RAW_COLUMNS, RAW_SCHEMA, as_raw_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FROM_KAFKA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
)


def _from_kafka(spark: SparkSession) -> DataFrame:
    instant = datetime(2026, 11, 21, 2, 14, 14, 747_000, tzinfo=UTC)
    rows: list[Any] = [
        (bytearray(b"k"), bytearray(b"v"), "t", 3, 12, instant, 0),
        (bytearray(b"k"), None, "t", 3, 13, None, 1),
        (None, None, "t", 3, 14, None, -1),
    ]
    return spark.createDataFrame(rows, FROM_KAFKA)


def test_rows_of_sparks_kafka_source(spark: SparkSession) -> None:
    raw = as_raw_rows(_from_kafka(spark))

    assert raw.schema.simpleString() == RAW_SCHEMA.simpleString()
    nothing = {"leader_epoch": None, "base_offset": None, "producer_id": None, "producer_epoch": None, "control": None}
    first, second, third = (row.asDict() for row in raw.orderBy("offset").collect())
    assert first == nothing | {
        "topic": "t",
        "partition": 3,
        "offset": 12,
        "timestamp_ms": 1_795_227_254_747,
        "timestamp_type": "create",
        "key": b"k",
        "value": b"v",
        "transaction": None,
    }
    assert (second["value"], second["timestamp_ms"], second["timestamp_type"]) == (None, None, "log_append")
    assert (third["key"], third["timestamp_type"]) == (None, None)


def test_raw_rows_stay_as_they_are(spark: SparkSession) -> None:
    row = ("t", 3, 12, 5, "create", b"k", b"v", 1, 10, 1000, 2, "open", "commit")
    (again,) = as_raw_rows(spark.createDataFrame([row], RAW_SCHEMA)).collect()
    assert tuple(again) == row


def test_keys_and_values_alone_need_a_topic(spark: SparkSession) -> None:
    saved = spark.createDataFrame([(b"k", b"v")], "key binary, value binary")

    (row,) = as_raw_rows(saved, topic="__consumer_offsets").collect()

    assert (row.topic, row.partition, row.offset, row.transaction) == ("__consumer_offsets", None, None, None)
    with pytest.raises(MissingColumn) as failure:
        as_raw_rows(saved)
    assert str(failure.value) == "the DataFrame has no column 'topic': pass the topic of the records as topic=…"


def test_a_time_of_another_type(spark: SparkSession) -> None:
    """Spark would cast a TIMESTAMP to seconds."""
    saved = spark.createDataFrame([(b"k", b"v", 1_795_227_155_929)], "key binary, value binary, ms bigint")
    rows = saved.select("key", "value", F.timestamp_millis("ms").alias("timestamp_ms"))
    assert as_raw_rows(rows, topic="t").first()["timestamp_ms"] == 1_795_227_155_929  # type: ignore[index]


@pytest.mark.parametrize("missing", ["key", "value"])
def test_keys_and_values_have_to_be_there(spark: SparkSession, missing: str) -> None:
    with pytest.raises(MissingColumn) as failure:
        as_raw_rows(_from_kafka(spark).drop(missing))
    assert (
        str(failure.value)
        == f"the DataFrame has no column '{missing}': rows without it cannot be converted to raw rows"
    )


def test_named_columns_are_not_looked_up(spark: SparkSession) -> None:
    raw = as_raw_rows(_from_kafka(spark), topic="other", columns=["key", "value", "offset"])
    rows = raw.orderBy("offset").collect()
    assert [(row.topic, row.partition, row.offset) for row in rows] == [
        ("other", None, 12),
        ("other", None, 13),
        ("other", None, 14),
    ]


def test_filters_by_record_type(spark: SparkSession) -> None:
    keys = [b"\x00\x01a", b"\x00\x02a", b"\x00\x01", b"\x00", b"", None, b"\xff\xff", b"\x01\x00"]
    rows: list[Any] = [(offset, key, None) for offset, key in enumerate(keys)]
    rows.append((100, b"\x00\x01", "commit"))
    keyed = spark.createDataFrame(rows, "offset long, key binary, control string")
    raw = as_raw_rows(keyed.selectExpr("*", "cast(null as binary) as value"), topic="t")

    def offsets(condition: Any) -> list[int]:
        return [row.offset for row in raw.where(condition).orderBy("offset").collect()]

    assert offsets(has_record_type([1])) == [0, 2]
    assert offsets(has_record_type([2, -1])) == [1, 6]
    assert offsets(has_record_type([])) == []
    assert offsets(is_unframed()) == [3, 4, 5]


def test_the_schema_is_that_of_the_segment_reader() -> None:
    from kafka_records_engine.log.reading.segment_files import RAW_SCHEMA as ARROW_SCHEMA

    assert ARROW_SCHEMA.names == list(RAW_COLUMNS)
    assert RAW_SCHEMA.simpleString() == (
        "struct<topic:string,partition:int,offset:bigint,timestamp_ms:bigint,timestamp_type:string,key:binary,"
        "value:binary,leader_epoch:int,base_offset:bigint,producer_id:bigint,producer_epoch:smallint,"
        "transaction:string,control:string>"
    )
