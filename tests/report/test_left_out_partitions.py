"""Partitions that a group never reads, while it reads the others of the topic."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

_BEGAN: Final = END_MS - HOUR
_GROUP, _ORDERS = {"group_id": "g-1", "log_partition": 0}, {"topic": "orders"}


def _left_out(
    *,
    added_ms: int | None = END_MS - 30 * MINUTE,
    written_ms: int = END_MS - 20 * MINUTE,
    kind: str = "simple",
    others: dict[str, tuple[int, ...]] | None = None,
    lag: int = 0,
) -> list[ReportFinding]:
    """A group reads partitions 0 and 1 of four, of which two were added later; each has 100 records."""
    places = [("g-1", 0), ("g-1", 1), *((name, each) for name, own in (others or {}).items() for each in own)]
    current = [
        {**_GROUP, **_ORDERS, "group_id": name, "partition": each, "offset": 100, "commit_timestamp_ms": END_MS}
        for name, each in places
    ]
    history = [
        {**_GROUP, **_ORDERS, "partition": each, "offset": at, "log_offset": at, "valid_from_timestamp_ms": at_ms}
        for each in (0, 1)
        for at, at_ms in enumerate(range(_BEGAN, END_MS, 10 * SECOND))
    ]
    ends = [
        {**_ORDERS, "partition": each, "log_start_offset": 0, "log_end_offset": 100, "high_watermark": 100}
        for each in range(4)
    ]
    samples = [{"offset": 49, "timestamp_ms": written_ms}, {"offset": 99, "timestamp_ms": END_MS}]
    made = {**_ORDERS, "event": "created", "partition_count": 2, "at_timestamp_ms": _BEGAN - HOUR, "log_offset": 4}
    grown = {**made, "event": "partitions_added", "partition_count": 4, "at_timestamp_ms": added_ms, "log_offset": 9}
    looks: dict[str, Any] = {
        "history": history,
        "log_samples": [{**each, "samples": samples, "exact_from": 0} for each in ends],
        "topic_changes": [made, grown] if added_ms is not None else [],
    }
    assigned = [{**_GROUP, **_ORDERS, "partition": each, "member_id": "m"} for each in (0, 1)]
    context = _context(
        looks,
        current_offsets=current,
        log_ends=ends,
        lag=[{**_GROUP, **_ORDERS, "partition": 0, "lag": lag}],
        groups=[{**_GROUP, "group_kind": kind}],
        assignments=assigned if kind == "consumer" else [],
    )
    return _found(context, "partitions_left_out")


def test_partitions_that_were_added_later_are_read_by_nobody() -> None:
    (found,) = _left_out()
    assert (found.level, found.partitions, found.scale) == (
        Level.HIGH,
        (2, 3),
        {"records_waiting": 200, "partitions": 2},
    )
    assert (found.since_timestamp_ms, found.evidence_count) == (END_MS - 30 * MINUTE, 2)
    assert [each.name for each in found.causes] == ["fixed_partitions"]
    assert found.next[0].what.startswith("Add partitions 2-3 to the list of partitions")


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ({"kind": "consumer"}, Level.HIGH),
        ({"kind": "consumer", "added_ms": None}, Level.MODERATE),
        ({"kind": "consumer", "written_ms": END_MS - 9 * MINUTE}, None),
        ({"kind": "classic"}, None),
        ({"added_ms": None}, Level.NOTE),
        ({"written_ms": END_MS - MINUTE + 1}, None),
        ({"lag": 200}, None),
        ({"others": {"h": (2, 3)}}, Level.NOTE),
        ({"others": {"h": (2,)}}, Level.HIGH),
        ({"others": {"all": (0, 1, 2, 3)}}, Level.HIGH),
        ({"others": {"g-2": (2, 3)}}, None),
    ],
    ids=str,
)
def test_its_level_depends_on_when_they_were_added_and_on_who_else_reads(
    given: dict[str, Any], level: Level | None
) -> None:
    assert [each.level for each in _left_out(**given)] == ([] if level is None else [level])
