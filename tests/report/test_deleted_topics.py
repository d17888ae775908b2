"""Rebalances that follow from the deletion of a topic, and the order of causes of rebalances."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from kafka_records_tables.report.facts.deleted_topics import deleted_topics
from kafka_records_tables.report.folding import folded
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.report.rules.rebalancing import RULE as REBALANCES
from kafka_records_tables.report.rules.remade_topics import RULE as REMADE
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

_FIRST: Final = END_MS - 5 * MINUTE
_EVERY: Final = 10 * SECOND
_COUNT: Final = 24
_GROUP: Final = {"group_id": "g", "log_partition": 0}
_TIMEOUTS: Final = {"rebalance_timeout_ms": 25 * SECOND, "session_timeout_ms": 6000}
_CHANGE: Final = {"topic": "orders", "log_offset": 7}


def _rebalances(deleted_ms: int, *, topic: str = "orders", is_back: bool = False, stays_ms: int = 0) -> RuleContext:
    """A group with two members rebalances every ten seconds; a topic of its own, or another one, is deleted."""
    times = [_FIRST + number * _EVERY for number in range(_COUNT)]
    rows: list[dict[str, Any]] = [
        {
            **_GROUP,
            "event": "epoch",
            "detail": "{}",
            "at_timestamp_ms": at,
            "log_offset": 10 * number,
            "member_count": 2,
        }
        for number, at in enumerate(times)
    ]
    lost = {"topic": "orders", "partitions": 2}
    rows.append(
        {
            **_GROUP,
            "event": "offsets_deleted",
            "detail": json.dumps(lost),
            "at_timestamp_ms": deleted_ms,
            "log_offset": 5,
            "member_count": 2,
        }
    )
    if stays_ms:
        for number, at in enumerate(times):
            each = {**_GROUP, "member_id": f"m-{number}", "member_count": 2}
            joined = {"event": "member_joined", "detail": json.dumps(_TIMEOUTS)}
            rows.append({**each, **joined, "at_timestamp_ms": at, "log_offset": 10 * number + 1})
            left = {"event": "member_left", "at_timestamp_ms": at + stays_ms, "log_offset": 10 * number + 13}
            rows.append({**each, **left})
    changes = [
        {**_CHANGE, "topic": topic, "event": "created", "configs": [], "partition_count": 2, "at_timestamp_ms": 1},
        {**_CHANGE, "topic": topic, "event": "deleted", "partition_count": 2, "at_timestamp_ms": deleted_ms},
    ]
    if is_back:
        changes.append({**changes[0], "at_timestamp_ms": deleted_ms + SECOND, "log_offset": 9})
    return _context(
        {"topic_changes": changes},
        timeline=rows,
        groups=[{**_GROUP, "group_kind": "classic"}],
        members=[{**_GROUP, "member_id": "m"}],
    )


def _only(context: RuleContext) -> ReportFinding:
    (found,) = _found(context, "endless_rebalances")
    return found


def test_the_deletion_of_its_topic_is_a_cause() -> None:
    found = _only(_rebalances(_FIRST - 30 * SECOND))
    first = found.causes[0]
    assert (first.name, first.confidence) == ("topic_deleted", "medium")
    assert first.evidence_for[1].shows == "24 of 24 rebalances came after that, the first 30 s later"
    assert found.next[0].what.startswith('Find out who deleted "orders"')


@pytest.mark.parametrize(
    "context",
    [
        _rebalances(_FIRST - 11 * MINUTE),
        _rebalances(_FIRST + 10 * _EVERY),
        _rebalances(_FIRST - 30 * SECOND, topic="of-others"),
    ],
    ids=["long_before", "in_the_middle", "of_others"],
)
def test_other_deletions_are_no_cause(context: RuleContext) -> None:
    assert "topic_deleted" not in [each.name for each in _only(context).causes]


@pytest.mark.parametrize(("deleted_ms", "effects"), [(_FIRST - SECOND, 1), (_FIRST + 10 * _EVERY, 0)])
def test_they_are_an_effect_of_the_deletion_if_the_topic_is_there_again(deleted_ms: int, effects: int) -> None:
    context = _rebalances(deleted_ms, is_back=True)
    rules = (REMADE, REBALANCES)
    made = folded(rules, {each.kind: each.cases(context) for each in rules})
    (numbers,) = made.cases[REMADE.kind]["effects"].to_pylist()
    assert [made.effects[each].kind for each in numbers] == ["endless_rebalances"] * effects
    assert made.cases["endless_rebalances"].num_rows == 1 - effects


@pytest.mark.parametrize(
    ("stays_ms", "names"),
    [
        (25_500, ["polls_too_late", "processes_restart"]),
        (40_000, ["processes_restart", "polls_too_late"]),
    ],
    ids=["poll_interval", "longer"],
)
def test_members_that_stay_for_the_poll_interval_poll_too_late(stays_ms: int, names: list[str]) -> None:
    """Two members with 25 s; the cause that this fact contradicts comes second."""
    found = _only(_rebalances(1, stays_ms=stays_ms))
    assert [each.name for each in found.causes if each.name in names] == names


def test_a_topic_without_a_name_is_none_that_was_deleted() -> None:
    """A member may be assigned a topic whose id has no name in the source."""
    rows = [{"group_id": "g", "topic": topic, "partition": 0, "log_partition": 0} for topic in (None, "orders")]
    assert deleted_topics(_context({"topic_changes": []}, assignments=rows), "g", [_FIRST]) == []
