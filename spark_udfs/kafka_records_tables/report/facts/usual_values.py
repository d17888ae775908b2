"""Determines what is usual for a group from its own history, so that thresholds are needed only if the history is too
short."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

LEAST: Final = 10
"""The minimum number of intervals from which to tell what is usual."""
STOP: Final = 2
"""A group counts as stopped if it has not committed for this many times its usual interval."""
_LEAST_COUNTS: Final = 20
"""With fewer numbers, 95 % of them means all of them."""
_PERCENTILE: Final = 95


@dataclass(frozen=True, slots=True)
class UsualGap:
    """The intervals between events of a group, in milliseconds."""

    count: int
    median_ms: int
    high_ms: int
    """The 95th percentile."""
    most_ms: int


def usual_gap(times_ms: Iterable[int | None]) -> UsualGap | None:
    """The usual interval between some times; None if there are fewer than LEAST."""
    known = sorted(each for each in times_ms if each is not None)
    gaps = sorted(later - earlier for earlier, later in pairwise(known))
    if len(gaps) < LEAST:
        return None
    return UsualGap(len(gaps), gaps[len(gaps) // 2], gaps[len(gaps) * _PERCENTILE // 100], gaps[-1])


def as_often_as_ever(times_ms: Iterable[int]) -> UsualGap | None:
    """The usual interval in the first half of some events, if events in the second half are at most twice as frequent;
    None if they are more frequent, or if the halves are too small."""
    known = sorted(times_ms)
    half = len(known) // 2
    before, later = usual_gap(known[: half + 1]), usual_gap(known[half:])
    return before if before is not None and later is not None and 2 * later.median_ms >= before.median_ms else None


def usual_most(counts: Iterable[int]) -> int | None:
    """The number that 95 % of the given numbers do not exceed; None if there are fewer than twenty, because then a
    single one could decide."""
    known = sorted(counts)
    return known[-(-len(known) * _PERCENTILE // 100) - 1] if len(known) >= _LEAST_COUNTS else None
