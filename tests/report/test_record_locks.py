"""Whether the locks of archived records ran out, from the times between the ends of their deliveries."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_tables.report.facts.share_deliveries import TABLE
from tests.report.incidents import Incident
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _config, _context, _found, _read

Row = dict[str, Any]
LOCK = "share.record.lock.duration.ms"
LOCKS, CANNOT = "locks_run_out", "cannot_be_processed"


@pytest.mark.parametrize(
    ("lock", "gaps", "causes"),
    [
        ("2000", [2600, 2200, 5200, 2700], [LOCKS, CANNOT]),
        ("2000", [20, 15, 2600, 40], [CANNOT]),
        ("2000", [300_000, 290_000, 310_000, 280_000], [CANNOT, LOCKS]),
        (None, [31_000, 30_500, 30_100, 33_000], [LOCKS, CANNOT]),
        (None, [12_000, 12_200, 12_100, 12_900], [LOCKS, CANNOT]),
        (None, [12_000, 200, 1100, 5000], [CANNOT]),
        ("2000", [], [CANNOT]),
    ],
    ids=["too_slow", "released", "waits", "too_slow_by_default", "equal", "not_equal", "unknown"],
)
def test_locks_run_out_if_deliveries_last_as_long(lock: str | None, gaps: list[int], causes: list[str]) -> None:
    row = {"group_id": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "topic": "orders", "partition": 0}
    released = [END_MS - sum(gaps[at:]) for at in range(len(gaps))]
    archived = {**row, "log_partition": 0, "log_offset": 1, "released_ms": released}
    archived |= {"delivery_count": 5, "delivery_state": 4}
    rows = [archived | {"first_offset": at, "last_offset": at, "log_timestamp_ms": END_MS} for at in range(5, 9)]
    looks: dict[str, list[Row]] = {
        "configs": [] if lock is None else [dict(_config(LOCK, lock, "g", "group"))],
        "share_deliveries": rows,
    }
    (found,) = _found(_context(looks, share_partitions=[row], members=[]), "share_records_archived")
    assert [each.name for each in found.causes] == causes
    assert " Most of them follow one another." in found.problem
    is_possible = causes[0] == LOCKS
    assert found.scale.get("records_possibly_lost" if is_possible else "records_lost") == 4
    assert (found.decision is not None) is (LOCKS in causes)
    assert (f"{LOCK}={2 * int(lock or 30_000)}" in str(found.next[1].command)) is is_possible


def test_the_ends_of_earlier_deliveries_are_read(incident: Any) -> None:
    """Of records that were archived at the fifth delivery there are four, in the order of the log; of those that wait
    for another one, as many as they were delivered."""
    poisoned: Incident = incident("poisoned_share")
    rows = _read(TABLE, poisoned.folder)
    assert {row["delivery_state"] for row in rows} == {0, 4}
    for row in rows:
        waits = row["delivery_state"] == 0
        assert len(row["released_ms"]) == (row["delivery_count"] if waits else 4)
        assert sorted(row["released_ms"]) == row["released_ms"]
        assert (row["released_ms"][-1] == row["log_timestamp_ms"]) == waits


@pytest.mark.parametrize(
    ("gaps", "causes"),
    [([2600] * 3, [LOCKS, CANNOT]), ([20, 15, 40], [CANNOT])],
    ids=["too_slow", "released"],
)
def test_the_same_decides_about_records_that_wait_to_be_delivered_again(gaps: list[int], causes: list[str]) -> None:
    """Records that were acknowledged at last count too: their last delivery did not outlast the lock."""
    row = {"group_id": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "topic": "orders", "partition": 0}
    delivered = {**row, "log_partition": 0, "log_offset": 1, "delivery_count": 5, "log_timestamp_ms": END_MS}
    delivered["released_ms"] = [END_MS - sum(gaps[at:]) for at in range(len(gaps) + 1)]
    rows = [delivered | {"first_offset": 5, "last_offset": 6, "delivery_state": state} for state in (0, 2)]
    batch = {"first_offset": 5, "last_offset": 6, "delivery_state": 0, "delivery_count": 4}
    state = row | {"log_partition": 0, "log_offset": 1, "batches": [batch]}
    del state["topic"]
    looks: dict[str, list[Row]] = {"configs": [dict(_config(LOCK, "2000", "g", "group"))], "share_deliveries": rows}
    (found,) = _found(_context(looks, share_partitions=[state], members=[]), "share_redelivery")
    assert [each.name for each in found.causes] == causes
