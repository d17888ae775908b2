"""Compares the table `share_partitions` with the answers of a share coordinator about the state of partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.judge.answers import Difference, Loaded, asked, differing

TABLE = "share_partitions"

Row = dict[str, Any]
Key = tuple[str, str, int]

_COLD_AFTER = "share.coordinator.cold.partition.snapshot.interval.ms"
_NO_SUMMARY = {"start_offset": -1, "leader_epoch": 0, "state_epoch": 0, "delivery_complete_count": -1}
"""The answer of the coordinator about a share partition without state."""


def share_partitions(loaded: Loaded) -> Iterator[Difference]:
    """Compare the states, the snapshots of them that are due, and the offset from which on the log is needed."""
    table = [_as_loaded(loaded, row) for row in loaded.read(TABLE).to_pylist()]
    rows = {(row["group_id"], row["topic_id"], row["partition"]): row for row in table}
    if len(rows) < len(table):
        yield Difference(TABLE, "several rows of a share partition", len(rows), len(table))
    known: set[Key] = set()
    for question in loaded.questions:
        if question["question"] in ("read_state", "read_summary"):
            key = question["group"], question["topic_id"], question["partition"]
            known.add(key)
            expected, got = question["answer"], _told(question["question"], rows.get(key))
            if not _is_refused(loaded, expected, rows.get(key)):
                yield from differing(TABLE, asked(question), expected, got)
        elif question["question"] == "cold_snapshots":
            expected, got = _by_key(question["answer"]), _by_key(_cold(loaded, question["at_ms"], table))
            yield from differing(TABLE, asked(question), expected, got)
        elif question["question"] == "last_redundant_offset":
            yield from differing(TABLE, asked(question), {"": question["answer"]}, {"": _redundant(loaded, table)})
    if rows.keys() - known:
        yield Difference(TABLE, "share partitions that nobody has heard of", set(), rows.keys() - known)


def _as_loaded(loaded: Loaded, row: Row) -> Row:
    if not row["is_partial"]:
        return row
    loaded.untold("a state without its snapshot", None)
    return row | {"state_epoch": 0, "create_timestamp_ms": 0, "write_timestamp_ms": 0}


def _is_refused(loaded: Loaded, answer: Row, row: Row | None) -> bool:
    """Whether the coordinator answers with an error that is allowed."""
    if answer.get("error") == "UNKNOWN_TOPIC_OR_PARTITION":
        loaded.untold("a topic that the cluster does not have", None)
        return True
    return "error" in answer and (row is None or row["start_offset"] is None)


def _told(question: str, row: Row | None) -> Row:
    if row is None:
        return _NO_SUMMARY if question == "read_summary" else {}
    if question == "read_summary":
        return {name: _number(row[name]) for name in _NO_SUMMARY}
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    return {
        "start_offset": _number(row["start_offset"]),
        "state_epoch": row["state_epoch"],
        "batches": [{name: batch[name] for name in names} for batch in row["batches"]],
    }


def _number(told: int | None) -> int:
    return -1 if told is None else told


def _by_key(snapshots: list[Row]) -> dict[str, Row]:
    return {str(each["key"]): each for each in snapshots}


def _cold(loaded: Loaded, at_ms: int, rows: list[Row]) -> list[Row]:
    """The snapshots that the job for cold partitions writes."""
    if all(row["create_timestamp_ms"] != row["write_timestamp_ms"] for row in rows):
        # It has already snapshotted all of them, because the system is quiet.
        return []
    cold_after = int(loaded.history.settings[_COLD_AFTER])
    return [_snapshot(row, at_ms) for row in rows if at_ms - row["write_timestamp_ms"] >= cold_after]


def _snapshot(row: Row, at_ms: int) -> Row:
    count = row["delivery_complete_count"]
    batches = [
        {
            "firstOffset": batch["first_offset"],
            "lastOffset": batch["last_offset"],
            "deliveryState": batch["delivery_state"],
            "deliveryCount": batch["delivery_count"],
        }
        for batch in row["batches"]
    ]
    value = {
        "snapshotEpoch": row["snapshot_epoch"] + 1,
        "stateEpoch": row["state_epoch"],
        "leaderEpoch": _number(row["leader_epoch"]),
        "startOffset": _number(row["start_offset"]),
        **({} if count is None else {"deliveryCompleteCount": count}),
        "createTimestamp": row["create_timestamp_ms"],
        "writeTimestamp": at_ms,
        "stateBatches": batches,
    }
    key = {"groupId": row["group_id"], "topicId": row["topic_id"], "partition": row["partition"]}
    return {"type": 0, "key": key, "value": value}


def _redundant(loaded: Loaded, rows: list[Row]) -> int | None:
    """The offset below which the coordinator would delete records: None if there are none, the end of the log if no
    state is left."""
    snapshots = [row["snapshot_log_offset"] for row in rows if not row["is_partial"]]
    return min(snapshots) or None if snapshots else loaded.cut
