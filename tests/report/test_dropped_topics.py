"""Topics that a group read, and to which no member subscribes any more."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rule_context import RuleContext
from tests.report.made_up_cluster import DAY, HOUR, MINUTE
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

_CHANGE: Final = END_MS - 10 * MINUTE
_START: Final = END_MS - 5 * HOUR


def _joins(number: int, client: str, topics: list[str], from_ms: int, to_ms: int | None) -> list[dict[str, Any]]:
    of_member = {"group_id": "g", "member_id": f"m{number}", "log_partition": 0}
    gained = json.dumps({"gained": {topic: [0] for topic in topics}})
    rows: list[dict[str, Any]] = [
        {"event": "member_joined", "at_timestamp_ms": from_ms, "detail": json.dumps({"client_id": client})},
        {"event": "assignment_changed", "at_timestamp_ms": from_ms, "detail": gained},
    ]
    if to_ms is not None:
        rows.append({"event": "member_left", "at_timestamp_ms": to_ms, "detail": None})
    return [of_member | each | {"log_offset": 10 * number + at} for at, each in enumerate(rows)]


def _made(
    *,
    written_ms: int | None = END_MS - MINUTE,
    successor_ms: int | None = None,
    members: bool = True,
    change_ms: int = _CHANGE,
    topics: tuple[str, ...] = ("orders", "returns"),
    end: int = 150,
) -> RuleContext:
    """`v1` reads orders and refunds until the change, then `v2` reads the given topics. 50 records of refunds are not
    read."""
    offset = {"group_id": "g", "topic": "refunds", "partition": 0, "offset": 100, "log_partition": 0, "log_offset": 7}
    log = {"topic": "refunds", "partition": 0, "log_start_offset": 0, "log_end_offset": end, "high_watermark": end}
    samples = [{"offset": 99, "timestamp_ms": change_ms - MINUTE}]
    if written_ms is not None:
        samples.append({"offset": end - 1, "timestamp_ms": written_ms})
    events = _joins(0, "v1", ["orders", "refunds"], _START, change_ms) + _joins(1, "v2", [*topics], change_ms, None)
    current = []
    if successor_ms is not None:
        of_other = {"group_id": "other", "log_partition": 1, "log_offset": 3}
        first = {"event": "first_commit", "at_timestamp_ms": successor_ms, "detail": json.dumps({"topic": "refunds"})}
        events.append({**of_other, **first})
        current.append({**of_other, "topic": "refunds", "partition": 0, "offset": 120, "commit_timestamp_ms": END_MS})
    return _context(
        {"log_samples": [{**log, "samples": samples, "exact_from": 0}]},
        deletable_offsets=[
            {**offset, "kind": "offset", "reason": "not_subscribed", "commit_timestamp_ms": change_ms - 5000}
        ],
        expirations=[{**offset, "kind": "offset", "expires_timestamp_ms": END_MS + 6 * DAY}],
        timeline=events if members else [],
        log_ends=[log],
        current_offsets=current,
        share_group_topics=[],
    )


def _dropped(**given: Any) -> list[ReportFinding]:
    return _found(_made(**given), "subscription_dropped")


def test_a_topic_that_is_still_written_is_missing_by_mistake_rather_than_on_purpose() -> None:
    (found,) = _dropped()
    assert (found.level, found.since_timestamp_ms, found.partitions) == (Level.MODERATE, _CHANGE, (0,))
    assert found.scale == {"unread_records": 50, "partitions": 1}
    assert [each.client_id for each in found.who] == ["v2", "v1"]
    assert [(each.name, each.confidence) for each in found.causes] == [
        ("topic_forgotten", "medium"),
        ("topic_retired", "low"),
    ]
    assert len(found.causes[0].evidence_for) == 2  # it is written, and "returns" came into the list
    assert "deploy before" in found.next[0].what
    assert "on purpose" in found.next[-2].what
    assert "delete-offsets" in (found.next[-2].command or "")
    assert _found(_made(), "offsets_unneeded") == []


def test_without_another_topic_only_its_producers_speak_for_a_mistake() -> None:
    (found,) = _dropped(topics=("orders",))
    assert len(found.causes[0].evidence_for) == 1


def test_another_group_that_began_about_then_is_a_successor() -> None:
    (found,) = _dropped(successor_ms=_CHANGE - MINUTE)
    assert (found.level, found.causes[0].name) == (Level.NOTE, "topic_retired")
    assert '"other"' in found.causes[0].evidence_for[0].shows


def test_another_group_that_read_it_all_the_time_is_no_successor() -> None:
    (found,) = _dropped(successor_ms=_START + MINUTE)
    assert found.level == Level.MODERATE


def test_if_nothing_shows_the_members_it_is_since_the_last_commit() -> None:
    (found,) = _dropped(members=False)
    assert (found.since_timestamp_ms, found.since_note) == (_CHANGE - 5000, "or later: the last commit for it")


@pytest.mark.parametrize(
    "given",
    [{"written_ms": _CHANGE - 1}, {"end": 100, "written_ms": None}],
    ids=["nothing written since", "all read"],
)
def test_offsets_of_a_topic_that_is_no_longer_written_are_only_not_needed(given: dict[str, Any]) -> None:
    assert _dropped(**given) == []
    assert [each.level for each in _found(_made(**given), "offsets_unneeded")] == [Level.NOTE]


def test_a_group_that_just_changed_may_not_be_complete_yet() -> None:
    assert _dropped(change_ms=END_MS - 10_000) == []
