"""Column functions over binary columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records.schemas.consumer_offsets import OFFSET_COMMIT_VALUE, RECORDS
from kafka_records.spark.consumer_offsets import from_offset_commit_key, from_offset_commit_value
from kafka_records.spark.consumer_protocol import from_consumer_protocol_subscription
from kafka_records.spark.transaction_state import from_transaction_log_value
from kafka_records_spark.functions import from_key, from_message, from_value

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

KEY = bytes.fromhex("0001" "0001" "67" "0001" "74" "00000003")
VALUE = bytes.fromhex("0003" "000000000000002a" "ffffffff" "0000" "0000000000000005")
TOPIC_ID = "1dGbNZA8RiO6Ja5wxwCVrA"
VALUE_4 = bytes.fromhex("0004" "000000000000002a" "ffffffff" "01" "0000000000000005" "01" "00" "10") + bytes.fromhex(
    "d5d19b35903c4623ba25ae70c70095ac"
)


def _one(spark: SparkSession, data: bytes | None, column: Any) -> Any:
    frame: DataFrame = spark.createDataFrame([(data,)], "data binary")
    row: Row = frame.select(column.alias("decoded")).collect()[0]
    return None if row.decoded is None else row.decoded.asDict(recursive=True)


def test_keys(spark: SparkSession) -> None:
    expected = {"group": "g", "topic": "t", "partition": 3}
    assert _one(spark, KEY, from_offset_commit_key("data")) == expected


def test_values_with_a_topic_id(spark: SparkSession) -> None:
    decoded = _one(spark, VALUE_4, from_offset_commit_value("data", mode="FAILFAST"))
    assert (decoded["offset"], decoded["topic_id"]) == (42, TOPIC_ID)


def test_many_values_at_once(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(KEY, VALUE), (KEY, None), (KEY, VALUE[:4]), (b"\x00\x02\x00\x01g", VALUE), (None, VALUE), (b"\x00", b"\x00")],
        "key binary, value binary",
    )
    rows = frame.select(
        from_key("key", RECORDS[1]).getField("group").alias("group"),
        from_value(frame.value, RECORDS[1]).getField("offset").alias("offset"),
        from_message(frame.value, OFFSET_COMMIT_VALUE).getField("commit_timestamp").alias("at"),
    ).collect()
    assert [tuple(row) for row in rows] == [
        ("g", 42, 5),
        ("g", None, None),
        ("g", None, None),
        (None, 42, 5),
        (None, 42, 5),
        (None, None, None),
    ]


def test_a_message_with_and_without_version_before_it(spark: SparkSession) -> None:
    body = bytes.fromhex("00000001" "0001" "61" "ffffffff")
    expected = {"topics": ["a"], "user_data": None, "owned_partitions": [], "generation_id": -1, "rack_id": None}
    assert _one(spark, body, from_consumer_protocol_subscription("data", 0)) == expected
    assert _one(spark, b"\x00\x00" + body, from_consumer_protocol_subscription("data")) == expected


def test_nested_values(spark: SparkSession) -> None:
    value = bytes.fromhex("0000" "0000000000000007" "0000" "00000064" "01" "00000001" "0001" "61" "00000001" "00000002")
    value += bytes(16)
    decoded = _one(spark, value, from_transaction_log_value("data"))
    assert decoded["transaction_partitions"] == [{"topic": "a", "partition_ids": [2]}]


@pytest.mark.parametrize(
    ("data", "function", "message"),
    [
        (VALUE[:4], from_value, "BufferUnderflow: OffsetCommitValue v3 at byte 0: offset needs 8 bytes, 2 left"),
        (b"\x00", from_value, "MissingValueVersion: the value has 1 byte, a value starts with an int16 version"),
        (b"\x00", from_key, "MissingRecordType: the key has 1 byte, a key starts with an int16 record type"),
        (b"\x00\x09", from_value, "UnsupportedVersion: OffsetCommitValue has no version 9, it has the versions 0 to 4"),
    ],
)
def test_failfast_says_what_is_wrong(
    spark: SparkSession, data: bytes, function: Callable[..., Column], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        _one(spark, data, function("data", RECORDS[1], "FAILFAST"))


def test_failfast_lets_other_record_types_pass(spark: SparkSession) -> None:
    assert _one(spark, b"\x00\x02\x00\x01g", from_key("data", RECORDS[1], "FAILFAST")) is None


def test_a_column_cannot_leave_rows_out(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="mode 'DROPMALFORMED' is none of PERMISSIVE, FAILFAST"):
        from_value("data", RECORDS[1], "DROPMALFORMED")
