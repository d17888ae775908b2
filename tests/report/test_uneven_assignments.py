"""Members with far more partitions than others, whose backlog grows for this reason."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_tables.report.folding import folded
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.report.rules import slow_groups, uneven_assignments
from tests.report.made_up_cluster import HOUR
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

Row = dict[str, Any]


def _group(owners: dict[str, list[tuple[str, int]]], *, protocol: str = "range", lag: int = 0) -> RuleContext:
    """A group with the partitions of its members; each partition of the first member has as many unread records."""
    place = {"group_id": "harvest", "log_partition": 0, "log_offset": 1}
    groups = [place | {"state": "Stable", "group_kind": "classic", "protocol": protocol, "member_count": len(owners)}]
    members = [place | {"member_id": name, "subscribed_topics": ["field-1"]} for name in owners]
    assigned = [
        place
        | {"member_id": name, "topic": topic, "partition": partition, "role": "current"}
        | {"log_timestamp_ms": END_MS - HOUR}
        for name, places in owners.items()
        for topic, partition in places
    ]
    lags = [
        {"group_id": "harvest", "topic": topic, "partition": partition, "lag": lag}
        for topic, partition in next(iter(owners.values()))
    ]
    return _context(timeline=[], groups=groups, members=members, assignments=assigned, lag=lags)


ONE_EACH = [(f"field-{number}", 0) for number in range(8)]


@pytest.mark.parametrize(
    ("owners", "protocol", "causes"),
    [
        ({"a": ONE_EACH, "b": [], "c": [], "d": []}, "range", ["range_assignor"]),
        ({"a": [*ONE_EACH, ("wide", 0)], "b": [("wide", 1)], "c": [("wide", 2)]}, "range", ["range_assignor"]),
        ({"a": ONE_EACH, "b": [], "c": [], "d": []}, "sticky", []),
    ],
    ids=["one_partition", "also_wide", "other_assignor"],
)
def test_the_range_assignor_gives_a_member_everything(
    owners: dict[str, list[tuple[str, int]]], protocol: str, causes: list[str]
) -> None:
    (found,) = _found(_group(owners, protocol=protocol, lag=50), "uneven_assignments")
    assert [each.name for each in found.causes] == causes
    assert found.topics == tuple(topic for topic, _ in ONE_EACH)
    assert found.scale == {"records_waiting": 50 * len(owners["a"])}
    if causes:
        assert found.causes[0].confidence == "high"
        assert "partition.assignment.strategy" in found.next[0].what
    else:
        assert all("partition.assignment.strategy" not in each.what for each in found.next)


def test_the_backlog_of_the_topics_of_one_member_is_an_effect() -> None:
    """A backlog of a topic that other members consume too is not."""
    context = _group({"a": [*ONE_EACH, ("wide", 0)], "b": [("wide", 1)], "c": [("wide", 2)]}, lag=50)
    own = uneven_assignments.RULE.cases(context)
    slow = slow_groups.RULE.cases(context)
    rows = [
        {"at": at, "group_id_list": ["harvest"], "topic_list": [topic], "level": int(Level.HIGH), "rank": 1.0}
        for at, topic in enumerate(("field-3", "wide", "field-0"))
    ]
    rows = [dict.fromkeys(slow.schema.names) | row for row in rows]
    cases = {"uneven_assignments": own, "too_slow": type(slow).from_pylist(rows, schema=slow.schema)}
    found = folded([slow_groups.RULE, uneven_assignments.RULE], cases)
    assert found.cases["too_slow"]["topic_list"].to_pylist() == [["wide"]]
    assert found.cases["uneven_assignments"]["level"].to_pylist() == [int(Level.HIGH)]
    assert len(found.effects) == 2
