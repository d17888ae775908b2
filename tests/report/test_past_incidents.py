"""Findings about incidents that are over: loops of failing consumers, and offsets that were deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kafka_records_tables.report.facts.group_facts import MemberLife, Span
from kafka_records_tables.report.incident_rule import Incident
from kafka_records_tables.report.rules.past_crash_loops import past_incident, past_loops
from tests.report.made_up_cluster import HOUR, MINUTE
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

Row = Mapping[str, Any]
_PLACE = {"group_id": "g", "topic": "orders", "partition": 0}
_SINCE = END_MS - 3 * HOUR
_STAY = 5 * MINUTE + 1000


def _loop(
    others: Sequence[Span] = (),
    limits: Sequence[int] = (),
    stays: Sequence[int] = (_STAY,),
    ended_by: str = "commit",
    next_at: int = 50,
) -> Incident:
    """Ten members that had orders-0 one after another and left at the same offset. Two hours ago, the group got past it
    with a commit of 20."""
    lives = []
    for at in range(10):
        joined = _SINCE + at * 6 * MINUTE
        left = joined + stays[at % len(stays)]
        limit = next(iter(limits), None)
        life = MemberLife("g", f"m{at}", joined, 10 + 3 * at, 0, "c", rebalance_timeout_ms=limit)
        life.left_ms, life.left_at = left, 12 + 3 * at
        lives.append(life)
        lives[-1].places.add(("orders", 0))
    ended = _SINCE + HOUR
    spans = {
        ("g", "orders", 0): [
            Span(5, _SINCE, ended, ended_by, 0, 9, None, 1),
            Span(20, ended, None, None, 0, next_at, None, 1),
        ],
        ("g", "orders", 1): [Span(5, _SINCE - 1, None, None, 0, 8, None, 1), *others],
    }
    samples = {"topic": "orders", "partition": 0, "samples": [{"offset": 20, "timestamp_ms": 1}], "exact_from": 0}
    context = _context({"log_samples": [samples]})
    return past_incident(context, "g", past_loops(context, "g", spans, lives), lives, spans)


_RISES = [Span(9, _SINCE + MINUTE, None, None, 0, 12, None, 1)]
_FALLS = [Span(3, _SINCE + MINUTE, None, None, 0, 12, None, 1)]


@pytest.mark.parametrize(
    ("others", "refuted"), [(_RISES, True), (_FALLS, False), ([], False)], ids=["rises", "falls", "stays"]
)
def test_a_past_loop_is_not_certain_because_another_partition_moved(others: list[Span], refuted: bool) -> None:
    found = _loop(others)
    assert not any(each.is_certain for each in found.verdicts.values())
    assert (found.verdicts["fails_at_start"].refuted_by is not None) == refuted
    # All these members have one client id, so one process may have ended for another reason.
    assert len(found.verdicts["poison_record"].evidence_for) == 1
    assert ("process_dies" in found.verdicts) == refuted
    assert set(found.finding.thresholds) == {"crash_loop.attempts", "report.group_settles_within"}


@pytest.mark.parametrize(
    ("limits", "stays", "counts"),
    [
        ([5 * MINUTE], [_STAY], (1, 0, False, 0)),
        ([HOUR], [_STAY], (0, 0, True, 0)),
        ([], [_STAY], (0, 0, False, 1)),
        ([5 * MINUTE], [1000, _STAY, 60_000], (0, 0, True, 0)),
    ],
    ids=["its_value", "another_value", "unknown", "at_no_fixed_time"],
)
def test_members_of_a_past_loop_may_have_polled_too_late(
    limits: list[int], stays: list[int], counts: tuple[int, int, bool, int]
) -> None:
    found = _loop((), limits, stays)
    late = found.verdicts["polls_too_late"]
    shown = len(late.evidence_for), len(late.evidence_against), late.refuted_by is not None, len(late.lacked)
    assert shown == counts
    assert found.finding.title.startswith("members polled too late" if late.evidence_for else "members failed on")


@pytest.mark.parametrize(
    ("next_at", "ended_by", "words"),
    [
        (38, "commit", "when members committed 20"),
        (50, "commit", "when the group had no members: a tool, or a client that is not a member, committed 20"),
        (50, "tombstone", "when that offset was deleted"),
    ],
)
def test_the_order_of_records_decides_who_ended_a_past_loop(next_at: int, ended_by: str, words: str) -> None:
    """The last member leaves in the millisecond of the next commit."""
    found = _loop(stays=[6 * MINUTE], ended_by=ended_by, next_at=next_at)
    assert f", {words}." in found.finding.problem
    assert found.verdicts["poison_record"].statement.endswith(", until it got past it.") == (
        "members committed" in words
    )


def _change(event: str, at_ms: int) -> Row:
    row = {"topic": "orders", "topic_id": f"id-{at_ms}", "event": event, "partition_count": 1, "log_offset": at_ms}
    return row | {"at_timestamp_ms": at_ms, "configs": [] if event == "created" else None}


_CREATED = _change("created", END_MS - 9 * HOUR)
_RECREATED = [_change("deleted", END_MS - HOUR - 5), _change("created", END_MS - HOUR)]


@pytest.mark.parametrize(
    ("possible", "changes", "causes"),
    [
        (["offset_deleted"], [], [("offsets_deleted", "high")]),
        (["offset_deleted", "topic_deleted"], [], [("offsets_deleted", "medium")]),
        (["offset_deleted", "topic_deleted"], [_CREATED], [("offsets_deleted", "high")]),
        (["offset_deleted", "topic_deleted"], [_CREATED, *_RECREATED], None),
    ],
    ids=["by_request", "maybe_the_topic", "not_the_topic", "the_topic"],
)
def test_offsets_may_be_gone_with_their_topic(
    possible: list[str], changes: list[Row], causes: list[tuple[str, str]] | None
) -> None:
    """Before Kafka 4.1 commits have no ids of topics, so only the metadata log shows that a topic was recreated."""
    gone = {**_PLACE, "record": "OffsetCommit", "cause": " or ".join(possible), "possible_causes": possible}
    gone |= {"log_partition": 0, "log_offset": 5, "log_timestamp_ms": END_MS - HOUR}
    commit = {**_PLACE, "log_partition": 0}
    before, after = END_MS - 2 * HOUR, END_MS - HOUR + MINUTE
    history = [
        commit | {"offset": 10, "log_offset": 1, "ended_by": "tombstone", "valid_from_timestamp_ms": before},
        commit | {"offset": 3, "log_offset": 9, "valid_from_timestamp_ms": after},
    ]
    context = _context(
        {"disappearances": [gone], "history": history, "topic_changes": changes},
        activity=[{"group_id": "g", "deletions": 1}],
        current_offsets=[_PLACE],
        timeline=[],
    )
    found = _found(context, "expired_and_began_again")
    assert [[(each.name, each.confidence) for each in one.causes] for one in found] == (
        [] if causes is None else [causes]
    )
    for one in found:
        assert bool(one.lacked) == (causes == [("offsets_deleted", "medium")])
        assert ("or its topic" in one.causes[0].statement) == bool(one.lacked)
