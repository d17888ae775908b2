"""The table `history`, compared with `current_offsets` as of many moments, over logs that Kafka's coordinator classes
wrote."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.sources import Context
from kafka_records_tables import TABLES, read_table
from kafka_records_tables.coordinator.offsets import offset_spans
from kafka_records_tables.tables.table_reading import rows_of
from tests.tables.histories import NAMES, history
from tests.tables.topic import Topic
from tools.judge.cleaner import CleanedLog, cleaned_at_random, table_of

Row = dict[str, Any]
Verdict = dict[tuple[str, str, int], tuple[Any, ...]]

SOME = NAMES[::6]
MOMENTS = 4

_SAID = ("offset", "leader_epoch", "metadata", "topic_id")


def _said(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _SAID)


def _held(rows: list[Row], moment: int) -> Verdict:
    """The offsets that were current at a moment; two rows of one partition are an error."""
    found: Verdict = {}
    for row in rows:
        until = row["valid_to_timestamp_ms"]
        if row["valid_from_timestamp_ms"] <= moment and (until is None or moment < until):
            key = row["group_id"], row["topic"], row["partition"]
            assert key not in found
            found[key] = _said(row)
    return found


def _current(source: Any, moment: int) -> Verdict:
    rows = read_table("current_offsets", source, as_of=moment).table.to_pylist()
    return {(row["group_id"], row["topic"], row["partition"]): _said(row) for row in rows}


@pytest.mark.parametrize("name", SOME)
def test_rows_of_a_moment_are_the_offsets_as_of_it(name: str) -> None:
    log = history(name).rows
    rows = read_table("history", log).table.to_pylist()
    times = sorted(set(log["timestamp_ms"].to_pylist()))
    for moment in Random(name).sample(times, MOMENTS):
        for at in (moment - 1, moment):
            assert _held(rows, at) == _current(log, at)


def test_rows_of_a_moment_are_the_offsets_as_of_it_where_the_clock_goes_back() -> None:
    chance = Random(7)
    log = history(NAMES[3]).rows
    times = [time + chance.randrange(-3_600_000, 3_600_000) for time in log["timestamp_ms"].to_pylist()]
    log = log.set_column(log.schema.get_field_index("timestamp_ms"), "timestamp_ms", pa.array(times))
    rows = read_table("history", log).table.to_pylist()
    for moment in chance.sample(times, 4 * MOMENTS):
        assert _held(rows, moment) == _current(log, moment)


@pytest.mark.parametrize("name", SOME)
def test_as_of_a_moment_what_holds_is_current(name: str) -> None:
    log = history(name).rows
    times = log["timestamp_ms"].to_pylist()
    moment = times[len(times) // 2]
    rows = read_table("history", log, as_of=moment).table.to_pylist()
    whole = read_table("history", log).table.to_pylist()
    assert {_place(row): _said(row) for row in rows if row["is_current"]} == _current(log, moment)
    # Spans that have ended by then have the same end later.
    assert [row for row in rows if not row["is_current"]] == [
        row for row in whole if row["valid_to_timestamp_ms"] is not None and row["valid_to_timestamp_ms"] <= moment
    ]


def _place(row: Row) -> tuple[str, str, int]:
    return row["group_id"], row["topic"], row["partition"]


@pytest.mark.parametrize("name", SOME)
def test_spans_do_not_depend_on_how_many_rows_come_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read_table("history", history(name).rows).table
    monkeypatch.setattr(offset_spans, "LOT_ROWS", 5)
    batches = iter(history(name).rows.to_batches(max_chunksize=3))
    found = pa.Table.from_batches(rows_of(TABLES["history"], batches, Context(topic="__consumer_offsets")))
    assert found.sort_by([(column, "ascending") for column in TABLES["history"].sort]).equals(expected)


@pytest.mark.parametrize("name", SOME)
def test_every_commit_that_took_effect_is_in_one_row(name: str) -> None:
    rows = read_table("history", history(name).rows).table.to_pylist()
    commits = read_table("offset_commits", history(name).rows).table.to_pylist()
    counted = [row for row in commits if row["transaction"] in ("none", "committed") and not row["is_tombstone"]]
    assert sum(row["commits"] for row in rows) <= len(counted)
    by_place = {row["log_offset"]: row for row in counted}
    for row in rows:
        for place in (row["log_offset"], row["last_log_offset"]):
            assert (_place(by_place[place]), _said(by_place[place])) == (_place(row), _said(row))


def test_of_a_cleaned_log_spans_from_the_offset_that_is_named_are_whole() -> None:
    compared = 0
    for name in SOME:
        left, active = cleaned_at_random(history(name).rows.to_pylist(), Random(name))
        result = read_table("history", CleanedLog(table_of(left), "__consumer_offsets", active))
        complete_from = max((each.complete_from or 0 for each in result.findings), default=0)
        expected = list(_begun(read_table("history", history(name).rows).table.to_pylist(), complete_from))
        found = list(_begun(result.table.to_pylist(), complete_from))
        assert [row for row in expected if row not in found] == []
        compared += len(expected)
    assert compared > 50


def _begun(rows: list[Row], offset: int) -> Iterator[Row]:
    """The spans that begin at or after an offset."""
    yield from (row for row in rows if row["log_offset"] >= offset)


# -- made up -----------------------------------------------------------------------------------------------------------


def _told(topic: Topic) -> list[tuple[Any, ...]]:
    names = ("offset", "commits", "valid_from_log_offset", "valid_to_log_offset", "ended_by", "is_current")
    rows = read_table("history", topic.table()).table.to_pylist()
    return [tuple(row[name] for name in names) for row in rows]


def test_commits_that_say_the_same_are_one_row() -> None:
    topic = Topic()
    for offset in (5, 5, 6, 6, 6, 5):
        topic.commit("g", offset)
    said = {"offset": 5, "metadata": "something else", "commit_timestamp": 1}
    topic.add("OffsetCommit", {"group": "g", "topic": "orders", "partition": 0}, said, version=4)
    assert _told(topic) == [
        (5, 2, 0, 2, "commit", False),
        (6, 3, 2, 5, "commit", False),
        (5, 1, 5, 6, "commit", False),
        (5, 1, 6, None, None, True),
    ]


def test_a_commit_in_a_transaction_holds_from_its_marker_on() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("g", 2, transaction="pending", producer=7)
    topic.commit("g", 3, transaction="pending", producer=7)
    topic.commit("g", 4, transaction="pending", producer=8)
    topic.marker("commit", producer=7)
    topic.marker("abort", producer=8)
    assert _told(topic) == [(1, 1, 0, 4, "transaction", False), (3, 1, 4, None, None, True)]


@pytest.mark.parametrize("later", [9, None])
def test_a_later_record_stays_when_the_marker_of_an_earlier_one_comes(
    later: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = Topic()
    topic.commit("g", 1, transaction="pending")
    topic.commit("g", later)
    topic.marker("commit")
    assert _told(topic) == ([] if later is None else [(9, 1, 1, None, None, True)])
    monkeypatch.setattr(offset_spans, "LOT_ROWS", 0)
    batches = iter(topic.table().to_batches(max_chunksize=1))
    found = rows_of(TABLES["history"], batches, Context(topic="__consumer_offsets"))
    assert [row["offset"] for part in found for row in part.to_pylist()] == [later] * (later is not None)


def test_keys_of_both_types_are_one_and_a_group_tombstone_ends_nothing() -> None:
    topic = Topic()
    topic.commit("g", 1, record="LegacyOffsetCommit")
    topic.commit("g", 2)
    topic.add("GroupMetadata", {"group": "g"}, None)
    topic.commit("g", None)
    assert _told(topic) == [(1, 1, 0, 1, "commit", False), (2, 1, 1, 3, "tombstone", False)]


def test_what_cannot_be_used_ends_an_offset_and_is_found() -> None:
    topic = Topic()
    topic.commit("g", 1)
    at = topic.commit("g", 2)
    topic.rows[at] = (*topic.rows[at][:6], b"\x00\x04\x00", *topic.rows[at][7:])
    topic.commit("g", 3)
    (finding,) = read_table("history", topic.table()).findings

    assert _told(topic) == [(1, 1, 0, 1, "unusable", False), (3, 1, 2, None, None, True)]
    assert finding.consequence == "which offset was valid from here on is unknown"


def test_a_source_without_times_has_none() -> None:
    topic = Topic()
    topic.commit("g", 1)
    (row,) = read_table("history", topic.table().drop_columns("timestamp_ms")).table.to_pylist()
    assert (row["offset"], row["valid_from_timestamp_ms"], row["valid_from_timestamp"]) == (1, None, None)


def test_nothing_is_left_where_the_last_rows_to_come_end_every_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_spans, "LOT_ROWS", 3)
    topic = Topic()
    for offset in (1, 2, 3, None):
        topic.commit("g", offset)
    assert [row[0] for row in _told(topic)] == [1, 2, 3]
