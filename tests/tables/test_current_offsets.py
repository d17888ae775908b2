"""Which record decides about an offset, on made-up topics: one group per case, one query for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_records.consumer_offsets import encode_record
from kafka_records.registry import message_class
from kafka_records_runtime.uuids import Uuid
from kafka_records_spark.errors import MissingColumn
from kafka_records_tables.current_offsets import current_offsets, remarks, undecodable
from tests.tables.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

LONG_MAX = 2**63 - 1


def _commit_at(topic: Topic, group: str, timestamp_ms: int) -> None:
    value = {"offset": 1, "metadata": "", "commit_timestamp": timestamp_ms}
    topic.add("OffsetCommit", {"group": group, "topic": "orders", "partition": 0}, value)


def _case_topic() -> Topic:
    topic = Topic()
    commit = topic.commit

    commit("last wins", 1)
    commit("last wins", 2)

    commit("deleted", 1)
    commit("deleted", None)

    commit("back after a tombstone", 1)
    commit("back after a tombstone", None)
    commit("back after a tombstone", 3)

    commit("committed transaction", 1)
    commit("committed transaction", 2, transaction="committed")

    commit("aborted transaction", 1)
    commit("aborted transaction", 2, transaction="aborted")

    commit("open transaction", 1)
    commit("open transaction", 2, transaction="open")

    commit("only open", 1, transaction="open")
    commit("only aborted", 1, transaction="aborted")

    # The marker came after the plain commit, but the value stands before it.
    commit("plain after pending", 1, transaction="committed")
    commit("plain after pending", 2)

    commit("tombstone in an aborted transaction", 1)
    commit("tombstone in an aborted transaction", None, transaction="aborted")

    commit("tombstone after pending", 1, transaction="committed")
    commit("tombstone after pending", None)

    commit("undecided", 1)
    commit("undecided", 2, transaction="unknown")

    commit("undecided, then settled", 1, transaction="unknown")
    commit("undecided, then settled", 2)

    commit("undecided, then deleted", 1, transaction="unknown")
    commit("undecided, then deleted", None, transaction="unknown")

    commit("undecided legacy, then settled", 1, record="LegacyOffsetCommit", transaction="unknown")
    commit("undecided legacy, then settled", 2)

    commit("nothing told", 1)
    commit("nothing told", 2, transaction="unknown", producer=None)
    commit("no producer", 1)
    commit("no producer", 2, transaction="unknown", producer=-1)

    commit("legacy only", 7, record="LegacyOffsetCommit")
    commit("legacy, then current", 1, record="LegacyOffsetCommit")
    commit("legacy, then current", 2)
    commit("current, then legacy", 1)
    commit("current, then legacy", 2, record="LegacyOffsetCommit")
    commit("legacy tombstone", 1)
    commit("legacy tombstone", None, record="LegacyOffsetCommit")

    # Kafka leaves bytes behind a key alone, so this is the same key.
    commit("trailing bytes", 1)
    key, value, *_ = _bytes_of("trailing bytes", 2)
    topic.add_bytes(key + b"\x00\x01", value)

    commit("twice", 5)
    topic.rows.append(topic.rows[-1])

    commit("other topic", 5)
    commit("other topic", 6, topic="__share_group_state")
    commit("only in another topic", 6, topic="orders")

    commit("two log partitions", 1, partition=0)
    commit("two log partitions", 2, partition=1)

    value_fields = {
        "offset": 9,
        "leader_epoch": 4,
        "metadata": "größe ✓",
        "commit_timestamp": 1_700_000_000_123,
        "topic_id": Uuid.from_string("M4_2Tv--T0Gv8t6piaeUcQ"),
    }
    topic.add("OffsetCommit", {"group": "all fields", "topic": "orders", "partition": 3}, value_fields)
    explicit = {"offset": 9, "metadata": "", "commit_timestamp": 5, "expire_timestamp": 6}
    topic.add("OffsetCommit", {"group": "version 1", "topic": "orders", "partition": 0}, explicit, version=1)

    _commit_at(topic, "timestamp max", LONG_MAX)
    _commit_at(topic, "timestamp min", -LONG_MAX - 1)
    _commit_at(topic, "timestamp none", -1)
    _commit_at(topic, "first instant", -62_135_596_800_000)
    _commit_at(topic, "before the first", -62_135_596_800_001)
    _commit_at(topic, "last instant", 253_402_300_799_999)
    _commit_at(topic, "after the last", 253_402_300_800_000)

    key, value, *_ = _bytes_of("broken value", 2)
    commit("broken value", 1)
    topic.add_bytes(key, value[:9])
    key, value, *_ = _bytes_of("unknown version", 2)
    commit("unknown version", 1)
    topic.add_bytes(key, b"\x00\x09" + value[2:])
    key, value, *_ = _bytes_of("broken once", 2)
    topic.add_bytes(key, value[:9])
    commit("broken once", 3)
    topic.add_bytes(b"\x00\x01\x00\x10abc", value)
    topic.add_bytes(None, value)
    topic.add_bytes(b"\x00", value)
    # A commit marker's key reads 0, 1: version 0 and kind "commit", not a record of type 0.
    topic.add_bytes(b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00", control="commit")
    return topic


def _bytes_of(group: str, offset: int) -> tuple[bytes, bytes]:
    key = message_class("OffsetCommitKey")(group=group, topic="orders", partition=0)
    value = message_class("OffsetCommitValue")(offset=offset, metadata="", commit_timestamp=0)
    key_bytes, value_bytes = encode_record(key, value, 3)
    assert value_bytes is not None
    return key_bytes, value_bytes


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    table = current_offsets(_case_topic().frame(spark))
    # Python's own dates start a day later than Spark's, and depend on the time zone of the machine.
    table = table.withColumn("commit_timestamp", table.commit_timestamp.cast("string"))
    for row in table.collect():
        found.setdefault(row.group_id, []).append(row)
    return found


@pytest.mark.parametrize(
    ("group", "offsets"),
    [
        ("last wins", [2]),
        ("deleted", []),
        ("back after a tombstone", [3]),
        ("committed transaction", [2]),
        ("aborted transaction", [1]),
        ("open transaction", [1]),
        ("only open", []),
        ("only aborted", []),
        ("plain after pending", [2]),
        ("tombstone in an aborted transaction", []),
        ("tombstone after pending", []),
        ("undecided", []),
        ("undecided, then settled", [2]),
        ("undecided, then deleted", []),
        ("undecided legacy, then settled", [2]),
        ("nothing told", [2]),
        ("no producer", [2]),
        ("legacy only", [7]),
        ("legacy, then current", [2]),
        ("current, then legacy", [2]),
        ("legacy tombstone", []),
        ("trailing bytes", [2]),
        ("twice", [5]),
        ("other topic", [5]),
        ("only in another topic", []),
        ("two log partitions", [1, 2]),
        ("broken value", []),
        ("unknown version", []),
        ("broken once", [3]),
    ],
)
def test_the_record_that_decides(rows: dict[str, list[Row]], group: str, offsets: list[int]) -> None:
    assert sorted(row.offset for row in rows.get(group, [])) == offsets


def test_every_column(rows: dict[str, list[Row]]) -> None:
    (row,) = rows["all fields"]

    place = {"log_partition": row.log_partition, "log_offset": row.log_offset}
    assert row.asDict() == {
        "group_id": "all fields",
        "topic": "orders",
        "topic_id": "M4_2Tv--T0Gv8t6piaeUcQ",
        "partition": 3,
        "offset": 9,
        "leader_epoch": 4,
        "metadata": "größe ✓",
        "commit_timestamp": "2023-11-14 22:13:20.123",
        "commit_timestamp_ms": 1_700_000_000_123,
        **place,
    }
    assert place["log_partition"] == 0
    assert place["log_offset"] > 0


def test_what_a_record_does_not_name_is_null(rows: dict[str, list[Row]]) -> None:
    (row,) = rows["version 1"]
    assert (row.topic_id, row.leader_epoch, row.commit_timestamp_ms) == (None, None, 5)
    (row,) = rows["legacy only"]
    assert (row.topic_id, row.leader_epoch, row.metadata) == (None, None, "")


@pytest.mark.parametrize(
    ("group", "timestamp"),
    [
        ("timestamp max", None),
        ("timestamp min", None),
        ("timestamp none", "1969-12-31 23:59:59.999"),
        ("first instant", "0001-01-01 00:00:00"),
        ("before the first", None),
        ("last instant", "9999-12-31 23:59:59.999"),
        ("after the last", None),
    ],
)
def test_timestamps_outside_the_years_1_to_9999_are_null(
    rows: dict[str, list[Row]], group: str, timestamp: str | None
) -> None:
    (row,) = rows[group]
    assert row.commit_timestamp == timestamp


def test_records_that_could_not_be_used_are_shown(spark: SparkSession) -> None:
    topic = _case_topic()
    found = undecodable(topic.frame(spark)).orderBy("log_offset").collect()

    last = len(topic.rows) - 1
    offsets = [row.log_offset for row in found]
    assert offsets[-3:] == [last - 3, last - 2, last - 1]
    left_out = "its row is left out: an older offset would be wrong"
    not_used = "not used: nobody can tell whose offset it is"
    assert [(row.record_type, row.error.reason, row.error.message, row.consequence) for row in found] == [
        (
            1,
            "UndecidedTransaction",
            "the commit of group undecided for orders-0: nobody can tell how the transaction of producer 1000 ended, "
            "its marker was not read",
            "its row is left out: this offset or an older one may be the committed one",
        ),
        (
            1,
            "BufferUnderflow",
            "OffsetCommitValue v3 at byte 0: offset needs 8 bytes, 7 left",
            left_out,
        ),
        (
            1,
            "UnsupportedVersion",
            "OffsetCommitValue has no version 9, it has the versions 0 to 4",
            left_out,
        ),
        (
            1,
            "BufferUnderflow",
            "OffsetCommitKey v0 at byte 2: group needs 16 bytes, 3 left",
            not_used,
        ),
        (None, "NullKey", "the record has no key", not_used),
        (
            None,
            "MissingRecordType",
            "the key has 1 byte, a key starts with an int16 record type",
            not_used,
        ),
    ]
    for row in found[1:]:
        assert bytes(row.raw_value)
        assert (row.raw_key is None) == (row.error.reason == "NullKey")


def test_what_was_read_as_kafka_reads_it_is_remarked_on(spark: SparkSession) -> None:
    topic = _case_topic()
    key, value = _bytes_of("lenient", 1)
    lenient = topic.add_bytes(key.replace(b"orders", b"order\xff") + b"\x01", value + b"\x02\x03")
    found = {row.log_offset: row for row in remarks(topic.frame(spark)).where("error is null").collect()}
    trailing = next(offset for offset, row in enumerate(topic.rows) if row[5].endswith(b"\x00\x01"))
    assert {offset: (row.consequence, row.bytes_left, row.leniencies) for offset, row in found.items()} == {
        trailing: (None, 2, []),
        lenient: (None, 3, ["invalid_utf8"]),
    }


def test_rows_of_another_shape_are_refused_at_once(spark: SparkSession) -> None:
    foreign: Any = spark.createDataFrame([(b"k", b"v", "t")], "key binary, value binary, topic string")
    with pytest.raises(MissingColumn) as failure:
        current_offsets(foreign)
    assert str(failure.value) == (
        "the DataFrame has no column 'partition': these are no raw rows; "
        "kafka_records_spark.raw.as_raw_records makes some of them"
    )


@pytest.mark.parametrize("missing", ["partition", "offset"])
def test_rows_without_coordinates_end_the_query(spark: SparkSession, missing: str) -> None:
    topic = Topic()
    topic.commit("a", 1)
    raw: Any = topic.frame(spark).drop(missing)
    from kafka_records_spark.raw import as_raw_records

    with pytest.raises(Exception, match=f"a row of __consumer_offsets has no {missing}: without it nobody can tell"):
        current_offsets(as_raw_records(raw)).collect()


def test_an_empty_topic_has_no_offsets(spark: SparkSession) -> None:
    assert current_offsets(Topic().frame(spark)).collect() == []
