"""How soon after records are written a group commits them, and whether some commits could be as quick by chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from kafka_records_tables.report.facts.group_facts import LogEnds, Offset, Place, Span
from kafka_records_tables.report.rule_context import MINUTE_MS, SECOND_MS

_LEAST: Final = 50
"""The number of commits from which it is known how soon a group usually commits."""
_USUAL: Final = 0.95
_AROUND_MS: Final = MINUTE_MS
_WINDOW_MS: Final = 30 * SECOND_MS


@dataclass(frozen=True, slots=True)
class SoonCommits:
    """Commits that each followed the last record before them as quickly as the group usually commits."""

    within_ms: int
    """The time within which 95 % of the group's commits follow their last record."""
    by_chance: float
    """The probability that commits at random times would all be as quick."""


def soon_commits(
    ends: LogEnds,
    spans: Mapping[Offset, Sequence[Span]],
    firsts: Mapping[Place, Span],
    given_ms: int,
) -> SoonCommits | None:
    """The first commits of partitions, if they came as soon after records as other commits of the group. None if they
    did not, or if it is unknown.

    A group that began at the end of a log commits when the next record has arrived. A group with many records to read
    commits when it has read them, regardless of when the last one was written.
    """
    known = {(*place, span.log_offset) for place, span in firsts.items()}
    others = [
        ((topic, number), span)
        for (_, topic, number), of_place in spans.items()
        for span in of_place
        if span.from_ms is not None and abs(span.from_ms - given_ms) <= _AROUND_MS
        if (topic, number, span.log_offset) not in known
    ]
    ages = sorted(_ages(ends, others))
    if len(ages) < _LEAST or ages[len(ages) // 2] < 0:
        return None
    within_ms = ages[int(len(ages) * _USUAL)]
    # Partitions of the same commit may have received records at the same time.
    chances: dict[int, float] = {}
    for place, span in firsts.items():
        age = next(iter(_ages(ends, [(place, span)])), None)
        share = ends.share_after_writes(place, given_ms, given_ms + _WINDOW_MS, within_ms)
        if age is None or share is None or not 0 <= age <= within_ms:
            return None
        at_ms = span.from_ms or 0
        chances[at_ms] = max(share, chances.get(at_ms, 0))
    return SoonCommits(within_ms, prod(chances.values()))


def _ages(ends: LogEnds, commits: Iterable[tuple[Place, Span]]) -> Iterable[int]:
    """How long after the last record before it each commit was written."""
    for place, span in commits:
        written_ms = ends.written_ms(place, span.offset - 1)
        if written_ms is not None and span.from_ms is not None:
            yield span.from_ms - written_ms
