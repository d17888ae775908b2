"""Groups that got added partitions late, and may have skipped their first records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from kafka_records_tables.report.facts.commit_ages import soon_commits
from kafka_records_tables.report.facts.group_facts import LogEnds, Span
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
    commits: Sequence[Row] = (),
    writes: Mapping[int, Sequence[Row]] | None = None,
) -> list[ReportFinding]:
    """A group reads partition 0 of a topic that gets partition 1, whose log ends at `end` when it is assigned; the
    first commit there, two seconds later, is `first`. In partition 0 it began in the same way, and has
    further `commits` there. `writes` are further batches by partition."""
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
    ] + [group | topic | {"partition": 0} | each for each in commits]
    ends: list[Row] = [topic | {"partition": each, "log_start_offset": 0, "log_end_offset": 10**7} for each in range(2)]
    last = {"offset": 10**7 - 1, "timestamp_ms": END_MS}
    samples = {
        number: [{"offset": at - 1, "timestamp_ms": given[number]}, last] if at else [last]
        for number, at in {0: old_end, 1: end}.items()
    }
    for number, more in (writes or {}).items():
        samples[number] = sorted([*samples[number], *more], key=lambda each: int(each["offset"]))
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


@pytest.mark.parametrize(
    ("every_ms", "level"), [(10 * SECOND, Level.LOW), (100, Level.NOTE)], ids=["rare_records", "many_records"]
)
def test_commits_right_after_new_records_speak_for_the_end(every_ms: int, level: Level) -> None:
    """Usual commits come 20 ms after records, and so does the first one of the added partition. If it has records all
    the time, that may be chance."""
    times = [GIVEN + at * SECOND for at in range(1, 55)]
    usual = [{"offset": 100 + at, "timestamp_ms": each} for at, each in enumerate(times)]
    commits = [
        {"offset": 101 + at, "log_offset": 100 + at, "valid_from_timestamp_ms": each + 20}
        for at, each in enumerate(times)
    ]
    began = GIVEN + 2 * SECOND - 20
    added = [{"offset": 50 + at, "timestamp_ms": began + at * every_ms} for at in range(100)]
    (found,) = _late(first=51, commits=commits, writes={0: usual, 1: added})
    assert found.level == level
    if level == Level.LOW:
        assert found.scale == {"records_not_read_at_most": 50, "partitions": 1}
        assert "each first commit came within 20 ms after a new record" in found.impact
        assert [(each.name, each.confidence) for each in found.causes] == [
            ("began_at_ends", "medium"),
            ("read_everything", "low"),
        ]
    else:
        assert found.scale == {"records_possibly_lost": 50, "partitions": 1}


def _span(offset: int, at_ms: int, log_offset: int) -> Span:
    return Span(offset, at_ms, None, None, 0, log_offset, None, 1)


@pytest.mark.parametrize(
    ("ages", "usual_ms", "count", "is_whole", "expected"),
    [
        ((20, 20), 20, 60, True, (20, 0.02 * 0.02)),
        ((20, 20), 500, 60, True, (500, 0.5 * 0.5)),
        ((20, 900), 20, 60, True, None),
        ((20, -5), 20, 60, True, None),
        ((20, 20), 20, 40, True, None),
        ((20, 20), -20, 60, True, None),
        ((20, 20), 20, 60, False, None),
    ],
    ids=[
        "both_soon",
        "usually_late",
        "one_late",
        "before_the_record",
        "few_commits",
        "a_clock_is_wrong",
        "not_every_batch_is_known",
    ],
)
def test_how_probable_it_is_that_commits_come_right_after_records(
    ages: tuple[int, int], usual_ms: int, count: int, is_whole: bool, expected: tuple[int, float] | None
) -> None:
    """Each partition gets a record every second; two first commits come some time after the third and the sixth."""
    samples = [{"offset": at, "timestamp_ms": GIVEN + at * SECOND} for at in range(100)]
    logs: list[Row] = [
        {"topic": "audit", "partition": each, "log_start_offset": 0 if is_whole else -1, "log_end_offset": 100}
        for each in range(3)
    ]
    ends = LogEnds([each | {"samples": samples, "exact_from": 0} for each in logs])
    firsts = {
        ("audit", number): _span(3 * number, GIVEN + (3 * number - 1) * SECOND + ages[number - 1], 1000 + number)
        for number in (1, 2)
    }
    usual = [_span(at, GIVEN + (at - 1) * SECOND + usual_ms, at) for at in range(1, count + 1)]
    spans = {("g", *place): [span] for place, span in firsts.items()} | {("g", "audit", 0): usual}
    found = soon_commits(ends, spans, firsts, GIVEN)
    assert (None if found is None else (found.within_ms, round(found.by_chance, 6))) == expected
