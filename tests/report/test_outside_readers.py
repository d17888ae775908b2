"""Clients that are not members and commit for a group while it has no members."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.rule_context import RuleContext
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

Row = dict[str, Any]


def _job(
    *, outside: int = 5, step: int = 100, comes_back: bool = True, ago: int = 0, next_offset: int | None = None
) -> RuleContext:
    """A job that runs for a minute every ten minutes, and reads 100 records each time. A client that is not a member
    commits `outside` times after its first run, each time `step` records more."""
    begin = END_MS - ago - 20 * MINUTE
    place = {"group_id": "tax", "topic": "events", "partition": 0, "log_partition": 0, "commits": 1}
    timeline: list[Row] = []
    history: list[Row] = []

    def commit(at_ms: int, offset: int) -> None:
        row = {
            "offset": offset,
            "valid_from_timestamp_ms": at_ms,
            "log_offset": at_ms - begin + 1,
            "ended_by": "commit",
        }
        history.append(place | row)

    offset = 0
    for run in range(2 if comes_back else 1):
        start = begin + 10 * MINUTE * run
        member = {"group_id": "tax", "member_id": f"run-{run}", "log_partition": 0}
        for at_ms, event in ((start, "member_joined"), (start + MINUTE, "member_left")):
            timeline.append(member | {"at_timestamp_ms": at_ms, "event": event, "log_offset": at_ms - begin + 2})
        offset = next_offset if run and next_offset is not None else offset + 100
        commit(start + 30 * SECOND, offset)
        for number in range(outside if not run else 0):
            offset += step
            at_ms = start + (2 + number) * MINUTE
            commit(at_ms, offset)
            reset = {"group_id": "tax", "log_partition": 0, "event": "offsets_reset", "log_offset": at_ms - begin + 1}
            timeline.append(reset | {"at_timestamp_ms": at_ms})
    timeline.sort(key=lambda each: each["log_offset"])
    return _context({"history": history}, timeline=timeline)


@pytest.mark.parametrize(
    ("context", "level", "skipped"),
    [
        (_job(), Level.HIGH, 500),
        (_job(ago=25 * HOUR), Level.LOW, 500),
        (_job(step=3), Level.NOTE, 15),
        (_job(outside=2), None, 0),
        (_job(comes_back=False), None, 0),
        (_job(next_offset=200), None, 0),
        (_job(step=-1), None, 0),
    ],
    ids=["reader", "over", "few", "twice", "stays_away", "went_back", "backwards"],
)
def test_a_reader_outside_the_group_moves_it_ahead(context: RuleContext, level: Level | None, skipped: int) -> None:
    found = _found(context, "outside_reader_commits")
    assert [each.level for each in found] == ([] if level is None else [level])
    for each in found:
        assert each.scale == {"records_possibly_lost": skipped, "partitions": 1}
        assert each.causes[0].name == "reads_outside"
        assert "events,0,100" in each.next[1].what
        assert "every 1 min" in each.problem
