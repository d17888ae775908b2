"""Messages about a log that a cleaner has changed, case by case."""

from __future__ import annotations

import pytest

from kafka_records_engine.findings import OUTSIDE_LOG, Finding
from kafka_records_tables import read_table
from tests.tables.topic import OFFSETS_TOPIC, Topic
from tools.judge.cleaner import CleanedLog, table_of

START_MS = 1_700_000_000_000
WHOLE_ONLY = "rows may be missing or not as they were then; only the answer of the whole log is complete"


def _log(topic: Topic, gone: set[int], cleaned_up_to: int, log_start: int = 0) -> CleanedLog:
    """The log without some records, with one record per second."""
    rows = [{**row, "timestamp_ms": START_MS + 1000 * row["offset"]} for row in topic.table().to_pylist()]
    left = [row for row in rows if row["offset"] not in gone]
    return CleanedLog(table_of(left), OFFSETS_TOPIC, cleaned_up_to, log_start)


def _commits(count: int) -> Topic:
    topic = Topic()
    for number in range(count):
        topic.commit(f"g{number}", number)
    return topic


def _as_of(log: CleanedLog, offset: int, table: str = "current_offsets") -> tuple[Finding, ...]:
    """The findings about missing records in the log up to the record at `offset`."""
    found = read_table(table, log, as_of=START_MS + 1000 * offset).findings
    return tuple(each for each in found if each.reason != OUTSIDE_LOG)


def _since(offset: int) -> str:
    return (
        f"rows may be missing or not as they were then; as of 2023-11-14T22:13:{20 + offset}.000Z or later the answer "
        "is complete"
    )


def test_a_log_without_gaps_is_complete_at_every_moment() -> None:
    log = _log(_commits(9), set(), 9)
    assert [_as_of(log, offset) for offset in range(-1, 10)] == [()] * 11


def test_a_gap_before_the_moment() -> None:
    log = _log(_commits(9), {2}, 6)
    (finding,) = _as_of(log, 3)

    assert (finding.severity, finding.reason, finding.topic, finding.partition) == (
        "note",
        "IncompleteHistory",
        OFFSETS_TOPIC,
        0,
    )
    assert finding.complete_from is None
    assert str(finding) == (
        "__consumer_offsets-0: records at some offsets are missing: compaction removed them, or a file is missing "
        f"({_since(5)})"
    )
    assert [len(_as_of(log, offset)) for offset in range(9)] == [0, 1, 1, 1, 1, 0, 0, 0, 0]


def test_a_gap_at_the_moment() -> None:
    """The missing record may have been written before or after the moment."""
    log = _log(_commits(9), {3, 4}, 6)
    assert [len(_as_of(log, offset)) for offset in range(9)] == [0, 0, 1, 1, 1, 0, 0, 0, 0]
    assert _as_of(log, 2)[0].consequence == _since(5)


def test_a_gap_at_the_start() -> None:
    assert [len(_as_of(_log(_commits(9), {0}, 3), offset)) for offset in range(9)] == [1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert [_as_of(_log(_commits(9), {0}, 3, log_start=1), offset) for offset in range(9)] == [()] * 9


def test_a_gap_just_before_where_no_cleaner_has_been() -> None:
    """All that is known about the missing records is that they were written before the next one."""
    log = _log(_commits(9), {4, 5}, 6)
    assert [len(_as_of(log, offset)) for offset in range(9)] == [0, 0, 0, 1, 1, 1, 0, 0, 0]
    assert _as_of(log, 4)[0].consequence == _since(6)


def test_a_gap_with_nothing_behind_it() -> None:
    log = _log(_commits(9), {7, 8}, 9)
    assert [finding.consequence for offset in range(9) for finding in _as_of(log, offset)] == [WHOLE_ONLY] * 3
    assert read_table("current_offsets", log).findings == ()


def test_a_value_gave_way_to_one_that_was_committed_where_no_cleaner_has_been() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("g", 2, transaction="open")
    topic.commit("other", 1)
    topic.commit("other", 2)
    topic.commit("other", 3)
    topic.marker("commit")
    topic.commit("other", 4)
    log = _log(topic, {0}, 3)

    assert [len(_as_of(log, offset)) for offset in range(7)] == [1, 1, 1, 1, 1, 0, 0]
    assert _as_of(log, 3)[0].consequence == _since(5)


def test_what_happened_is_complete_behind_the_last_gap() -> None:
    for log, offset in (
        (_log(_commits(9), {2, 4}, 9), 5),
        (_log(_commits(9), {8}, 9), 9),
        (_log(_commits(9), {0}, 9), 1),
    ):
        for as_of in (None, START_MS + 20_000):
            (finding,) = read_table("offset_commits", log, as_of=as_of).findings
            assert finding.complete_from == offset
            assert finding.consequence == (f"the history is complete from offset {offset} on, and has gaps before")
    assert read_table("offset_commits", _log(_commits(9), set(), 9)).findings == ()
    assert read_table("offset_commits", _log(_commits(9), {0, 1}, 9, log_start=2)).findings == ()


def test_an_empty_log_is_complete() -> None:
    log = CleanedLog(Topic().table(), OFFSETS_TOPIC, 0)
    assert read_table("offset_commits", log).findings == _as_of(log, 0) == ()


def test_a_row_without_timestamp_is_before_or_behind_no_moment() -> None:
    rows = _commits(3).table()
    with pytest.raises(ValueError, match="has no timestamp") as failure:
        read_table("current_offsets", rows.drop_columns(["timestamp_ms"]), as_of=START_MS)
    assert str(failure.value) == (
        "__consumer_offsets-0: the record at offset 0 has no timestamp, so the state of the log at a moment is "
        "unknown: ask for the end of the log, or read a source that has the column 'timestamp_ms'"
    )
