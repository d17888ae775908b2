"""Topics that grow many times faster since a group also consumes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.rule_context import RuleContext
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

Row = dict[str, Any]
BEGAN, JOINED = END_MS - 8 * MINUTE, END_MS - 3 * MINUTE
"""When the group began, and when it also got the second topic."""


def _log(topic: str, end_at: Callable[[int], int]) -> Row:
    """A log with the end that a function gives for a time, in milliseconds since the group began."""
    times = range(BEGAN - 2 * MINUTE, END_MS + 1, SECOND)
    samples = [{"offset": end_at(at - BEGAN) - 1, "timestamp_ms": at} for at in times if end_at(at - BEGAN)]
    log = {"topic": topic, "partition": 0, "log_start_offset": 0, "log_end_offset": end_at(END_MS - BEGAN)}
    return log | {"samples": samples, "exact_from": 0}


def _steady(per_second: int = 2) -> Callable[[int], int]:
    return lambda ms: per_second * (ms + 2 * MINUTE) // SECOND


def _rising(times: int, *, before: int = 2, until: int = END_MS - BEGAN) -> Callable[[int], int]:
    """Records that come so many times as often since the group consumes the topic, until a time."""
    there = JOINED - BEGAN

    def end(ms: int) -> int:
        more = max(min(ms, until) - there, 0) * times * max(before, 2)
        return ((min(ms, there) + 2 * MINUTE) * before + more) // SECOND

    return end


STEADY, RISING = _steady(), _rising(20)


def _group(
    topic: str = "refunds.retry",
    *,
    second: Callable[[int], int] = RISING,
    first: Callable[[int], int] = STEADY,
    joined: int = JOINED,
    consumed: float = 1,
) -> RuleContext:
    """A group that consumes `refunds`, and another topic since a while, of whose growth it commits a part."""
    row = {"group_id": "desk", "log_partition": 0, "group_kind": "classic", "epoch": 1}
    timeline: list[Row] = []
    for name, at_ms in (("refunds", BEGAN), (topic, joined)):
        member = {"member_id": f"desk-{name}", "at_timestamp_ms": at_ms, "log_offset": at_ms - BEGAN}
        details = [
            ("member_joined", {"client_id": f"desk-{name}-1"}),
            ("assignment_changed", {"gained": {name: [0]}}),
        ]
        timeline += [row | member | {"event": event, "detail": json.dumps(detail)} for event, detail in details]
        commit = {"at_timestamp_ms": at_ms + SECOND, "log_offset": at_ms - BEGAN + 5, "event": "first_commit"}
        timeline.append(row | commit | {"detail": json.dumps({"topic": name})})
    place = {"group_id": "desk", "topic": topic, "partition": 0, "log_partition": 0, "commits": 1}
    start = second(joined - BEGAN)
    end = start + int(consumed * (second(END_MS - BEGAN) - start))
    history = [
        place | {"offset": offset, "valid_from_timestamp_ms": at_ms, "log_offset": at_ms - BEGAN}
        for offset, at_ms in ((start, joined + SECOND), (end, END_MS))
    ]
    logs = [_log("refunds", first), _log(topic, second)]
    offsets = [{"group_id": each, "topic": topic, "partition": 0} for each in ("desk", "retry-job")]
    ends = [
        {"topic": each["topic"], "partition": 0, "high_watermark": each["log_end_offset"], "log_start_offset": 0}
        for each in logs
    ]
    return _context(
        {"history": history, "log_samples": logs}, timeline=timeline, current_offsets=offsets, log_ends=ends
    )


@pytest.mark.parametrize(
    ("context", "level"),
    [
        (_group(), Level.HIGH),
        (_group("refunds.done"), Level.MODERATE),
        (_group(first=_rising(20)), Level.MODERATE),
        (_group(second=_rising(20, before=0)), Level.HIGH),
        (_group("refunds.done", second=_rising(20, before=0)), None),
        (_group("refunds.done", first=_rising(20)), None),
        (_group(second=_rising(5)), None),
        (_group(second=_rising(20, until=JOINED - BEGAN + MINUTE)), None),
        (_group(joined=BEGAN), None),
        (_group(joined=END_MS - 40 * SECOND), None),
        (_group(consumed=0.3), None),
        (_group("desk-refunds-repartition"), None),
    ],
    ids=[
        "retry",
        "any_topic",
        "more_load",
        "empty_before",
        "new_topic",
        "more_of_all",
        "slower",
        "peak",
        "from_the_start",
        "short",
        "not_consumed",
        "streams",
    ],
)
def test_a_topic_grows_since_a_group_consumes_it(context: RuleContext, level: Level | None) -> None:
    found = _found(context, "grows_since_consumed")
    assert [each.level for each in found] == ([] if level is None else [level])
    for each in found:
        assert (each.since_timestamp_ms, each.who[0].client_id) == (JOINED, f"desk-{each.topics[0]}-1")
        assert each.scale == {"records_written": 20 * 2 * 180}
        assert {cause.name for cause in each.causes} == {"writes_to_its_topic", "more_is_written"}
        assert each.causes[0].name == "writes_to_its_topic"
        assert each.decision is not None
        assert "--topic refunds" in str(each.next[0].command)
        assert '"retry-job" reads the same topic' in each.impact
