"""Which record determines an offset, on synthetic topics: one group per case, one table for all of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from kafka_records.consumer_offsets import encode_record
from kafka_records.registry import message_class
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import read_table
from tests.tables.topic import Topic

Row = dict[str, Any]

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

    # The marker came after the plain commit, but the transactional value comes before it.
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

    commit("no producer", 1)
    commit("no producer", 2, transaction="unknown", producer=-1)

    commit("legacy only", 7, record="LegacyOffsetCommit")
    commit("legacy, then current", 1, record="LegacyOffsetCommit")
    commit("legacy, then current", 2)
    commit("current, then legacy", 1)
    commit("current, then legacy", 2, record="LegacyOffsetCommit")
    commit("legacy tombstone", 1)
    commit("legacy tombstone", None, record="LegacyOffsetCommit")

    # Kafka ignores bytes after a key, so this is the same key.
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
    topic.add_bytes(b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00", control="commit", producer=-1)
    return topic


def _bytes_of(group: str, offset: int) -> tuple[bytes, bytes]:
    key = message_class("OffsetCommitKey")(group=group, topic="orders", partition=0)
    value = message_class("OffsetCommitValue")(offset=offset, metadata="", commit_timestamp=0)
    key_bytes, value_bytes = encode_record(key, value, 3)
    assert value_bytes is not None
    return key_bytes, value_bytes


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in read_table("current_offsets", _case_topic().table()).table.to_pylist():
        found.setdefault(row["group_id"], []).append(row)
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
    assert sorted(row["offset"] for row in rows.get(group, [])) == offsets


def test_every_column(rows: dict[str, list[Row]]) -> None:
    (row,) = rows["all fields"]

    place = {"log_partition": row["log_partition"], "log_offset": row["log_offset"]}
    assert row == {
        "group_id": "all fields",
        "topic": "orders",
        "topic_id": "M4_2Tv--T0Gv8t6piaeUcQ",
        "partition": 3,
        "offset": 9,
        "leader_epoch": 4,
        "metadata": "größe ✓",
        "commit_timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
        "commit_timestamp_ms": 1_700_000_000_123,
        **place,
    }
    assert place["log_partition"] == 0
    assert place["log_offset"] > 0


def test_what_a_record_does_not_name_is_null(rows: dict[str, list[Row]]) -> None:
    (row,) = rows["version 1"]
    assert (row["topic_id"], row["leader_epoch"], row["commit_timestamp_ms"]) == (None, None, 5)
    (row,) = rows["legacy only"]
    assert (row["topic_id"], row["leader_epoch"], row["metadata"]) == (None, None, "")


@pytest.mark.parametrize(
    ("group", "timestamp"),
    [
        ("timestamp max", None),
        ("timestamp min", None),
        ("timestamp none", datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        ("first instant", datetime(1, 1, 1, tzinfo=UTC)),
        ("before the first", None),
        ("last instant", datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        ("after the last", None),
    ],
)
def test_timestamps_outside_the_years_1_to_9999_are_null(
    rows: dict[str, list[Row]], group: str, timestamp: datetime | None
) -> None:
    (row,) = rows[group]
    assert row["commit_timestamp"] == timestamp


def test_records_that_could_not_be_used_are_found() -> None:
    topic = _case_topic()
    findings = read_table("current_offsets", topic.table()).findings

    last = len(topic.rows) - 1
    offsets = [finding.offset for finding in findings]
    assert offsets[-3:] == [last - 3, last - 2, last - 1]
    left_out = "its row is left out: an older offset would be wrong"
    not_used = "not used: it is unknown whose offset it is"
    assert [(each.record_type, each.reason, each.what, each.consequence) for each in findings] == [
        (
            None,
            "OtherPartitions",
            "the group 'two log partitions' has rows of more than one log partition",
            "its coordinator reads one of them, and other rows are copies from before partitions were added: the "
            "table checks lists them as wrong_partition",
        ),
        (
            1,
            "UndecidedTransaction",
            "the commit of group undecided for orders-0: it is unknown how the transaction of producer 1000 ended, "
            "because its marker was not read",
            "its row is left out: this offset or an older one may be the committed one",
        ),
        (
            1,
            "BufferUnderflow",
            "OffsetCommitValue v3 at byte 0 after its version: offset needs 8 bytes, but 7 are left",
            left_out,
        ),
        (
            1,
            "UnsupportedVersion",
            "OffsetCommitValue has no version 9: its versions are 0 to 4",
            left_out,
        ),
        (
            1,
            "BufferUnderflow",
            "OffsetCommitKey v0 at byte 2 after its type: group needs 16 bytes, but 3 are left",
            not_used,
        ),
        (None, "NullKey", "the record has no key", not_used),
        (
            None,
            "MissingRecordType",
            "the key has 1 byte, but a key starts with an int16 record type",
            not_used,
        ),
    ]
    for finding in findings[2:]:
        assert finding.severity == "damage"
        assert finding.raw_value
        assert (finding.raw_key is None) == (finding.reason == "NullKey")
    assert str(findings[-1]) == (
        f"__consumer_offsets-0: record at offset {last - 1}: the key has 1 byte, but a key starts with an int16 record "
        "type (not used: it is unknown whose offset it is)"
    )


def test_what_was_read_as_kafka_reads_it_is_counted() -> None:
    topic = Topic()
    key, value = _bytes_of("lenient", 1)
    topic.add_bytes(key.replace(b"orders", b"order\xff") + b"\x01", value + b"\x02\x03")
    key, value = _bytes_of("trailing bytes", 2)
    topic.add_bytes(key + b"\x00\x01", value)

    result = read_table("current_offsets", topic.table())

    assert result.findings == ()
    assert (result.counts.bytes_left, result.counts.with_bytes_left) == (5, 2)
    assert dict(result.counts.leniencies) == {"invalid_utf8": 1}
    assert result.table["topic"].to_pylist() == ["order\ufffd", "orders"]


# -- transactions ------------------------------------------------------------------------------------------------------


def test_the_marker_decides_and_not_what_a_row_says_of_its_transaction() -> None:
    """Rows that were saved during an open transaction always have it as open."""
    topic = Topic()
    topic.commit("committed", 1, transaction="open")
    topic.marker("commit")
    topic.commit("aborted", 1)
    topic.commit("aborted", 2, transaction="committed")
    topic.marker("abort")
    topic.commit("still open", 1, transaction="open")
    topic.marker("commit", producer=1001)

    assert _offsets_of(topic) == {"aborted": [1], "committed": [1]}


def test_a_tombstone_drops_what_waits_for_a_marker() -> None:
    """`OffsetMetadataManager.replay` removes it from the pending offsets of every producer."""
    topic = Topic()
    topic.commit("deleted", 1, transaction="open")
    topic.commit("deleted", None)
    topic.commit("deleted by another producer", 1, transaction="open")
    topic.commit("deleted by another producer", None, transaction="open", producer=7)
    topic.commit("written again", 1, transaction="open")
    topic.commit("written again", None)
    topic.commit("written again", 2, transaction="open")
    topic.marker("commit")

    assert _offsets_of(topic) == {"written again": [2]}


def test_an_older_commit_does_not_win_because_its_marker_is_later() -> None:
    topic = Topic()
    topic.commit("g", 1, transaction="open", producer=1)
    topic.commit("g", 2, transaction="open", producer=2)
    topic.marker("commit", producer=2)
    topic.marker("commit", producer=1)

    assert _offsets_of(topic) == {"g": [2]}


def test_every_producer_has_transactions_of_its_own() -> None:
    topic = Topic()
    producers = [0, 1, 2**31, 2**63 - 1]
    for producer in producers:
        topic.commit(f"p{producer}", 1, transaction="open", producer=producer)
    for number, producer in enumerate(producers):
        topic.marker("abort" if number % 2 else "commit", producer=producer)

    assert _offsets_of(topic) == {"p0": [1], f"p{2**31}": [1]}


def test_offsets_near_the_end_of_their_range() -> None:
    """This applies to log offsets and to committed offsets."""
    topic = Topic()
    topic.commit("g", LONG_MAX, transaction="open")
    topic.marker("commit")
    topic.commit("h", -LONG_MAX - 1)
    first = LONG_MAX - len(topic.rows) + 1
    topic.rows = [(*row[:2], first + number, *row[3:]) for number, row in enumerate(topic.rows)]

    found = read_table("current_offsets", topic.table()).table.to_pylist()

    assert [(row["group_id"], row["offset"], row["log_offset"]) for row in found] == [
        ("g", LONG_MAX, LONG_MAX - 2),
        ("h", -LONG_MAX - 1, LONG_MAX),
    ]


# -- sources that tell less --------------------------------------------------------------------------------------------


UNTOLD = (
    "__consumer_offsets-0: it is unknown whether the record at offset 1 was written in a transaction, and whether "
    "that was committed: the source has neither transaction nor producer ids. Read a source that has them "
    '(log segments, or rows saved from them with all columns), or pass assume="committed" to count such records as '
    "committed, although some may belong to aborted or open transactions"
)


@pytest.mark.parametrize("table", ["current_offsets", "offset_commits"])
def test_rows_that_do_not_tell_of_transactions_are_refused(table: str) -> None:
    topic = Topic()
    topic.commit("told", 1)
    topic.commit("nothing told", 2, transaction="unknown", producer=None)

    with pytest.raises(ValueError, match=f"^{re.escape(UNTOLD)}$"):
        read_table(table, topic.table())


@pytest.mark.parametrize("table", ["current_offsets", "offset_commits"])
def test_rows_without_the_columns_that_tell_are_refused(table: str) -> None:
    topic = Topic()
    topic.commit("a", 1)
    rows = topic.table().drop_columns(["transaction", "producer_id", "control"])

    with pytest.raises(ValueError, match=f"^{re.escape(UNTOLD.replace('offset 1', 'offset 0'))}$"):
        read_table(table, rows)


def test_rows_that_do_not_tell_count_as_their_reader_says() -> None:
    topic = Topic()
    topic.commit("nothing told", 1)
    topic.commit("nothing told", 2, transaction="unknown", producer=None)
    rows = topic.table()

    for given in (rows, rows.drop_columns(["transaction", "producer_id", "control"])):
        result = read_table("current_offsets", given, assume="committed")
        assert (result.table["offset"].to_pylist(), result.findings) == ([2], ())


def test_an_option_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^assume must be \"committed\" or None, not 'aborted'$"):
        read_table("current_offsets", Topic().table(), assume="aborted")  # type: ignore[arg-type]


@pytest.mark.parametrize("table", ["groups", "transactions"])
def test_tables_that_do_not_depend_on_transactions_ask_for_none(table: str) -> None:
    topic = Topic()
    topic.commit("a", 1)
    name = "__transaction_state" if table == "transactions" else "__consumer_offsets"
    rows = topic.table().drop_columns(["transaction", "producer_id", "control"])
    rows = rows.set_column(0, "topic", pa.array([name] * rows.num_rows))

    assert read_table(table, rows).table.num_rows == (table == "groups")


def test_rows_of_other_topics_only_are_refused() -> None:
    topic = Topic()
    topic.commit("a", 1, topic="orders")
    topic.commit("a", 1, topic="__share_group_state")

    with pytest.raises(LogSourceError) as failure:
        read_table("current_offsets", topic.table())
    assert str(failure.value) == (
        "the rows: there are no rows of topic __consumer_offsets here, only rows of __share_group_state, orders"
    )


def test_the_topic_of_rows_that_do_not_say_it_is_given() -> None:
    topic = Topic()
    topic.commit("a", 1, topic="copy_of_offsets")
    topic.commit("b", 1)
    rows = topic.table()
    unnamed = rows.set_column(0, "topic", pa.array([None, "__consumer_offsets"]))

    assert read_table("current_offsets", rows).table["group_id"].to_pylist() == ["b"]
    assert read_table("current_offsets", unnamed).table["group_id"].to_pylist() == ["a", "b"]
    assert read_table("current_offsets", rows.drop_columns(["topic"])).table["group_id"].to_pylist() == ["a", "b"]


def test_rows_of_another_shape_are_refused_at_once() -> None:
    foreign = pa.table({"key": [b"k"], "value": [b"v"], "topic": ["t"]})
    with pytest.raises(ValueError, match="the rows have no column partition: raw rows have ") as failure:
        read_table("current_offsets", foreign)
    assert str(failure.value) == (
        "the rows have no column partition: raw rows have topic, partition, offset, timestamp_ms, timestamp_type, key, "
        "value, leader_epoch, base_offset, producer_id, producer_epoch, transaction, control"
    )


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ("partition", "its place in the order is unknown"),
        ("offset", "without it the last record of a key is unknown"),
    ],
)
def test_rows_without_coordinates_are_refused(missing: str, why: str) -> None:
    topic = Topic()
    topic.commit("a", 1)
    rows = topic.table()
    at = rows.schema.get_field_index(missing)
    rows = rows.set_column(at, missing, pa.nulls(rows.num_rows, rows.schema.field(missing).type))

    with pytest.raises(ValueError, match=f"^a row of __consumer_offsets has no {missing}: {why}$"):
        read_table("current_offsets", rows)


def test_an_empty_topic_has_no_offsets() -> None:
    result = read_table("current_offsets", Topic().table())
    assert (result.table.num_rows, result.findings) == (0, ())


def _offsets_of(topic: Topic) -> dict[str, list[int]]:
    result = read_table("current_offsets", topic.table())
    assert result.findings == ()
    found: dict[str, list[int]] = {}
    for row in result.table.to_pylist():
        found.setdefault(row["group_id"], []).append(row["offset"])
    return found
