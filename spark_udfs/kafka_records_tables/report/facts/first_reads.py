"""Separates what a returning group read at once from what had been deleted before."""

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
"""The first commit went over deleted records if it covers this many times the longest poll after it."""
_POLL: Final = 500
"""The default of `max.poll.records`."""


def without_first_reads(
    jumps: Sequence[Jump],
    steps: Mapping[int, Steps],
    starts: Mapping[int, int],
    emptied: Iterable[Mapping[str, Any]],
    times: float,
) -> list[Jump]:
    """Drops jumps that are backlogs: what a group read when it came back after losing its members (`emptied` events).
    Corrects what the group lost in the jumps that are left.

    A member that finds a backlog commits poll after poll, each at least `times` as far as usual. Only the first commit
    can skip records that were deleted in the meantime: it did if it went much further than the polls after it. If no
    such poll follows, the first one reached the end of the log, and at least what exceeds one poll was lost. If the
    group never read a backlog in several polls, it may commit only at the end of a backlog, so nothing is certain. A
    jump over the present start of its log (`starts`) counts in full, unless polls of a backlog follow it.
    """
    left_ms = sorted(each["at_timestamp_ms"] for each in emptied)
    # By the offsets of the first commit, how far that commit and the following polls went.
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


def without_polls(
    jumps: Sequence[Jump], steps: Mapping[int, Steps], emptied: Iterable[Mapping[str, Any]], times: float
) -> list[Jump]:
    """The jumps of a group over records that were certainly deleted before it came back. Polls of a backlog are left
    out. If they follow a jump, its loss is what exceeds a usual poll. A first commit that is no longer than the longest
    of these polls may be a poll of records that all still existed."""
    left_ms = sorted(each["at_timestamp_ms"] for each in emptied)
    found = []
    for partition, own in steps.items():
        returns = dict(_returns(own, left_ms, times))
        ends = {after + sum(polls[: at + 1]) for after, (_, *polls) in returns.items() for at in range(len(polls))}
        every = [poll for _, *polls in returns.values() for poll in polls]
        # The last poll of a backlog reaches the end of the log.
        full = [poll for _, *polls in returns.values() for poll in polls[:-1]] or every
        for jump in jumps:
            if jump.partition != partition or jump.after.offset in ends:
                continue
            first, *polls = returns.get(jump.after.offset, (0,))
            if not polls:
                found.append(jump)
            elif first > max(every):
                found.append(replace(jump, lost=min(jump.lost, round(first - median(full)))))
    return found


def _returns(steps: Steps, left_ms: Sequence[int], times: float) -> Iterator[tuple[int, list[int]]]:
    """Each return of a group to a partition: the offset of its first commit, and how far this commit and the following
    commits of the backlog went."""
    distances = [after.offset - before.offset for before, after in steps]
    limit = max(times * median(distances), 2) if distances else 0
    for at, (before, after) in enumerate(steps):
        left = bisect_left(left_ms, before.from_ms or 0)
        if left < len(left_ms) and left_ms[left] < (after.from_ms or 0):
            backlog = takewhile(lambda distance: distance > limit, distances[at + 1 :])
            yield after.offset, [distances[at], *backlog]
