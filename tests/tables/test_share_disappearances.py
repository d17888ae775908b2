"""Why state of share partitions was deleted: planted cases, a real broker's log, and Kafka's classes in any order."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_tables import TABLES, read_table
from kafka_records_tables.tables.words.causes import HIGH, MEDIUM, STATE_DELETED, TOPIC_DELETED
from tests.tables.histories import history
from tests.tables.share_topic import SHARE_TOPIC, TOPIC_ID, ShareTopic
from tools.judge.cleaner import CleanedLog, table_of

Row = dict[str, Any]

OTHER_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAw"
EITHER: tuple[str, str, list[Row]] = (f"{STATE_DELETED} or {TOPIC_DELETED}", HIGH, [])


def _stays(offset: int) -> tuple[str, str, list[Row]]:
    return STATE_DELETED, HIGH, [{"shows": "stays_in_topic", "log_offset": offset}]


def _goes_on(offset: int) -> tuple[str, str, list[Row]]:
    return STATE_DELETED, MEDIUM, [{"shows": "topic_goes_on", "log_offset": offset}]


def _rows(source: Any, **options: Any) -> list[Row]:
    result = read_table("share_disappearances", source, **options)
    assert result.findings == ()
    rows: list[Row] = result.table.to_pylist()
    return rows


def _said(source: Any, **options: Any) -> list[tuple[str, str, list[Row]]]:
    return [(row["cause"], row["confidence"], row["evidence"]) for row in _rows(source, **options)]


def _in_one_batch(topic: ShareTopic, *offsets: int) -> pa.Table:
    """The raw rows, some of them in one batch."""
    changed = [
        {**row, "base_offset": offsets[0] if row["offset"] in offsets else row["offset"]}
        for row in topic.table().to_pylist()
    ]
    return table_of(changed)


def test_a_state_goes_and_another_of_its_topic_stays() -> None:
    topic = ShareTopic()
    topic.snapshot(state_epoch=7, start_offset=3)
    topic.snapshot(group="stays")
    topic.update((5, 6, 2, 1), start_offset=5)
    topic.update((9, 9, 2, 1))
    topic.delete()

    (row,) = _rows(topic.table())

    assert {name: value for name, value in row.items() if name != "log_timestamp"} == {
        "group_id": "g",
        "topic_id": TOPIC_ID,
        "topic": None,
        "partition": 0,
        "cause": "state_deleted",
        "confidence": "high",
        "possible_causes": ["state_deleted"],
        "evidence": [{"shows": "stays_in_topic", "log_offset": 1}],
        "state_epoch": 7,
        "start_offset": 5,
        "state_log_offset": 3,
        "log_timestamp_ms": 1_700_000_000_000,
        "write_offset": 4,
        "log_partition": 0,
        "log_offset": 4,
    }
    assert round(row["log_timestamp"].timestamp() * 1000) == row["log_timestamp_ms"]


def test_the_last_state_of_a_topic_may_have_gone_with_it() -> None:
    topic = ShareTopic()
    topic.snapshot(start_offset=-1)
    topic.snapshot(topic_id=OTHER_TOPIC_ID)
    topic.delete()
    (row,) = _rows(topic.table())
    assert (row["cause"], row["confidence"], row["evidence"]) == EITHER
    assert (row["possible_causes"], row["start_offset"]) == ([STATE_DELETED, TOPIC_DELETED], None)


def test_a_deleted_topic_has_no_later_record() -> None:
    topic = ShareTopic()
    topic.snapshot()
    topic.delete()
    topic.snapshot(group="later")
    (row,) = _rows(topic.table())
    assert (row["cause"], row["confidence"], row["evidence"]) == _goes_on(2)
    assert row["possible_causes"] == [STATE_DELETED, TOPIC_DELETED]


def test_tombstones_of_one_batch_may_be_of_one_write() -> None:
    topic = ShareTopic()
    for partition in range(3):
        topic.snapshot(partition=partition)
    for partition in range(3):
        topic.delete(partition=partition)

    rows = _rows(_in_one_batch(topic, 3, 4, 5))
    assert [(row["cause"], row["confidence"], row["evidence"]) for row in rows] == [EITHER] * 3
    assert [row["write_offset"] for row in rows] == [3] * 3
    # In separate batches, these are three writes; a deleted topic would have been one write.
    assert _said(topic.table()) == [_stays(2), _stays(2), EITHER]
    # At another time it is another write, even in one batch. Without batches, all may be one write.
    times = {5: 1_700_000_000_001}
    later = [
        {**row, "timestamp_ms": times.get(row["offset"], 1_700_000_000_000)}
        for row in _in_one_batch(topic, 3, 4, 5).to_pylist()
    ]
    assert _said(table_of(later)) == [_stays(2), _stays(2), EITHER]
    assert _said(topic.table().drop_columns(["base_offset", "timestamp_ms"])) == [EITHER] * 3


@pytest.mark.parametrize("missing", [2, 3])
def test_where_records_are_missing_less_stays(missing: int) -> None:
    """The missing records may have deleted states that seem to stay."""
    topic = ShareTopic()
    topic.snapshot()
    topic.snapshot(partition=1)
    topic.delete(group="a")
    topic.delete(partition=2)
    topic.delete()
    topic.delete(group="b")
    whole = topic.table().to_pylist()
    left = table_of([row for row in whole if row["offset"] != missing])

    assert _said(table_of(whole)) == [_stays(1)] * 4
    result = read_table("share_disappearances", left)
    assert [finding.reason for finding in result.findings] == [INCOMPLETE_HISTORY]
    assert [(row["cause"], row["evidence"]) for row in result.table.to_pylist()] == [(EITHER[0], [])] * 3


def test_records_behind_what_counts_may_be_missing() -> None:
    topic = ShareTopic()
    topic.snapshot()
    topic.snapshot(partition=1)
    topic.delete()
    for _ in range(3):
        topic.snapshot(topic_id=OTHER_TOPIC_ID)
    left = table_of([row for row in topic.table().to_pylist() if row["offset"] != 4])
    (row,) = read_table("share_disappearances", left).table.to_pylist()
    assert (row["cause"], row["confidence"], row["evidence"]) == _stays(1)


def test_a_log_whose_beginning_was_deleted() -> None:
    topic = ShareTopic()
    topic.snapshot()
    topic.update((1, 2, 2, 1), start_offset=1)
    topic.delete()
    topic.snapshot()
    topic.delete()
    rows = topic.table().to_pylist()

    def from_on(first: int) -> tuple[list[Any], list[str]]:
        result = read_table("share_disappearances", CleanedLog(table_of(rows[first:]), SHARE_TOPIC, first + 1, first))
        names = ("state_epoch", "start_offset", "state_log_offset")
        found = [tuple(row[name] for name in names) for row in result.table.to_pylist()]
        return found, [finding.consequence for finding in result.findings]

    told = "the history is complete from offset {} on, and has gaps before"
    assert from_on(0) == ([(1, 1, 1), (1, 0, 3)], [])
    assert from_on(1) == ([(None, 1, 1), (1, 0, 3)], [told.format(1)])
    assert from_on(2) == ([(None, None, None), (1, 0, 3)], [told.format(2)])


def test_what_cannot_be_used_is_found() -> None:
    topic = ShareTopic()
    topic.snapshot()
    topic.snapshot(partition=1)
    topic.add_bytes(topic.rows[0][5], b"\x00\x00\x00", topic=SHARE_TOPIC)
    topic.delete(record="share_update", partition=1)
    topic.delete()
    topic.delete(partition=1)
    topic.add_bytes(b"\x00\x00\x00\x05ab", None, topic=SHARE_TOPIC)
    topic.snapshot(group="h")
    topic.delete(group="h")

    result = read_table("share_disappearances", topic.table())

    unread = "not used: a deletion of its share partition may lack its earlier state"
    nameless = "left out: it is unknown which share partition it is about"
    assert [(finding.offset, finding.consequence) for finding in result.findings] == [
        (2, unread),
        (3, unread),
        (6, nameless),
    ]
    told = [
        (row["log_offset"], row["state_epoch"], row["start_offset"], row["state_log_offset"], row["cause"])
        for row in result.table.to_pylist()
    ]
    assert told == [
        (4, None, None, 2, STATE_DELETED),
        (5, None, None, 3, STATE_DELETED),
        (8, 1, 0, 7, EITHER[0]),
    ]


@pytest.mark.parametrize("group", ["", "a\x00b", "\u202eright-to-left", "'; DROP TABLE", "$(id)\n or topic_deleted"])
def test_hostile_names_stay_data(group: str) -> None:
    topic = ShareTopic()
    topic.snapshot(group=group)
    topic.snapshot(group="other")
    topic.delete(group=group)
    topic.delete(group="other")
    assert [row["group_id"] for row in _rows(topic.table())] == [group, "other"]
    # Groups that are not requested still show that their topic exists.
    assert _said(topic.table(), group=group) == [_stays(1)]


def test_a_source_may_know_the_topic() -> None:
    topic = ShareTopic()
    topic.snapshot()
    topic.delete()

    class Named(ArrowRows):
        def known_topics(self) -> KnownTopics:
            return KnownTopics({TOPIC_ID: "orders"})

    assert [row["topic"] for row in _rows(Named(topic.table()))] == ["orders"]


def test_what_was_deleted_on_a_broker(topics_dir: Path) -> None:
    """The expected causes are from the journal of the broker's run: offsets of a topic, then a group; the next line
    came after each."""
    journal = json.loads((topics_dir / "kafka-4.3" / "truth.json").read_text(encoding="utf-8"))["journal"]
    rows = read_table("share_disappearances", topics_dir / "kafka-4.3" / "segments").table.to_pylist()
    found = {(row["group_id"], row["partition"], row["cause"], _behind(journal, row)) for row in rows}
    assert found == {
        *(("archive-pickers", number, STATE_DELETED, "share offsets deleted for one topic") for number in range(3)),
        *(("tmp-pickers", number, STATE_DELETED, "share group deleted") for number in range(2)),
    }


def _behind(journal: list[Row], row: Row) -> str:
    """The last action before the record was written."""
    what = min((each for each in journal if each["ms"] >= row["log_timestamp_ms"]), key=lambda each: each["ms"])["what"]
    done, group = what.split(": ")
    assert group == row["group_id"]
    return str(done)


@pytest.mark.parametrize("name", ["0004-share", "0015-share", "0039-share"])
def test_rows_in_any_order_and_each_twice_are_the_same(name: str) -> None:
    rows = history(name).rows
    order = [*range(rows.num_rows), *range(rows.num_rows)]
    Random(name).shuffle(order)
    expected = _rows(rows)
    assert len(expected) > 4
    assert _rows(rows.take(order)) == expected


def test_the_rules_name_every_word() -> None:
    rules = TABLES["share_disappearances"].rules
    words = (STATE_DELETED, TOPIC_DELETED, HIGH, MEDIUM, "stays_in_topic", "topic_goes_on")
    assert all(f"`{word}`" in rules for word in words)
