"""Members that fail on a record, if a cleaner has left little of it, and health that looks like it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY, Finding
from kafka_records_tables.report.facts.cleaned_loops import CleanedLoop, cleaned_loops, is_cut
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_real_clusters import cluster
from tests.report.test_rules_in_detail import _context

_WRITTEN_MS = END_MS - 10 * MINUTE
_SEEN_FROM_MS = END_MS - 6 * SECOND
_NOTE = Finding("note", INCOMPLETE_HISTORY, "", "", "__consumer_offsets", 0)


def _only(name: str, into: Path) -> ReportFinding:
    (found,) = [each for each in read_report(cluster(name, into), processes=1).findings if each.level > Level.NOTE]
    assert (found.kind, found.level, found.symptom_confidence) == ("crash_loop", Level.HIGH, "medium")
    assert "compaction removed" in (found.why_not_sure or "")
    return found


def test_tombstones_of_members_show_a_loop(tmp_path: Path) -> None:
    """A cleaner has left only the tombstones of 56 members of a KIP-848 group, and one last commit."""
    found = _only("poison_record-9004", tmp_path)
    assert abs((found.since_timestamp_ms or 0) - 1795802689341) < 1000
    assert (found.scale["attempts_at_least"], found.scale["partitions"]) == (56, 1)
    assert "does not get past offset 108" in found.problem
    assert "the first member left 80 ms later, at least 56 have left by now, one every 1.6 s" in found.problem
    assert [(each.name, each.confidence) for each in found.causes] == [("poison_record", "medium")]
    assert set(found.refuted_by) == {"fails_at_start", "polls_too_late"}
    assert "--topic meter.v2 --partition 1 --offset 108" in (found.next[0].command or "")


def test_two_members_of_a_classic_group_are_enough_beside_an_old_record(tmp_path: Path) -> None:
    """The log has everything of five seconds, in which two joined, had the partition, and left."""
    found = _only("poison_record-9005", tmp_path)
    assert abs((found.since_timestamp_ms or 0) - 1795798751938) < 5000
    assert "compaction removed the first attempts" in (found.since_note or "")
    assert found.scale["attempts_at_least"] == 2
    assert "2 members took the partition and left" in found.problem
    assert [(each.name, each.confidence) for each in found.causes] == [
        ("poison_record", "medium"),
        ("fails_at_start", "low"),
    ]


@dataclass(frozen=True)
class _Left:
    """The records that a cleaner has left of a group with the partitions orders-0, where it has not read offset 20, and
    orders-1."""

    departed: Sequence[int] = ()
    """When members left, in milliseconds after the record at offset 20 was written."""
    lives: Sequence[tuple[int, int]] = ()
    """When members with both partitions joined and left, in milliseconds after the log begins to show the group."""
    offsets: Sequence[int] = (20,)
    """The offsets that were committed to orders-0 since then."""
    seen_from_ms: int = _SEEN_FROM_MS
    members: int = 1
    written_ms: int = _WRITTEN_MS
    epoch: int = 200


_EVENT = {"group_id": "g", "log_partition": 0, "sequence": 0, "group_kind": "consumer"}


def _events(left: _Left) -> list[dict[str, Any]]:
    first = left.seen_from_ms
    rows = [
        {**_EVENT, "event": "created", "at_timestamp_ms": first, "log_offset": 1},
        {**_EVENT, "event": "epoch", "at_timestamp_ms": END_MS - SECOND, "log_offset": 10_000},
    ]
    for at, (joined, gone) in enumerate(left.lives):
        member = {**_EVENT, "member_id": f"m{at}"}
        gained = json.dumps({"gained": {"orders": [0, 1]}})
        for event, ms, detail in (
            ("member_joined", joined, json.dumps({"client_id": "c"})),
            ("assignment_changed", joined, gained),
            ("member_left", gone, None),
        ):
            offset = 10 + 10 * ms + len(rows)
            rows.append(
                {**member, "event": event, "at_timestamp_ms": first + ms, "log_offset": offset, "detail": detail}
            )
    return rows


def _loops(left: _Left, *findings: Finding) -> list[CleanedLoop]:
    place = {"group_id": "g", "topic": "orders", "log_partition": 0}
    times = [left.seen_from_ms + at for at in range(len(left.offsets))]
    history = [
        {
            **place,
            "partition": 0,
            "offset": offset,
            "valid_from_timestamp_ms": at,
            "valid_to_timestamp_ms": None if at == times[-1] else at + 1,
            "log_offset": 2,
            "commits": 1,
        }
        for offset, at in zip(left.offsets, times, strict=True)
    ]
    history.append({**history[-1], "partition": 1, "offset": 90})
    departed = [
        {"group_id": "g", "member_id": f"d{at}", "log_timestamp_ms": left.written_ms + ms, "log_partition": 0}
        for at, ms in enumerate(left.departed)
    ]
    group = {**place, "group_kind": "consumer", "epoch": left.epoch, "member_count": left.members}
    context = _context(
        {"history": history, "departed_members": departed},
        groups=[{name: value for name, value in group.items() if name != "topic"}],
        timeline=_events(left),
        lag=[{**place, "partition": 0, "offset": 20, "lag": 70, "unread_timestamp_ms": left.written_ms}],
    )
    return cleaned_loops(replace(context, reading=findings or (_NOTE,)), set())


_OFTEN = range(100, 9 * MINUTE, 20 * SECOND)
_LOOP = _Left(departed=_OFTEN)
_TWO = _Left(lives=[(SECOND, 2 * SECOND), (3 * SECOND, 4 * SECOND)])


def test_members_that_begin_to_leave_when_a_record_is_written_fail_on_it() -> None:
    (found,) = _loops(_LOOP)
    assert (found.place, len(found.departures), found.slots, found.by_tombstones) == (("orders", 0), 27, 2, True)
    (found,) = _loops(_TWO)
    assert (len(found.seen), found.by_tombstones, found.every_ms) == (2, False, 2 * SECOND)


def test_an_old_commit_that_is_left_does_not_show_what_happened_since() -> None:
    """Members of the first second of the complete part of the log may have joined before it."""
    began = _WRITTEN_MS - SECOND
    lives = [(at - began, at - began + SECOND) for at in range(_SEEN_FROM_MS, END_MS - SECOND, 2 * SECOND)]
    left = _Left(lives=lives, seen_from_ms=began)
    assert _loops(left) == []
    (found,) = _loops(left, replace(_NOTE, complete_from=5))
    assert (len(found.seen), found.seen_from_ms) == (len(lives) - 1, _SEEN_FROM_MS)


@pytest.mark.parametrize(
    "left",
    [
        replace(_LOOP, departed=range(-9 * MINUTE, 9 * MINUTE, 20 * SECOND)),
        replace(_LOOP, departed=range(3 * MINUTE, 9 * MINUTE, 20 * SECOND)),
        replace(_LOOP, members=20),
        replace(_LOOP, departed=range(100, 7 * 20 * SECOND, 20 * SECOND)),
        replace(_LOOP, offsets=(10, 20)),
        replace(_LOOP, seen_from_ms=_WRITTEN_MS - SECOND),
        replace(_LOOP, epoch=7),
        replace(_TWO, lives=[(0, 2 * SECOND), (0, 4 * SECOND)]),
        replace(_TWO, lives=[(SECOND, 2 * SECOND)]),
        replace(_TWO, written_ms=_SEEN_FROM_MS - SECOND),
        replace(_TWO, written_ms=END_MS - HOUR),
    ],
    ids=[
        "jobs that did so before",
        "jobs that began later",
        "many members are restarted",
        "too few for two partitions",
        "the offset moves",
        "the log has it all",
        "a new group",
        "the group is stopped",
        "one restart",
        "a young record",
        "a partition that was left out for longer",
    ],
)
def test_members_that_come_and_go_are_no_loop(left: _Left) -> None:
    assert _loops(left) == []


def test_only_a_cleaned_log_is_looked_at() -> None:
    """In other logs, missing records never existed."""
    assert _loops(_LOOP, replace(_NOTE, partition=1)) == []
    context = _context(groups=[{"group_id": "g", "log_partition": 0, "epoch": 1}], timeline=_events(_TWO))
    cleaned = replace(context, reading=(_NOTE,))
    assert [is_cut(each, "g", _SEEN_FROM_MS - 1) for each in (context, cleaned)] == [False, True]
    assert not is_cut(cleaned, "g", _SEEN_FROM_MS)
