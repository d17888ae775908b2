"""Commits that jump over deleted records are counted, also if most commits do."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.made_up_cluster import SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

_PLACE = {"group_id": "g", "topic": "orders", "partition": 0}
_READS = (20, 19, 18, 20, 19, 20)
"""The number of records that the group reads between two commits."""
_LONG = 100
"""The distance between its later commits."""


def _report(steps: list[int], start: int, lag: int, *, behind: int = 0) -> list[ReportFinding]:
    """The findings about a group that committed every four seconds, in steps; the last one just now. At its last commit
    but one its distance from the end was `behind`. The log has files of 50 records."""
    offsets = [sum(steps[:number]) for number in range(len(steps) + 1)]
    times = [END_MS - (len(steps) - number) * 4 * SECOND for number in range(len(steps) + 1)]
    history = [
        {**_PLACE, "offset": offset, "valid_from_timestamp_ms": at, "ended_by": "commit", "log_partition": 0}
        | {"log_offset": number, "commits": 1}
        for number, (offset, at) in enumerate(zip(offsets, times, strict=True))
    ]
    end = offsets[-1] + lag
    log = {"topic": "orders", "partition": 0, "log_start_offset": start, "log_end_offset": end}
    samples = [{"offset": offsets[-2] + behind - 1, "timestamp_ms": times[-2]}] if behind else []
    looks: dict[str, list[dict[str, Any]]] = {
        "history": history,
        "log_samples": [{**log, "samples": samples, "exact_from": start}],
        "log_sizes": [{**log, "sizes": [{"offset": each, "bytes": 1} for each in range(start, end, 50)]}],
    }
    row = {**_PLACE, "offset": offsets[-1], "log_start_offset": start, "end_offset": end, "lag": lag}
    is_below = start > offsets[-1]
    row |= {"lost": max(start - offsets[-1], 0), "problem": "below_log_start" if is_below else None}
    return _found(_context(looks, lag=[row]), "deleted_before_read")


def test_each_jump_counts_if_most_commits_jump() -> None:
    """Its first commits show what it reads. The log has 300 records, and at its last commit but one it was 420 from
    the end: its next records had been deleted."""
    steps = [*_READS, *[_LONG] * 20]
    (found,) = _report(steps, sum(steps) + 90, 390, behind=420)
    assert found.scale["jumps"] == 20
    assert found.scale["records_lost"] == 20 * (_LONG - max(_READS)) + 90
    assert found.since_timestamp_ms == END_MS - 19 * 4 * SECOND
    assert found.is_going_on


@pytest.mark.parametrize(
    ("steps", "behind", "lost"),
    [
        ([*_READS, *[_LONG] * 20], 340, []),
        ([*_READS, *range(30, 90, 3)], 420, []),
        ([_LONG] * 20, 420, []),
        ([*_READS, 100], 420, [100 - 20 + 90]),
    ],
    ids=["it had records to read", "any distance is usual", "no commit shows what it reads", "few are longer"],
)
def test_longer_distances_are_no_jumps_if_nothing_shows_it(steps: list[int], behind: int, lost: list[int]) -> None:
    """Only the records that it has not reached yet are lost then, which `offsets_below_log_start` says."""
    found = _report(steps, sum(steps) + 90, 390, behind=behind)
    assert [each.scale["records_lost"] for each in found] == lost


def test_a_backlog_at_the_beginning_is_no_jump() -> None:
    """A group that begins reads its backlog. Later it jumps over the start of the log."""
    (found,) = _report([8, 60, *[8] * 9, 250, 8, 8], 200, 1)
    assert (found.scale["jumps"], found.scale["records_lost"]) == (1, 60)
    assert found.since_timestamp_ms == END_MS - 2 * 4 * SECOND


def test_a_group_that_reads_a_backlog_commits_more_together() -> None:
    """It commits each record by itself at first, and 40 together when it has fallen behind. The jumps are far longer
    than both."""
    (found,) = _report([*[1] * 30, *[40] * 6, 1500, *[40] * 4, 1800, 40], 30 + 240 + 1500 + 160 + 1000, 1)
    assert (found.scale["jumps"], found.since_timestamp_ms) == (2, END_MS - 6 * 4 * SECOND)
    assert found.scale["records_lost"] == 1500 - 40 + 1000
