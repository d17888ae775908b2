"""Groups that got added partitions late, and may have skipped their first records."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.data_directory import OFFSETS
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

KIND: Final = "added_partitions_begun_late"
ADDED: Final = END_MS - 10 * MINUTE
GIVEN: Final = ADDED + 20 * SECOND
BEGAN: Final = END_MS - HOUR
Row = dict[str, Any]


def _late(
    *,
    first: int = 60,
    end: int = 50,
    given_ms: int = GIVEN,
    began_at: int = 20,
    old_end: int = 10,
    began_ms: int = BEGAN,
    event: str = "partitions_added",
    policy: str = "delete",
    cleaned: bool = False,
) -> list[ReportFinding]:
    """A group reads partition 0 of a topic that gets partition 1, whose log ends at `end` when it is assigned; the
    first commit there, two seconds later, is `first`. In partition 0 it began in the same way."""
    group, topic = {"group_id": "alerts", "log_partition": 0}, {"topic": "audit"}
    given = {0: began_ms, 1: given_ms}
    timeline = [
        group
        | {"event": "assignment_changed", "at_timestamp_ms": at_ms, "log_offset": at, "member_id": "m"}
        | {"detail": f'{{"gained": {{"audit": [{number}]}}}}'}
        for at, (number, at_ms) in enumerate(given.items())
    ]
    offsets = {0: began_at, 1: first}
    history = [
        group
        | topic
        | {"partition": number, "offset": offset, "log_offset": 5 + number}
        | {"valid_from_timestamp_ms": given[number] + 2 * SECOND}
        for number, offset in offsets.items()
    ]
    ends: list[Row] = [topic | {"partition": each, "log_start_offset": 0, "log_end_offset": 10**7} for each in range(2)]
    last = {"offset": 10**7 - 1, "timestamp_ms": END_MS}
    samples = {
        number: [{"offset": at - 1, "timestamp_ms": given[number]}, last] if at else [last]
        for number, at in {0: old_end, 1: end}.items()
    }
    made = topic | {"event": "created", "partition_count": 1, "at_timestamp_ms": BEGAN - HOUR, "log_offset": 4}
    grown = made | {"event": event, "partition_count": 2, "at_timestamp_ms": ADDED, "log_offset": 9}
    config = {"resource_type": "topic", "resource_name": "audit", "name": "cleanup.policy", "value": policy}
    looks: dict[str, list[Row]] = {
        "history": history,
        "log_samples": [each | {"samples": samples[each["partition"]], "exact_from": 0} for each in ends],
        "topic_changes": [made, grown],
        "configs": [config | {"is_sensitive": False}],
    }
    current = [group | topic | {"partition": each, "offset": 900} for each in range(2)]
    logs = [{"topic": OFFSETS, "partition": 0, "log_start_offset": 3 if cleaned else 0}]
    return _found(_context(looks, timeline=timeline, current_offsets=current, log_ends=logs), KIND)


def test_a_group_that_got_an_added_partition_late_may_have_skipped_records() -> None:
    (found,) = _late()
    assert (found.level, found.group_ids, found.partitions) == (Level.NOTE, ("alerts",), (1,))
    assert (found.since_timestamp_ms, found.scale) == (ADDED, {"records_possibly_lost": 50, "partitions": 1})
    assert "assigned it 20 s later, when 50 records had been written" in found.problem
    assert "no record shows which" in found.impact
    assert [(each.name, each.confidence) for each in found.causes] == [
        ("began_at_ends", "low"),
        ("read_everything", "low"),
    ]
    assert "--topic audit:1 --to-earliest --dry-run" in str(found.next[1].command)


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ({"first": 49}, None),
        ({"first": 50}, Level.NOTE),
        ({"end": 0, "first": 0}, None),
        ({"began_at": 9}, None),
        ({"began_ms": ADDED + SECOND}, None),
        ({"event": "compaction_began"}, None),
        ({"cleaned": True}, None),
        ({"first": 100_000}, Level.NOTE),
        ({"first": 100_001}, Level.MODERATE),
        ({"first": 100_001, "policy": "compact"}, Level.NOTE),
        ({"began_at": 200_000}, Level.MODERATE),
    ],
    ids=[
        "began_below_the_end",
        "began_at_the_end",
        "nothing_was_written",
        "began_below_the_end_elsewhere",
        "did_not_read_the_topic_before",
        "no_partition_was_added",
        "first_commits_are_cleaned",
        "reads_that_fast",
        "does_not_read_that_fast",
        "offsets_without_records",
        "did_not_read_that_fast_before",
    ],
)
def test_where_a_group_began_shows_what_it_skipped(given: dict[str, Any], level: Level | None) -> None:
    assert [each.level for each in _late(**given)] == ([] if level is None else [level])


def test_a_speed_that_no_application_reaches_speaks_for_the_end() -> None:
    (found,) = _late(first=300_000)
    assert [(each.name, each.confidence) for each in found.causes] == [
        ("began_at_ends", "medium"),
        ("read_everything", "low"),
    ]
    assert "150000 records per second of audit-1" in found.impact
