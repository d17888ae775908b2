"""Crash loops of members that get partitions without a committed offset."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY, Finding
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules_in_detail import _context, _found

_GIVEN: Final = END_MS - 2 * MINUTE
"""When a member first gets a partition without an offset."""
_RECORD, _START, _NONE = "poison_record", "fails_at_start", "no_committed_offset"
_Lives = Sequence[Mapping[str, Sequence[int]]]
_NEW: Final = "returns"
_CLEANED: Final = Finding("note", INCOMPLETE_HISTORY, "", "", "__consumer_offsets", 0, complete_from=10**9)
"""A cleaner may have removed everything about the group."""


def _event(event: str, at_ms: int, member: str, **detail: Any) -> dict[str, Any]:
    place = {"log_partition": 0, "log_offset": at_ms - _GIVEN + 10 * MINUTE, "sequence": 0}
    row = {"group_id": GROUP, "event": event, "at_timestamp_ms": at_ms, "member_id": member}
    return row | place | {"detail": json.dumps(detail)}


def _history(deleted: Sequence[int], last_ms: int, placed: Sequence[int]) -> list[dict[str, Any]]:
    """Commits of the old partitions, each second until `last_ms`; the offsets of `deleted` ended 90 s before the
    loop."""
    rows = []
    for partition in placed:
        times = list(range(last_ms - 20 * SECOND, last_ms + 1, SECOND))
        for at, (from_ms, until) in enumerate(zip(times, [*times[1:], None], strict=True)):
            is_gone = until is None and partition in deleted
            row = {"group_id": GROUP, "topic": "orders", "partition": partition, "offset": 50 + at, "commits": 1}
            row |= {"valid_from_timestamp_ms": from_ms, "log_partition": 0, "log_offset": from_ms - END_MS + HOUR}
            row |= {"valid_to_timestamp_ms": _GIVEN - 90 * SECOND if is_gone else until}
            row |= {"ended_by": "tombstone" if is_gone else "commit" if until else None}
            rows.append(row)
    return rows


def _finding(
    lives: _Lives,
    *,
    made: Sequence[tuple[str, str, int, int]] = (),
    deleted: Sequence[int] = (),
    last_ms: int = _GIVEN,
    stay_ms: int = 10,
    pending: Sequence[int] = (),
    held: Sequence[int] = (0, 1),
    cleaned: bool = False,
    is_streams: bool = False,
) -> ReportFinding:
    """The finding about a group of which a member reads two partitions ("orders" 0 and 1), and one member after
    another then gets the partitions in `lives` and leaves. `made` are changes of topics: event, topic, partitions and
    time. `held` are the partitions that the first member had for an hour. In a streams group, members get tasks."""
    events = [
        _event("member_joined", END_MS - HOUR, "old", client_id="w-0", session_timeout_ms=8 * SECOND),
        _event("assignment_changed", END_MS - HOUR, "old", gained={"active 0" if is_streams else "orders": list(held)}),
        _event("member_left", _GIVEN - 1, "old"),
    ]
    for number, places in enumerate(lives):
        at_ms, name = _GIVEN + 5 * SECOND * number, f"m{number}"
        limits = {"session_timeout_ms": 8 * SECOND, "rebalance_timeout_ms": 5 * MINUTE}
        events += [
            _event("member_joined", at_ms, name, client_id=f"w-{number % 2}", **limits),
            _event("assignment_changed", at_ms, name, gained={topic: list(some) for topic, some in places.items()}),
            _event("member_left", at_ms + stay_ms, name),
        ]
    kind = "streams" if is_streams else "classic"
    events = [each | {"group_kind": kind} for each in events]
    events.sort(key=lambda each: each["at_timestamp_ms"])
    committed = [each for each in (0, 1) if each not in deleted]
    lag = {"group_id": GROUP, "topic": "orders", "unread_timestamp_ms": _GIVEN, "lag": 40}
    ends = [(topic, number) for topic in ("orders", _NEW) for number in range(4)]
    logs = [
        {"topic": topic, "partition": number, "log_start_offset": 0, "log_end_offset": 110} for topic, number in ends
    ]
    context = _context(
        {
            "history": _history(deleted, last_ms, (0, 1)),
            "topic_changes": [
                {"event": event, "topic": topic, "partition_count": count, "at_timestamp_ms": at_ms, "log_offset": 7}
                for event, topic, count, at_ms in made
            ],
            "log_samples": [{**each, "exact_from": 0, "samples": []} for each in logs],
        },
        timeline=events,
        log_ends=logs,
        pending_offsets=[{"group_id": GROUP, "topic": "orders", "partition": each} for each in pending],
        lag=[lag | {"partition": each} for each in committed],
        groups=[{"group_id": GROUP, "group_kind": kind, "log_partition": 0, "epoch": 2}],
        assignments=([{"group_id": GROUP, "subtopology_id": "0", "source_topics": ["orders"]}] if is_streams else []),
    )
    (found,) = _found(replace(context, reading=(_CLEANED,) if cleaned else ()), "crash_loop")
    return found


def _causes(found: ReportFinding) -> list[tuple[str, str]]:
    return [(each.name, each.confidence) for each in found.causes]


_GROWN: Final = (("created", "orders", 2, END_MS - 2 * HOUR), ("partitions_added", "orders", 4, _GIVEN - SECOND))
_ALL: Final = {"orders": (0, 1, 2, 3)}


def test_partitions_that_were_added_stop_a_group_with_auto_offset_reset_none() -> None:
    """The first member that leaves had only these, so no record of another partition was the reason."""
    found = _finding([{"orders": (2, 3)}, *[_ALL] * 5], made=_GROWN)
    assert _causes(found) == [(_NONE, "medium"), (_START, "low")]
    assert found.title == "members get partitions without a committed offset, leave and join again, endlessly"
    assert found.since_timestamp_ms == _GIVEN
    assert (
        'got "orders" (partitions 2-3), added at 2026-09-21 13:57:59 UTC (4 partitions in place of 2)' in found.problem
    )
    assert found.scale == {"records_waiting": 2 * 40 + 2 * 110, "attempts": 6, "partitions": 4}
    assert found.partitions == (0, 1, 2, 3)
    assert found.refuted_by[_RECORD].shows == 'w-0 was the first to leave, and had only "orders" (partitions 2-3)'
    assert found.causes[0].evidence_for[0].shows == '"orders" got more partitions: 4 partitions in place of 2'
    stop = found.next[0]
    assert stop.what.startswith(
        'Stop all members of "g", set its offsets for "orders" (partitions 2-3) only to the start'
    )
    assert "--reset-offsets --group g --topic orders:2,3 --to-earliest --dry-run" in (stop.command or "")
    assert found.next[2].what == "Does the log of the application show NoOffsetForPartitionException?"


def test_tasks_of_a_streams_group_are_partitions_without_an_offset() -> None:
    found = _finding([{"active 0": (2, 3)}, *[{"active 0": (0, 1, 2, 3)}] * 5], made=_GROWN, is_streams=True)
    assert _causes(found)[0] == (_NONE, "medium")
    assert found.since_timestamp_ms == _GIVEN
    assert 'got "orders" (partitions 2-3), added at' in found.problem


def test_a_record_is_less_likely_if_several_offsets_stop_at_once() -> None:
    found = _finding([_ALL] * 6, made=_GROWN)
    assert _causes(found) == [(_NONE, "medium"), (_RECORD, "low"), (_START, "low")]
    assert any("a record in each of them would have to fail" in each.shows for each in found.causes[1].evidence_against)


def test_an_offset_that_was_deleted_is_set_again() -> None:
    """The group was stopped, and the offset of one of its partitions expired or was deleted."""
    found = _finding([{"orders": (0, 1)}] * 6, deleted=(1,), last_ms=_GIVEN - 2 * MINUTE)
    assert _causes(found)[0] == (_NONE, "medium")
    assert '"orders" (partition 1), whose offset ended at 2026-09-21 13:56:30 UTC' in found.problem
    assert found.scale["records_waiting"] == 40 + 110 - 70
    assert "to the last ones that were committed" in found.next[0].what
    assert "orders,1,70" in found.next[0].what


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ((("created", _NEW, 2, _GIVEN - MINUTE),), "of a topic that was created at 2026-09-21 13:57:00 UTC"),
        ((("created", _NEW, 2, _GIVEN - HOUR),), "first assigned at 2026-09-21 13:58:00 UTC"),
        ((), "first assigned at 2026-09-21 13:58:00 UTC"),
    ],
    ids=["new topic", "old topic", "no metadata"],
)
def test_a_topic_that_a_group_did_not_read_before(made: Sequence[tuple[str, str, int, int]], why: str) -> None:
    found = _finding([{"orders": (0, 1), _NEW: (0, 1)}] * 6, made=made)
    assert _causes(found)[0] == (_NONE, "medium")
    assert f'"returns" (partitions 0-1), {why}, without a committed offset' in found.problem
    assert found.topics == ("orders", _NEW)
    assert "--topic returns:0,1 --to-earliest" in (found.next[0].command or "")


def test_a_cleaned_log_does_not_show_that_a_group_had_no_offset_before() -> None:
    """The metadata log does, if the partitions were added just before."""
    assert _NONE not in [name for name, _ in _causes(_finding([_ALL] * 6, cleaned=True))]
    assert _causes(_finding([_ALL] * 6, made=_GROWN, cleaned=True))[0] == (_NONE, "medium")


@pytest.mark.parametrize(
    "given",
    [
        {"held": (0, 1, 2, 3)},
        {"lives": [{"orders": (0, 1)}] * 5 + [_ALL]},
        {"stay_ms": 30 * SECOND},
        {"pending": (2, 3)},
        {"last_ms": _GIVEN + 20 * SECOND, "lives": [_ALL] * 20},
    ],
    ids=["it read on with them", "most members had none", "they stay", "transactions commit them", "it reads on"],
)
def test_partitions_without_an_offset_that_do_not_stop_a_group(given: Mapping[str, Any]) -> None:
    found = _finding(**{"lives": [_ALL] * 6, **given})
    assert _NONE not in [name for name, _ in _causes(found)]
    assert _NONE not in found.refuted_by
