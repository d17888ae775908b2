"""Share state over logs that Kafka's `ShareCoordinatorShard` wrote, against what it answers after loading them."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_tables import read_table
from tests.tables.histories import SHARE_NAMES, Question, history

Row = dict[str, Any]
Key = tuple[str, str, int]

_COLD_AFTER_MS = "share.coordinator.cold.partition.snapshot.interval.ms"

UNTOLD = ("UNKNOWN_TOPIC_OR_PARTITION",)
"""The coordinator looks a topic up in the metadata of the cluster before it answers; the log does not have them."""


def test_every_history_is_here() -> None:
    assert len(SHARE_NAMES) == 27
    assert sum(len(history(name).cuts) for name in SHARE_NAMES) == 106


@pytest.mark.parametrize("name", SHARE_NAMES)
def test_states_are_those_the_coordinator_answered_with(name: str) -> None:
    cold_after = int(history(name).settings.get(_COLD_AFTER_MS, "300000"))
    for cut, questions in history(name).cuts.items():
        rows = _read(history(name).up_to(cut))
        check_share_states(questions, rows)
        check_cold_snapshots(questions, rows, cold_after)
        (redundant,) = [each["answer"] for each in questions if each["question"] == "last_redundant_offset"]
        snapshots = [row["snapshot_log_offset"] for row in rows.values()]
        # It says none where nothing would be cut, and the end of the log where no state is left.
        assert redundant == (min(snapshots) or None if snapshots else cut)
        if redundant is not None:
            assert _read(history(name).up_to(cut).slice(redundant)) == rows


@pytest.mark.parametrize("name", SHARE_NAMES[::3])
def test_rows_in_any_order_and_each_twice_are_the_same(name: str) -> None:
    rows = history(name).rows
    order = [*range(rows.num_rows), *range(rows.num_rows)]
    Random(name).shuffle(order)
    assert _read(rows.take(order)) == _read(rows)


def _read(rows: pa.Table, **options: Any) -> dict[Key, Row]:
    """The rows of the table by share partition; there is nothing to find, and no state is partial."""
    result = read_table("share_partitions", rows, **options)
    assert result.findings == ()
    found = {(row["group_id"], row["topic_id"], row["partition"]): row for row in result.table.to_pylist()}
    assert len(found) == len(result)
    assert not any(row["is_partial"] for row in found.values())
    return found


def check_share_states(questions: list[Question], rows: dict[Key, Row]) -> None:
    asked = set()
    for question in questions:
        if question["question"] not in ("read_state", "read_summary"):
            continue
        key = question["group"], question["topic_id"], question["partition"]
        asked.add(key)
        answer, row = question["answer"], rows.get(key)
        if "error" in answer:
            is_uninitialized = row is None or row["start_offset"] is None
            assert answer["error"] in UNTOLD or is_uninitialized
        elif question["question"] == "read_state":
            assert row is not None
            assert answer == _state(row)
        else:
            assert answer == (_NO_SUMMARY if row is None else _summary(row))
    assert set(rows) <= asked


_NO_SUMMARY = {"start_offset": -1, "leader_epoch": 0, "state_epoch": 0, "delivery_complete_count": -1}
"""What the coordinator says of a share partition without a state."""


def _state(row: Row) -> Row:
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    return {
        "start_offset": _number(row["start_offset"]),
        "state_epoch": row["state_epoch"],
        "batches": [{name: batch[name] for name in names} for batch in row["batches"]],
    }


def _summary(row: Row) -> Row:
    return {name: _number(row[name]) for name in _NO_SUMMARY}


def _number(told: int | None) -> int:
    return -1 if told is None else told


def check_cold_snapshots(questions: list[Question], rows: dict[Key, Row], cold_after_ms: int) -> None:
    for question in questions:
        if question["question"] == "cold_snapshots":
            at = question["at_ms"]
            # The job does nothing when all partitions have been snapshotted so: the system is quiet then.
            is_quiet = all(row["create_timestamp_ms"] != row["write_timestamp_ms"] for row in rows.values())
            cold = [row for row in rows.values() if at - row["write_timestamp_ms"] >= cold_after_ms]
            expected = [] if is_quiet else [_cold_snapshot(row, at) for row in cold]
            assert sorted(question["answer"], key=str) == sorted(expected, key=str)


def _cold_snapshot(row: Row, at: int) -> Row:
    batches = [
        {
            "firstOffset": batch["first_offset"],
            "lastOffset": batch["last_offset"],
            "deliveryState": batch["delivery_state"],
            "deliveryCount": batch["delivery_count"],
        }
        for batch in row["batches"]
    ]
    count = row["delivery_complete_count"]
    value = {
        "snapshotEpoch": row["snapshot_epoch"] + 1,
        "stateEpoch": row["state_epoch"],
        "leaderEpoch": _number(row["leader_epoch"]),
        "startOffset": _number(row["start_offset"]),
        **({} if count is None else {"deliveryCompleteCount": count}),
        "createTimestamp": row["create_timestamp_ms"],
        "writeTimestamp": at,
        "stateBatches": batches,
    }
    key = {"groupId": row["group_id"], "topicId": row["topic_id"], "partition": row["partition"]}
    return {"type": 0, "key": key, "value": value}
