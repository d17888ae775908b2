"""What a group that comes back loses at its first commit, and what is a backlog that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from kafka_records_tables.report.facts.commit_jumps import Jump
from kafka_records_tables.report.facts.first_reads import without_first_reads
from kafka_records_tables.report.facts.group_facts import Span

_TAIL = (2, 1, 2, 1, 2, 2, 1, 2, 1, 2)
"""What the group commits while it waits for each record."""
_TIMES = 4


def _spans(runs: Sequence[Sequence[int]]) -> tuple[list[Span], list[int]]:
    """The commits of runs, given the distance of each commit from the one before, and when the group was empty."""
    spans: list[Span] = []
    emptied: list[int] = []
    at_ms = offset = 0
    for run in runs:
        for distance in run:
            at_ms, offset = at_ms + 10, offset + distance
            spans.append(Span(offset, at_ms, None, "commit", 0, len(spans), None, 1))
        emptied.append(at_ms + 1)
        at_ms += 20_000
    return spans, emptied


def _found(runs: Sequence[Sequence[int]], start: int = 10**6) -> list[tuple[int, int | None]]:
    """What is lost, and what is lost at least, in the commits that are further than usual."""
    spans, emptied = _spans(runs)
    steps = list(pairwise(spans))
    jumps = [
        Jump("orders", 0, before.offset, before.from_ms, after, after.offset - before.offset - 2)
        for before, after in steps
        if after.offset - before.offset > 8
    ]
    events = [{"at_timestamp_ms": each} for each in emptied]
    found = without_first_reads(jumps, {0: steps}, {0: start}, events, _TIMES)
    return [(each.lost, each.at_least) for each in found]


@pytest.mark.parametrize(
    ("back", "found"),
    [
        # Polls after the first one show how much a poll has.
        ((134, 27, 27, *_TAIL), [(107, 107)]),
        ((500, 41, 470, *_TAIL), []),
        ((50, 27, 27, *_TAIL), []),
        # It may commit only at its end.
        ((193, *_TAIL), [(191, 0)]),
        ((1000, *_TAIL), [(998, 0)]),
    ],
)
def test_a_group_comes_back(back: Sequence[int], found: list[tuple[int, int | None]]) -> None:
    assert _found([_TAIL, back]) == found


def test_a_backlog_shows_that_it_commits_every_poll() -> None:
    """A first commit that reaches the end of the log may be one poll, of at most 500 records."""
    assert _found([_TAIL, (193, *_TAIL), (134, 27, *_TAIL)]) == [(107, 107)]
    assert _found([_TAIL, (500, 41, 470, *_TAIL), (1022, *_TAIL)]) == [(1020, 522)]
    assert _found([_TAIL, (700, 41, 690, *_TAIL), (1022, *_TAIL)]) == [(1020, 332)]


def test_a_jump_without_an_absence_stays_an_estimate() -> None:
    assert _found([(*_TAIL, 100, *_TAIL)]) == [(98, None)]


def test_a_jump_over_the_present_start_of_the_log_stays_an_estimate() -> None:
    whole = sum(_TAIL)
    assert _found([_TAIL, (193, *_TAIL)], start=whole + 100) == [(191, None)]
    assert _found([_TAIL, (193, *_TAIL)], start=whole + 194) == [(191, 0)]
