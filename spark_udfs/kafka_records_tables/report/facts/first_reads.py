"""Tells what a group read at once when it came back from what had been deleted before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from statistics import median
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.commit_jumps import Jump, Steps

_MORE: Final = 2
"""A first commit is over deleted records if it is so many times as far as the longest poll after it."""
_POLL: Final = 500
"""The default of `max.poll.records`."""


def without_first_reads(
    jumps: Sequence[Jump],
    steps: Mapping[int, Steps],
    starts: Mapping[int, int],
    emptied: Iterable[Mapping[str, Any]],
    times: float,
) -> list[Jump]:
    """The jumps without the backlogs that a group read when it came back after it had lost its members (`emptied`
    events), and with what it lost in those that are left.

    A member that finds a backlog commits poll after poll, each `times` as far as usual or further. Only the first
    commit can be over records that were deleted meanwhile; it is if it is much further than the polls after it. If no
    such poll follows, the first one reached the end of the log: then it lost no less than what exceeds a poll. A group
    that never read a backlog in several polls may commit only at its end, so that nothing is certain. A jump over the
    present start of its log (`starts`) counts as it is, unless polls of a backlog follow it.
    """
    left_ms = sorted(each["at_timestamp_ms"] for each in emptied)
    # By the offsets of the first commit: how far it and the polls after it went.
    returns = {
        (partition, after): distances
        for partition, own in steps.items()
        for after, distances in _returns(own, left_ms, times)
    }
    longest = max((poll for _, *polls in returns.values() for poll in polls), default=0)
    read = {
        (partition, after + sum(distances[1 : at + 1]))
        for (partition, after), distances in returns.items()
        for at in range(1, len(distances))
    }
    found = []
    for jump in jumps:
        place = jump.partition, jump.after.offset
        if place in read:
            continue
        first, *polls = returns.get(place, (0,))
        if not first or (not polls and jump.after.offset >= starts[jump.partition]):
            found.append(jump)
        elif polls:
            lost = min(jump.lost, first - max(polls))
            found += [replace(jump, lost=lost, at_least=lost)] if first > _MORE * max(polls) else []
        elif not longest:
            found.append(replace(jump, at_least=0))
        elif first > max(longest, _POLL):
            found.append(replace(jump, at_least=min(jump.lost, first - max(longest, _POLL))))
    return found


def _returns(steps: Steps, left_ms: Sequence[int], times: float) -> Iterator[tuple[int, list[int]]]:
    """The times at which a group came back to a partition: the offset of its first commit, and how far this commit and
    those of the backlog after it went."""
    distances = [after.offset - before.offset for before, after in steps]
    limit = max(times * median(distances), 2) if distances else 0
    for at, (before, after) in enumerate(steps):
        left = bisect_left(left_ms, before.from_ms or 0)
        if left < len(left_ms) and left_ms[left] <= (after.from_ms or 0):
            backlog = takewhile(lambda distance: distance > limit, distances[at + 1 :])
            yield after.offset, [distances[at], *backlog]
