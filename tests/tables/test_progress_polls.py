"""Progress from two polls of coordinators: each state and reason in a synthetic case."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pytest

from kafka_records_engine.sources.protocol import Context
from kafka_records_tables.engines.checked_request import question_of
from kafka_records_tables.engines.request import TableRequest
from kafka_records_tables.tables import TABLES, input_called

T0, T1 = 1_000_000, 1_010_000
"""The times of the two polls, ten seconds apart."""

#        offset before, after; end before, after; last stable offset -> state, reason, commit rate, produce rate
CASES: Final[dict[str, tuple[Any, ...]]] = {
    "moves": (10, 30, 100, 110, 110, "ok", None, 2.0, 1.0),
    "is at the end": (100, 100, 100, 100, 100, "idle", None, 0.0, 0.0),
    "stands still": (10, 10, 100, 100, 100, "stalled or stopped", None, 0.0, 0.0),
    "has got a record since": (100, 100, 100, 105, 105, "ok", None, 0.0, 0.5),
    "is set back": (50, 20, 100, 100, 100, "rewound", None, None, 0.0),
    "commits first": (None, 20, 100, 100, 100, "ok", None, None, 0.0),
    "waits for a transaction": (60, 60, 100, 100, 60, "idle", "open_transaction", 0.0, 0.0),
    "has one offset left": (99, 99, 100, 100, 100, None, "time_unknown", 0.0, 0.0),
    "is beyond the end": (200, 200, 100, 100, 100, None, "beyond_end", 0.0, 0.0),
    "has a negative offset": (-1, -1, 100, 100, 100, None, "beyond_end", 0.0, 0.0),
    "has no known end": (10, 10, None, None, None, None, "end_unknown", 0.0, None),
    "has no log": (10, 10, None, "no log", None, None, "no_log", 0.0, None),
    "has left": (10, 10, 100, 100, 100, "idle", "left", 0.0, 0.0),
}


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    """The rows of all cases, by the group."""

    def table(name: str, told: list[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(told, input_called(name).schema)

    polled = {"partition": 0, "polled_timestamp_ms": T1, "polled_before_ms": T0}
    commits = [
        {"group_id": name, "topic": name, "offset_before": case[0], "offset": case[1], "end_before": case[2], **polled}
        for name, case in CASES.items()
    ]
    ends = [
        {"topic": name, "partition": 0, "high_watermark": case[3], "last_stable_offset": case[4]}
        for name, case in CASES.items()
        if case[3] != "no log"
    ]
    left = [
        {"group_id": "has left", "topic": "has left", "has_left": True},
        {"group_id": "has left", "topic": "another", "partition": 0, "member_id": "m", "has_left": False},
    ]
    parts = {
        "commit_progress": table("commit_progress", commits),
        "assigned_partitions": table("assigned_partitions", left),
        "log_ends": table("log_ends", ends),
    }
    view = TABLES["progress"]
    context: Context = TableRequest(question_of([view])).context("", -1)
    found = pa.Table.from_batches(view.joined(parts, context), view.schema)
    return {row["group_id"]: row for row in found.to_pylist()}


@pytest.mark.parametrize("name", CASES)
def test_states(rows: dict[str, dict[str, Any]], name: str) -> None:
    row = rows[name]
    assert (row["state"], row["reason"], row["commit_rate"], row["produce_rate"]) == CASES[name][5:]


def test_other_columns(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["moves"]
    assert (row["offset"], row["end_offset"], row["known_by"]) == (30, 110, "end")
    assert (row["window_ms"], row["moment_timestamp_ms"]) == (T1 - T0, T1)
    assert row["caught_up_in_ms"] == 80_000  # 80 are left, and it gains one a second
    assert rows["stands still"]["caught_up_in_ms"] is None
    assert rows["is set back"]["fell_from"] == 50
    assert {row["fell_from"] for name, row in rows.items() if name != "is set back"} == {None}
