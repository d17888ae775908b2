"""The table `activity`, compared with the records of histories and the calls that wrote them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records.consumer_offsets import GroupMetadata, decode_record
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.question import Question
from kafka_records_tables import TABLES, read_table
from kafka_records_tables.coordinator.offsets import commit_lots
from kafka_records_tables.tables.group_rows import activity_sums
from kafka_records_tables.tables.table_reading import rows_of
from tests.conftest import DATA_DIR
from tests.tables.histories import NAMES, history
from tests.tables.topic import Topic
from tools.judge.answers import Loaded
from tools.judge.cleaner import CleanedLog, cleaned_at_random, table_of
from tools.judge.compared_activity import activity

Row = dict[str, Any]

SOME = NAMES[::10]
HOUR_MS = 3_600_000


@cache
def _read(name: str, table: str, **options: Any) -> pa.Table:
    result = read_table(table, history(name).rows, **options)
    assert {each.reason for each in result.findings} <= {"OtherRetention"}
    return result.table


def _rows(name: str) -> list[Row]:
    retention = history(name).header["offsets_retention_ms"]
    rows: list[Row] = _read(name, "activity", retention=retention, window=HOUR_MS).to_pylist()
    return rows


@pytest.mark.parametrize("name", SOME)
def test_sums_are_those_of_what_the_coordinator_did(name: str) -> None:
    assert list(activity(Loaded(history(name), max(history(name).cuts), partial(_read, name)))) == []


@pytest.mark.parametrize("name", SOME)
def test_every_window_has_the_commits_that_stand_in_it(name: str) -> None:
    expected: dict[tuple[Any, ...], Counter[str]] = {}
    last: dict[tuple[Any, ...], int | None] = {}
    for record in history(name).records:
        if "control" in record or record["key"][:4] not in ("0000", "0001"):
            continue
        decoded: Any = decode_record(bytes.fromhex(record["key"]), bytes.fromhex(record["value"] or "") or None)
        of, now = decoded.key, record["timestamp_ms"]
        counts = expected.setdefault((of.group, of.topic, now - now % HOUR_MS), Counter())
        key = of.group, of.topic, of.partition
        before = last.get(key)
        last[key] = None if decoded.value is None else now
        if decoded.value is not None:
            counts["commits"] += 1
            counts["transactional_commits"] += record["transactional"]
            if before is not None:
                counts["intervals"] += 1
                counts["interval_sum"] += now - before
                counts["longest"] = max(counts["longest"], now - before)
    for place in _repeats(history(name).records):
        expected[place]["repeated_commits"] += 1
    found = {(row["group_id"], row["topic"], row["window_start_timestamp_ms"]): row for row in _rows(name)}
    assert {place for place in found if place[1] is not None} == set(expected)
    for place, counts in expected.items():
        row = found[place]
        told = {word: row[word] for word in ("commits", "transactional_commits", "repeated_commits")}
        assert told == {word: counts[word] for word in told}
        mean = counts["interval_sum"] // counts["intervals"] if counts["intervals"] else None
        assert row["commit_interval_ms"] == mean
        assert row["longest_commit_interval_ms"] == (counts["longest"] if counts["intervals"] else None)
        assert row["is_lower_bound"] is False


def _repeats(records: list[Row]) -> Iterator[tuple[Any, ...]]:
    """Group, topic and window of every effective commit that repeats the current offset."""
    there: dict[tuple[Any, ...], tuple[int, int | None]] = {}
    """The place of the last effective commit or tombstone, and the offset."""
    waiting: dict[int, dict[tuple[Any, ...], tuple[int, int | None, int]]] = {}
    for record in records:
        producer, at, now = record["producer_id"], record["offset"], record["timestamp_ms"]
        found: list[tuple[tuple[Any, ...], tuple[int, int | None, int]]] = []
        if "control" in record:
            ended = waiting.pop(producer, {})
            found = list(ended.items()) if record["control"] == "commit" else []
        elif record["key"][:4] in ("0000", "0001"):
            decoded: Any = decode_record(bytes.fromhex(record["key"]), bytes.fromhex(record["value"] or "") or None)
            key = decoded.key.group, decoded.key.topic, decoded.key.partition
            told = (at, None if decoded.value is None else decoded.value.offset, now)
            if record["transactional"] and decoded.value is not None:
                waiting.setdefault(producer, {})[key] = told
            else:
                found = [(key, told)]
        for key, (stands, offset, then) in found:
            reached, before = there.get(key, (-1, None))
            if stands > reached:
                there[key] = stands, offset
                if offset is not None and offset == before:
                    yield key[0], key[1], then - then % HOUR_MS


@pytest.mark.parametrize("name", SOME)
def test_rebalances_complete_where_the_timeline_has_them(name: str) -> None:
    expected: Counter[Any] = Counter()
    for row in _read(name, "timeline").to_pylist():
        if row["event"] == "rebalance_completed":
            expected[row["group_id"], row["at_timestamp_ms"] // HOUR_MS * HOUR_MS] += 1
    found = {
        (row["group_id"], row["window_start_timestamp_ms"]): row["completed_rebalances"]
        for row in _rows(name)
        if row["completed_rebalances"]
    }
    assert found == dict(expected)


@pytest.mark.parametrize("name", SOME)
def test_classic_rebalances_complete_where_a_leader_hands_in_its_assignment(name: str) -> None:
    expected: Counter[Any] = Counter()
    for at, told in history(name).why.items():
        record = history(name).records[at]
        if told["call"] == "sync" and record["key"].startswith("0002"):
            metadata = decode_record(bytes.fromhex(record["key"]), None)
            assert isinstance(metadata, GroupMetadata)
            expected[metadata.key.group, record["timestamp_ms"] // HOUR_MS * HOUR_MS] += 1
    found = {
        (row["group_id"], row["window_start_timestamp_ms"]): row["classic_rebalances"]
        for row in _rows(name)
        if row["classic_rebalances"]
    }
    assert found == dict(expected)


@pytest.mark.parametrize("name", SOME[:3])
def test_sums_do_not_depend_on_how_many_rows_come_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _read(name, "activity")
    monkeypatch.setattr(commit_lots, "LOT_ROWS", 40)
    monkeypatch.setattr(activity_sums, "LOT_ROWS", 5)
    question = Question(("activity",), ((("window", HOUR_MS), ("retention", 7 * 24 * HOUR_MS)),))
    context = Context("__consumer_offsets", 0, question)
    batches = iter(history(name).rows.to_batches(max_chunksize=9))
    found = pa.Table.from_batches(rows_of(TABLES["activity"], batches, context))
    assert found.sort_by([(column, "ascending") for column in TABLES["activity"].sort]).equals(expected)


def test_a_window_in_which_a_cleaner_was_is_a_lower_bound() -> None:
    for name in SOME[:3]:
        left, active = cleaned_at_random(history(name).rows.to_pylist(), Random(name))
        whole = {_place(row): row for row in _read(name, "activity").to_pylist()}
        result = read_table("activity", CleanedLog(table_of(left), "__consumer_offsets", active))
        found = {_place(row): row for row in result.table.to_pylist()}
        assert any(row["is_lower_bound"] for row in found.values())
        assert set(found) <= set(whole)
        for place, row in found.items():
            assert (row["commits"], row["records"]) <= (whole[place]["commits"], whole[place]["records"])
        sums = ("commits", "records", "key_bytes", "value_bytes")
        since = max(row["window_start_timestamp_ms"] for row in found.values() if row["is_lower_bound"])
        for place, row in whole.items():
            if place[2] > since:
                assert [found[place][each] for each in sums] == [row[each] for each in sums]


def _place(row: Row) -> tuple[Any, ...]:
    return row["group_id"], row["topic"], row["window_start_timestamp_ms"]


# -- made up -----------------------------------------------------------------------------------------------------------


def _at(topic: Topic, offset: int, time_ms: int) -> None:
    topic.rows[offset] = (*topic.rows[offset][:3], time_ms, *topic.rows[offset][4:])


def test_windows_commits_and_the_time_between_them() -> None:
    topic = Topic()
    for number, (offset, time) in enumerate([(5, 0), (5, 1_000), (6, 4_000), (6, 61_000), (7, 60_000)]):
        topic.commit("g", offset)
        _at(topic, number, time)
    rows = read_table("activity", topic.table(), window="1min").table.to_pylist()
    names = ("window_start_timestamp_ms", "commits", "repeated_commits", "commit_interval_ms")
    # A clock that went back does not make an interval negative.
    assert [tuple(row[name] for name in names) for row in rows] == [(0, 3, 1, 2_000), (60_000, 2, 1, 28_500)]
    assert [row["longest_commit_interval_ms"] for row in rows] == [3_000, 57_000]


def test_intervals_that_are_too_long_to_add_up_are_not_negative() -> None:
    topic = Topic()
    for number, time in enumerate([0, 2**63 - 2, 0, 2**63 - 2]):
        topic.commit("g", number)
        _at(topic, number, time)
    intervals = read_table("activity", topic.table(), window="1min").table["commit_interval_ms"].to_pylist()
    assert min(each for each in intervals if each is not None) >= 0


@pytest.mark.parametrize("tells_markers", [True, False])
def test_what_was_aborted_is_no_repeat(tells_markers: bool) -> None:
    """An aborted commit does not separate two commits either. A commit that a later one overtook has changed
    nothing."""
    topic = Topic()
    topic.commit("g", 5)
    for offset, outcome in ((5, "abort"), (6, "abort"), (5, "commit"), (7, "commit")):
        word = {"abort": "aborted", "commit": "committed"}[outcome]
        topic.commit("g", offset, transaction="pending" if tells_markers else word)
        if tells_markers:
            topic.marker(outcome)
    topic.commit("g", 7)
    topic.commit("g", 7, transaction="open")
    (row,) = read_table("activity", topic.table()).table.to_pylist()
    assert (row["commits"], row["transactional_commits"], row["repeated_commits"]) == (7, 5, 2)


def test_a_source_without_times_has_one_window_without_a_name() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("g", 1)
    (row,) = read_table("activity", topic.table().drop_columns("timestamp_ms")).table.to_pylist()
    assert (row["window_start_timestamp_ms"], row["commits"], row["repeated_commits"]) == (None, 2, 1)
    assert row["commit_interval_ms"] is None


def test_each_meter_is_one_column() -> None:
    """A metric of Kafka for each column: an offset deleted with its group is in none, a rebalance only while its group
    is classic."""
    counts: Counter[str] = Counter()
    events: Counter[Any] = Counter()
    for name in SOME:
        for row in _rows(name):
            assert row["offset_deletions"] <= row["deletions"]
            counts.update({each: row[each] for each in ("deletions", "offset_deletions", "classic_rebalances")})
        events.update(
            row["group_kind"] for row in _read(name, "timeline").to_pylist() if row["event"] == "rebalance_completed"
        )
    asked = sum(told["why"] == "offset_deleted" for name in SOME for told in _tombstones(name))
    assert 0 < counts["offset_deletions"] <= min(asked, counts["deletions"] - 1)
    assert counts["classic_rebalances"] == events["classic"] + events["simple"]
    assert 0 < counts["classic_rebalances"] < sum(events.values())


def _tombstones(name: str) -> list[Row]:
    """The reasons for which tombstones of offsets were written."""
    records, why = history(name).records, history(name).why
    return [told for at, told in why.items() if records[at].get("key", "")[:4] in ("0000", "0001") and "why" in told]


def test_a_record_without_a_time_has_none_in_any_table() -> None:
    topic = Topic()
    for number, offset in enumerate((5, 3)):
        topic.commit("g", offset)
        _at(topic, number, -1)
    for table, columns in {
        "timeline": ("at_timestamp_ms",),
        "history": ("valid_from_timestamp_ms", "valid_to_timestamp_ms"),
        "activity": ("window_start_timestamp_ms",),
    }.items():
        rows = read_table(table, topic.table()).table.to_pylist()
        assert rows
        assert {row[column] for row in rows for column in columns} == {None}


def test_a_value_that_cannot_be_decoded_is_counted_and_found_once() -> None:
    topic = Topic()
    at = topic.commit("g", 1)
    topic.rows[at] = (*topic.rows[at][:6], b"\x00\x04\x00", *topic.rows[at][7:])
    result = read_table("activity", topic.table())
    assert [(row["commits"], row["value_bytes"]) for row in result.table.to_pylist()] == [(1, 3)]
    assert len(result.findings) == 1


def test_a_retention_that_is_not_that_of_the_brokers_is_found() -> None:
    segments = DATA_DIR / "topics" / "kafka-4.3-expiry" / "segments"
    assert [each.reason for each in read_table("activity", segments).findings] == ["OtherRetention"] * 2
    assert read_table("activity", segments, retention="1m").findings == ()


def test_a_group_is_counted_alone_as_among_others() -> None:
    name = SOME[1]
    group = _read(name, "activity")["group_id"][0].as_py()
    alone = read_table("activity", history(name).rows, group=group).table.to_pylist()
    assert alone == [row for row in _read(name, "activity").to_pylist() if row["group_id"] == group]
