"""Commits that wait for the end of their transaction: those that Kafka's coordinators call unstable, and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_tables import read_table
from tests.tables.topic import OFFSETS_TOPIC, Topic
from tools.judge.cleaner import CleanedLog

Row = dict[str, Any]
Pending = dict[str, set[tuple[str, int]]]


def _rows(source: Any, **options: Any) -> list[Row]:
    result = read_table("pending_offsets", source, **options)
    assert result.findings == ()
    rows: list[Row] = result.table.to_pylist()
    return rows


def _by_group(rows: list[Row]) -> Pending:
    found: Pending = {}
    for row in rows:
        found.setdefault(row["group_id"], set()).add((row["topic"], row["partition"]))
    return found


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-4.3-expiry"])
def test_pending_offsets_are_those_the_broker_called_unstable(topics_dir: Path, name: str) -> None:
    truth = json.loads((topics_dir / name / "truth.json").read_text(encoding="utf-8"))
    unstable = {
        group: {(each["topic"], each["partition"]) for each in answer["unstableOffsets"]}
        for group, answer in truth["groups"].items()
        if answer.get("unstableOffsets")
    }
    rows = _rows(topics_dir / name / "segments")
    assert _by_group(rows) == unstable
    # The broker also says which producer it is, and where its transaction begins.
    begun = {(row["log_partition"], row["producer_id"]) for row in rows}
    assert begun == {
        (each["partition"], each["producerId"]) for each in truth.get("openTransactionsOnConsumerOffsets", ())
    }


def _at(topic: Topic, offset: int, timestamp_ms: int) -> None:
    row = topic.rows[offset]
    topic.rows[offset] = (*row[:3], timestamp_ms, *row[4:])


def test_the_last_commit_of_a_transaction_is_pending_since_the_first() -> None:
    topic = Topic()
    topic.commit("g", 5)
    first = topic.commit("g", 6, transaction="pending")
    topic.commit("g", 7, transaction="pending")
    topic.commit("g", 9)
    _at(topic, first, 1000)

    (row,) = _rows(topic.table())

    names = ("group_id", "topic", "partition", "offset", "producer_id", "since_timestamp_ms", "log_offset")
    assert [row[name] for name in names] == ["g", "orders", 0, 7, 1000, 1000, 2]


def test_each_producer_has_a_row() -> None:
    topic = Topic()
    topic.commit("g", 6, transaction="pending", producer=1)
    topic.commit("g", 7, transaction="pending", producer=2)
    topic.commit("g", 8, transaction="pending", producer=3)
    topic.marker("abort", producer=3)
    assert [(row["producer_id"], row["offset"]) for row in _rows(topic.table())] == [(1, 6), (2, 7)]
    topic.marker("commit", producer=1)
    assert [(row["producer_id"], row["offset"]) for row in _rows(topic.table())] == [(2, 7)]


@pytest.mark.parametrize("record", ["OffsetCommit", "LegacyOffsetCommit"])
def test_a_tombstone_drops_what_is_pending(record: str) -> None:
    topic = Topic()
    topic.commit("g", 6, transaction="pending")
    topic.commit("h", 6, transaction="pending")
    topic.commit("g", None, record=record)
    assert [row["group_id"] for row in _rows(topic.table())] == ["h"]
    again = topic.commit("g", 7, transaction="pending")
    _at(topic, again, 5)
    assert [(row["group_id"], row["since_timestamp_ms"]) for row in _rows(topic.table(), group="g")] == [("g", 5)]


def test_a_moment_before_the_marker() -> None:
    topic = Topic()
    topic.commit("g", 6, transaction="pending")
    topic.marker("commit")
    for offset in range(2):
        _at(topic, offset, offset)
    assert len(_rows(topic.table(), as_of=0)) == 1
    assert _rows(topic.table(), as_of=1) == []


def test_a_moment_before_the_marker_of_records_that_a_cleaner_took() -> None:
    topic = Topic()
    topic.commit("g", 6, transaction="pending")
    topic.commit("h", 1)
    topic.marker("abort")
    topic.commit("h", 2)
    for offset in range(4):
        _at(topic, offset, 1000 * offset)
    log = CleanedLog(topic.table().slice(1), OFFSETS_TOPIC, 2)

    assert _rows(log, as_of=2000) == _rows(log) == []
    result = read_table("pending_offsets", log, as_of=1500)
    (finding,) = result.findings
    assert finding.consequence == (
        "rows may be missing or not as they were then; as of 1970-01-01T00:00:02.000Z or later the answer is complete"
    )


def test_values_that_cannot_be_read_and_markers_that_may_be_hidden() -> None:
    topic = Topic()
    topic.commit("g", 6, transaction="pending")
    topic.add_bytes(topic.rows[0][5], b"\x00\x09", transaction="pending")
    topic.commit("h", 6, transaction="unknown")
    topic.commit("i", 6, transaction="pending")
    result = read_table("pending_offsets", topic.table())
    assert result.table["group_id"].to_pylist() == ["i"]
    assert [(finding.reason, finding.consequence) for finding in result.findings] == [
        ("UnsupportedVersion", "its row is left out: it is unknown which offset is pending"),
        ("UndecidedTransaction", "its row is left out: it may be pending, committed or aborted"),
    ]


def test_a_source_without_timestamps() -> None:
    topic = Topic()
    topic.commit("g", 6, transaction="pending")
    rows = topic.table()
    at = rows.schema.get_field_index("timestamp_ms")
    rows = rows.set_column(at, rows.schema.field(at), pa.nulls(1, rows.schema.field(at).type))
    assert [row["since_timestamp_ms"] for row in _rows(rows)] == [None]
