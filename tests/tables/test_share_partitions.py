"""Share state from synthetic records: partial states, records that no coordinator could load, and what a pruned log
shows."""

from __future__ import annotations

import gzip
import json
from random import Random
from typing import Any

import numpy as np
import pytest

from kafka_records_engine.findings import Finding
from kafka_records_tables import read_table
from kafka_records_tables.coordinator.records import since_snapshot
from kafka_records_tables.coordinator.shares.share_batches import UNDECIDED, StateBatch, combined, combined_at_once
from tests.conftest import DATA_DIR
from tests.tables.share_topic import SHARE_TOPIC, TOPIC_ID, Batch, ShareTopic
from tools.judge.cleaner import CleanedLog, table_of

Row = dict[str, Any]
LEFT_OUT = "its share partition has no row: an older state would be wrong"
BATCHES = DATA_DIR / "kafka" / "share-batches.jsonl.gz"


def test_batches_are_put_together_as_kafka_does_it() -> None:
    def batches(rows: list[list[int]]) -> list[StateBatch]:
        return [StateBatch(*row) for row in rows]

    with gzip.open(BATCHES, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]

    assert len(cases) == 2000
    for case in cases:
        found = combined(batches(case["so_far"]), batches(case["new"]), case["start_offset"])
        assert found == batches(case["combined"])


def _in_turn(records: list[list[StateBatch]], start_offset: int) -> list[StateBatch]:
    left, *updates = records
    for new in updates:
        left = combined(left, new, start_offset)
    return left


def test_batches_of_many_share_partitions_are_put_together_as_in_turn() -> None:
    """Where the result may depend on the order, there is none: neither too seldom nor for most share partitions."""
    chance = Random(22)
    cases: list[tuple[list[list[StateBatch]], int]] = []
    for number in range(3000):
        width, most = chance.choice([4, 12, 40]), chance.choice([1, 2, 5])
        records = []
        for _ in range(chance.randint(2, 6)):
            firsts = [chance.randrange(width) for _ in range(chance.randint(0, 4))]
            state = chance.choice([0, 2, 4, -128, 127])
            records.append([StateBatch(a, a + chance.randrange(5), chance.randint(1, most), state) for a in firsts])
        cases.append((records, UNDECIDED if number % 3 else chance.randrange(width)))
    places = [place for place, (records, _) in enumerate(cases) for batches in records for _ in batches]
    every = [batch for records, _ in cases for batches in records for batch in batches]

    at, batches, is_open = combined_at_once(
        np.array(places), np.array(every).T, np.array([start for _, start in cases])
    )

    found: list[list[StateBatch]] = [[] for _ in cases]
    for place, batch in zip(at.tolist(), batches.T.tolist(), strict=True):
        found[place].append(StateBatch(*batch))
    for place, case in enumerate(cases):
        assert found[place] == ([] if is_open[place] else _in_turn(*case)), case
    assert 500 < is_open.sum() < 2500


@pytest.mark.parametrize("last", [2**63 - 1, 2**62])
def test_batches_that_are_too_far_apart_are_left_to_the_order(last: int) -> None:
    batches = np.array([StateBatch(0, 4, 1, 2), StateBatch(last - 1, last, 1, 2)]).T
    at, left, is_open = combined_at_once(np.array([0, 2]), batches, np.full(3, UNDECIDED))
    assert (len(at), left.shape, is_open.tolist()) == (0, (4, 0), [True] * 3)


def test_many_batches_inside_each_other_are_left_to_the_order() -> None:
    nested = [StateBatch(number, 200 - number, number, 2) for number in range(100)]
    places = np.array([0] * len(nested) + [1])
    at, left, is_open = combined_at_once(places, np.array([*nested, nested[0]]).T, np.full(2, UNDECIDED))
    assert (at.tolist(), left.T.tolist(), is_open.tolist()) == ([1], [[0, 200, 0, 2]], [True, False])


def _rows(topic: ShareTopic, **options: Any) -> list[Row]:
    result = read_table("share_partitions", topic.table(), **options)
    assert result.findings == ()
    rows: list[Row] = result.table.to_pylist()
    return rows


def _batches(row: Row) -> list[Batch]:
    return [(b["first_offset"], b["last_offset"], b["delivery_state"], b["delivery_count"]) for b in row["batches"]]


def test_a_snapshot_with_an_update() -> None:
    topic = ShareTopic()
    topic.snapshot(
        (0, 4, 2, 1), (5, 9, 0, 1), snapshot_epoch=3, state_epoch=7, leader_epoch=2, delivery_complete_count=5
    )
    topic.update((5, 6, 4, 2), (12, 12, 9, 1), snapshot_epoch=3, start_offset=3)

    (row,) = _rows(topic)

    assert _batches(row) == [(3, 4, 2, 1), (5, 6, 4, 2), (7, 9, 0, 1), (12, 12, 9, 1)]
    assert [batch["delivery_state_name"] for batch in row["batches"]] == ["Acknowledged", "Archived", "Available", "9"]
    assert {name: row[name] for name in row if name != "batches" and not name.endswith("_timestamp")} == {
        "group_id": "g",
        "topic_id": TOPIC_ID,
        "partition": 0,
        "state_epoch": 7,
        "leader_epoch": 2,
        "start_offset": 3,
        "delivery_complete_count": None,
        "coordinator_lag": None,
        "available_count": 3,
        "acknowledged_count": 2,
        "archived_count": 2,
        "other_count": 1,
        "snapshot_epoch": 3,
        "update_count": 1,
        "create_timestamp_ms": 10,
        "write_timestamp_ms": 20,
        "is_partial": False,
        "log_partition": 0,
        "log_offset": 1,
        "snapshot_log_offset": 0,
    }


def test_a_start_that_moves_back_brings_nothing_back() -> None:
    topic = ShareTopic()
    topic.snapshot((0, 9, 2, 1), start_offset=0)
    topic.update((10, 19, 0, 1), start_offset=8)
    topic.update((20, 21, 0, 1), start_offset=2)
    topic.update((5, 6, 4, 1))
    (row,) = _rows(topic)
    assert row["start_offset"] == 2
    assert _batches(row) == [(5, 6, 4, 1), (8, 9, 2, 1), (10, 21, 0, 1)]


def test_boundaries_of_batches_depend_on_the_order_of_updates() -> None:
    topic = ShareTopic()
    wide, other = (5, 7, 2, 2), (20, 20, 2, 2)
    for partition, updates in enumerate([(wide, other), (other, wide)]):
        topic.snapshot((0, 4, 2, 2), (5, 6, 2, 1), partition=partition)
        for update in updates:
            topic.update(update, partition=partition)
    assert [_batches(row) for row in _rows(topic)] == [[(0, 7, 2, 2), other], [(0, 4, 2, 2), wide, other]]


def test_what_is_not_decided_is_null() -> None:
    topic = ShareTopic()
    topic.snapshot(start_offset=-1, leader_epoch=-1)
    (row,) = _rows(topic)
    assert (row["start_offset"], row["leader_epoch"], row["delivery_complete_count"]) == (None, None, None)


def test_a_state_that_begins_with_an_update_is_partial() -> None:
    topic = ShareTopic()
    topic.update((5, 6, 2, 1), snapshot_epoch=4)
    topic.update((8, 8, 2, 1), snapshot_epoch=4, start_offset=5, leader_epoch=3)

    (row,) = _rows(topic)

    assert row["is_partial"]
    assert _batches(row) == [(5, 6, 2, 1), (8, 8, 2, 1)]
    assert (row["start_offset"], row["leader_epoch"], row["snapshot_epoch"], row["update_count"]) == (5, 3, 4, 2)
    assert [row[name] for name in ("state_epoch", "create_timestamp", "write_timestamp_ms", "snapshot_log_offset")] == [
        None
    ] * 4


def test_an_update_of_another_snapshot_makes_a_state_partial() -> None:
    topic = ShareTopic()
    topic.snapshot(snapshot_epoch=1)
    topic.update(snapshot_epoch=2)
    assert [row["is_partial"] for row in _rows(topic)] == [True]
    topic.snapshot(snapshot_epoch=3)
    assert [row["is_partial"] for row in _rows(topic)] == [False]


def test_a_tombstone_ends_a_state() -> None:
    topic = ShareTopic()
    topic.snapshot((0, 9, 2, 1), group="gone")
    topic.snapshot((0, 9, 2, 1), group="back")
    topic.update((10, 11, 2, 1), group="gone")
    topic.delete(group="gone")
    topic.delete(group="back")
    topic.snapshot(group="back", state_epoch=2)

    (row,) = _rows(topic)

    assert (row["group_id"], row["state_epoch"], row["batches"]) == ("back", 2, [])


def test_a_range_may_name_more_offsets_than_there_are() -> None:
    topic = ShareTopic()
    topic.snapshot((-(2**63), 2**63 - 1, 2, 1), (5, 2**63 - 1, 0, 2))
    topic.update((7, 7, -128, 32767))

    (row,) = _rows(topic)

    assert _batches(row) == [(0, 4, 2, 1), (5, 6, 0, 2), (7, 7, -128, 32767), (8, 2**63 - 1, 0, 2)]
    assert (row["available_count"], row["other_count"]) == (2**63 - 6, 1)
    topic.snapshot((-(2**63), 2**63 - 1, 2, 1))
    assert _rows(topic)[0]["acknowledged_count"] == 2**63 - 1


@pytest.mark.parametrize("group", ["", "a\x00b", "‮right-to-left", "'; DROP TABLE", "g" * 32_767, "$(id)\n", "🦄"])
def test_hostile_names_stay_data(group: str) -> None:
    topic = ShareTopic()
    topic.snapshot(group=group)
    topic.update((1, 2, 2, 1), group=group)
    topic.snapshot(group="other")
    assert {row["group_id"]: row["update_count"] for row in _rows(topic)} == {group: 1, "other": 0}
    assert [row["group_id"] for row in _rows(topic, group=group)] == [group]


# -- what no coordinator could load ------------------------------------------------------------------------------------


def _damage(topic: ShareTopic) -> tuple[list[Row], Finding]:
    result = read_table("share_partitions", topic.table())
    (finding,) = result.findings
    assert (finding.severity, finding.consequence) == ("damage", LEFT_OUT)
    return result.table.to_pylist(), finding


@pytest.mark.parametrize(
    ("what", "record_type"),
    [
        ("an update without a value", 1),
        ("a batch that ends before it begins", 1),
        ("a batch that ends before it begins", 0),
    ],
)
def test_a_record_that_cannot_be_replayed(what: str, record_type: int) -> None:
    topic = ShareTopic()
    topic.snapshot(group="other")
    topic.snapshot()
    if what == "an update without a value":
        topic.delete(record="share_update")
    else:
        (topic.update if record_type else topic.snapshot)((0, 3, 2, 1), (9, 7, 2, 1))
    topic.update((1, 1, 2, 1))

    rows, finding = _damage(topic)

    assert [row["group_id"] for row in rows] == ["other"]
    assert (finding.reason, finding.what, finding.record_type, finding.offset) == ("UnknownState", what, record_type, 2)
    topic.snapshot()
    assert len(_rows(topic)) == 2


def test_a_record_that_cannot_be_decoded() -> None:
    topic = ShareTopic()
    topic.snapshot()
    key = topic.rows[-1][5]
    topic.add_bytes(b"\x00\x01" + key[2:], b"\x00\x00\x00", topic=SHARE_TOPIC)
    topic.update((1, 1, 2, 1))
    rows, finding = _damage(topic)
    assert (rows, finding.record_type, finding.offset) == ([], 1, 1)
    # A snapshot makes the state complete again, so there is no finding.
    topic.snapshot((4, 4, 2, 1))
    assert [_batches(row) for row in _rows(topic)] == [[(4, 4, 2, 1)]]


def test_a_key_that_cannot_be_read_is_found() -> None:
    topic = ShareTopic()
    topic.snapshot()
    for key in (b"\x00\x01\x00\x05ab", b"\x00", None):
        topic.add_bytes(key, b"", topic=SHARE_TOPIC)
    result = read_table("share_partitions", topic.table())
    assert len(result) == 1
    assert [finding.consequence for finding in result.findings] == [
        "not used: it is unknown which share partition it is about"
    ] * 3


def test_bytes_behind_a_key_are_the_same_share_partition() -> None:
    topic = ShareTopic()
    topic.snapshot((0, 1, 2, 1), snapshot_epoch=1)
    *_, key, value, _, _, _, _, _, _ = topic.rows[-1]
    topic.update((2, 3, 0, 1), snapshot_epoch=1)
    topic.add_bytes(key + b"behind", value, topic=SHARE_TOPIC)
    (row,) = read_table("share_partitions", topic.table()).table.to_pylist()
    assert (_batches(row), row["log_offset"]) == ([(0, 1, 2, 1)], 2)


# -- many records, and logs without a beginning ------------------------------------------------------------------------


def test_records_are_squeezed_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = ShareTopic()
    for number in range(300):
        partition = number % 7
        if number % 5 == 0:
            topic.snapshot((number, number, 2, 1), partition=partition)
        elif number % 11 == 0:
            topic.delete(partition=partition)
        else:
            topic.update((number, number + 3, number % 3, 1), partition=partition)
    expected = read_table("share_partitions", topic.table()).table.to_pylist()
    kept: list[int] = []
    squeeze = since_snapshot.SinceSnapshot._squeeze

    def watched(self: since_snapshot.SinceSnapshot) -> None:
        squeeze(self)
        kept.append(self._count)

    monkeypatch.setattr(since_snapshot, "_MOST_ROWS", 20)
    monkeypatch.setattr(since_snapshot.SinceSnapshot, "_squeeze", watched)
    cleaned = CleanedLog(topic.table(), SHARE_TOPIC, 0)

    assert read_table("share_partitions", cleaned).table.to_pylist() == expected
    assert len(kept) > 3
    assert max(kept) < 100


def _pruned(topic: ShareTopic, log_start: int) -> CleanedLog:
    """The log from `log_start` on, one record a second, in a source that knows the log start."""
    rows = [{**row, "timestamp_ms": 1000 * row["offset"]} for row in topic.table().to_pylist()]
    return CleanedLog(table_of(rows[log_start:]), SHARE_TOPIC, log_start + 1, log_start)


def test_a_pruned_log_does_not_tell_of_earlier_moments() -> None:
    topic = ShareTopic()
    topic.snapshot(group="early")
    topic.snapshot(group="late")
    topic.update((1, 1, 2, 1), group="late")
    topic.snapshot(group="early", snapshot_epoch=1)
    topic.snapshot(group="late", snapshot_epoch=1)
    log = _pruned(topic, 2)

    now = read_table("share_partitions", log)
    assert now.findings == ()
    assert now.table.equals(read_table("share_partitions", topic.table()).table)
    then = read_table("share_partitions", log, as_of=2500)
    (finding,) = then.findings
    assert str(finding) == (
        "__share_group_state-0: records at some offsets are missing: the coordinator removed them, or a file is "
        "missing (rows may be missing or not as they were then; as of 1970-01-01T00:00:04.000Z or later the answer is "
        "complete)"
    )
    assert [(row["group_id"], row["is_partial"]) for row in then.table.to_pylist()] == [("late", True)]
    assert read_table("share_partitions", log, as_of=4000).findings == ()
    assert read_table("share_partitions", _pruned(topic, 0), as_of=2500).findings == ()
