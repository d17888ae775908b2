"""Groups in which one member is slow, and others keep up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from kafka_records_tables.report.facts.group_facts import LogEnds, Span
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rules import slow_members
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import GROUP
from tests.report.test_rules_in_detail import _context, _found

_SINCE: Final = 2 * MINUTE
_UNTIL: Final = 4 * MINUTE
_NOTHING: Final[Mapping[int, float]] = {}
_OWNERS: Final = {0: "a", 1: "a", 2: "b", 3: "b"}


def _looks(
    reads: Mapping[int, float],
    writes: Mapping[int, float],
    writes_before: Mapping[int, float],
    first_ms: int,
) -> dict[str, list[Any]]:
    """Commits and ends of logs, each second up to `_UNTIL`: ten records per second of each partition are written and
    read up to `_SINCE`."""
    history, samples = [], []
    for number in _OWNERS:
        before = writes_before.get(number, 10.0)
        times = range(first_ms, _UNTIL + 1, SECOND)
        written = {at: _at(at, before, writes.get(number, 10.0)) for at in times}
        history += [
            {
                "group_id": GROUP,
                "topic": "orders",
                "partition": number,
                "offset": _at(at, before, reads.get(number, 10.0)),
                "valid_from_timestamp_ms": at,
                "log_partition": 0,
                "log_offset": at,
                "commits": 1,
            }
            for at in times
        ]
        samples.append(
            {
                "topic": "orders",
                "partition": number,
                "log_start_offset": 0,
                "exact_from": 0,
                "samples": [{"offset": end - 1, "timestamp_ms": at} for at, end in written.items()],
            }
        )
    return {"history": history, "log_samples": samples}


def _at(at_ms: int, before: float, since: float) -> int:
    return 1 + int((min(at_ms, _SINCE) * before + max(at_ms - _SINCE, 0) * since) / SECOND)


def _told(
    reads: Mapping[int, float],
    *,
    writes: Mapping[int, float] = _NOTHING,
    writes_before: Mapping[int, float] = _NOTHING,
    owners: Mapping[int, str | None] = _OWNERS,
    changed_ms: int = 0,
    first_ms: int = 0,
    is_read_by_others: bool = True,
) -> ReportFinding:
    """The finding about a group in which partitions are read as fast as `reads` has them since `_SINCE`, and as fast as
    records are written otherwise."""
    looks = _looks(reads, writes, writes_before, first_ms)
    place = {"group_id": GROUP, "topic": "orders", "log_partition": 0}
    waits = {
        number: _at(_UNTIL, 0, writes.get(number, 10.0)) - _at(_UNTIL, 0, reads.get(number, 10.0)) for number in owners
    }
    lag = [
        {**place, "partition": number, "lag": waits[number], "member_id": member} for number, member in owners.items()
    ]
    members = sorted({each for each in owners.values() if each is not None})
    event = {"group_id": GROUP, "log_partition": 0, "log_offset": 1, "sequence": 0, "event": "assignment_changed"}
    gained = '{"gained": {"orders": [0, 1]}}'
    context = _context(
        looks,
        lag=[*lag, {**place, "group_id": "other", "partition": 0, "lag": 0 if is_read_by_others else None}],
        members=[
            {"group_id": GROUP, "member_id": each, "client_id": f"node-{each}", "client_host": f"/10.0.0.{number}"}
            for number, each in enumerate(members, 1)
        ],
        groups=[{"group_id": GROUP, "member_count": len(members)}],
        timeline=[{**event, "member_id": "a", "at_timestamp_ms": changed_ms, "detail": gained}],
        log_ends=[{"topic": "orders", "partition": number} for number in owners],
        progress=[
            {
                **place,
                "partition": number,
                "state": "falling_behind",
                "offset": 5,
                "end_offset": 5 + waits[number],
                "unread_timestamp_ms": _SINCE,
                "moment_timestamp_ms": _UNTIL,
            }
            for number in owners
        ],
    )
    (found,) = _found(context, "too_slow")
    return found


_ONE_SLOW: Final = {0: 2.0, 1: 3.0}


def test_a_slow_member_is_named_and_more_members_are_not_offered() -> None:
    found = _told(_ONE_SLOW)
    assert [each.name for each in found.causes] == ["slow_member"]
    assert found.causes[0].statement == (
        'Only "node-a" became slow: it reads 5.0 records per second of partitions 0-1, to which 20.0 are written, and '
        'read 20.0 before. 1 other member keeps up: "node-b" reads 20.0 records per second of partitions 2-3.'
    )
    assert 'Look at the host or pod of "node-a" (10.0.0.1)' in found.next[0].what
    assert not any("Add members" in each.what or "Find out why the work" in each.what for each in found.next)
    assert [each.client_id for each in found.who] == ["node-a"]


def test_it_is_not_certain_if_brokers_may_be_slow_or_the_time_before_is_unknown() -> None:
    found = _told(_ONE_SLOW, is_read_by_others=False)
    assert (found.causes[0].name, found.confidence) == ("slow_member", "medium")
    assert any("no other group keeps up" in each.what for each in found.lacked)
    short = _told(_ONE_SLOW, first_ms=_SINCE - 5 * SECOND)
    assert short.causes[0].statement.startswith('Only "node-a" is slow')
    assert any("before the backlog grew" in each.what for each in short.lacked)


@pytest.mark.parametrize(
    "given",
    [
        {"reads": {0: 2.0, 1: 3.0, 2: 2.0, 3: 3.0}},
        {"reads": {0: 10.0}, "writes": {0: 40.0}},
        {"reads": _ONE_SLOW, "writes_before": {0: 3.0, 1: 3.0}},
        {"reads": {0: 4.0, 1: 4.0, 2: 4.0}, "owners": {0: "a", 1: "b", 2: "c", 3: "d"}},
        {"reads": _ONE_SLOW, "changed_ms": _SINCE + MINUTE},
        {"reads": _ONE_SLOW, "owners": {0: "a", 1: "a", 2: "b", 3: None}},
        {"reads": {0: 9.0, 1: 9.0}, "writes": {0: 11.0, 1: 11.0}},
    ],
    ids=["all are slow", "hot", "more is written", "most are slow", "changed hands", "unknown owner", "hardly slower"],
)
def test_otherwise_no_member_is_blamed(given: dict[str, Any]) -> None:
    found = _told(**given)
    assert "slow_member" not in [each.name for each in found.causes]


def test_a_partition_with_a_member_that_is_as_slow_as_what_it_gets_is_not_slow() -> None:
    """It has twice as many partitions as the other member: it has more to read, and is not slower."""
    found = _told({0: 5.0, 1: 5.0, 2: 5.0}, owners={0: "a", 1: "a", 2: "a", 3: "b"})
    assert "slow_member" not in [each.name for each in found.causes]


def test_the_pace_before_counts_from_the_first_commits_on() -> None:
    spans = {("t", 0): [Span(at, at * SECOND, None, None, 0, at, None, 1) for at in range(6, 11)]}
    ends = LogEnds(
        [
            {
                "topic": "t",
                "partition": 0,
                "log_start_offset": 0,
                "exact_from": 0,
                "samples": [{"offset": at, "timestamp_ms": at * SECOND} for at in range(11)],
            }
        ]
    )
    assert slow_members._past_pace([("t", 0)], spans, ends, 0, 10 * SECOND) is None
    found = slow_members._past_pace([("t", 0)], spans, ends, 4 * SECOND, 10 * SECOND)
    assert found is not None
    assert (found.reads, found.writes) == (1.0, 1.0)
