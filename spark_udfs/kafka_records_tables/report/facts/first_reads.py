"""Tells what a group read at once when it came back from what had been deleted before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.commit_jumps import Jump, Steps

_MORE: Final = 2
"""A first commit is over deleted records if it is so many times as far as the longest poll after it."""
_POLL: Final = 500
"""The default of `max.poll.records`."""


def without_first_reads(
    jumps: Sequence[Jump], steps: Mapping[int, Steps], emptied: Iterable[Mapping[str, Any]], times: float
) -> list[Jump]:
    """The jumps without the backlogs that a group read when it came back after it had lost its members (`emptied`
    events), and with what it lost in those that are left.

    A member that finds a backlog commits poll after poll, each `times` as far as usual or further. Only the first commit can be over
    records that were deleted meanwhile; it is if it is much further than the polls after it. If no such poll follows,
    the first one reached the end of the log: then it lost no more than its distance, less what was left to read, and
    no less than what exceeds a poll.
    """
    left_ms = sorted(each["at_timestamp_ms"] for each in emptied)
    found = []
    of_partitions: dict[int, list[Jump]] = {}
    for jump in jumps:
        of_partitions.setdefault(jump.partition, []).append(jump)
    for partition, own in of_partitions.items():
        found += _of_partition(own, steps[partition], left_ms, times)
    return found


def _of_partition(jumps: Sequence[Jump], steps: Steps, left_ms: Sequence[int], times: float) -> Iterator[Jump]:
    limit = max(times * median(after.offset - before.offset for before, after in steps), 2)
    of_offsets = {each.after.offset: each for each in jumps}
    largest_poll, at = 0, 0
    while at < len(steps):
        before, after = steps[at]
        jump = of_offsets.get(after.offset)
        first, polls = after.offset - before.offset, []
        at += 1
        if not any((before.from_ms or 0) <= each <= (after.from_ms or 0) for each in left_ms):
            if jump is not None:
                yield jump
            continue
        while at < len(steps) and (distance := steps[at][1].offset - steps[at][0].offset) > limit:
            polls.append(distance)
            at += 1
        if jump is not None and polls and first > _MORE * max(polls):
            lost = min(jump.lost, first - max(polls))
            yield replace(jump, lost=lost, at_least=lost)
        elif jump is not None and not polls and first > max(_POLL, largest_poll):
            # A group of which no backlog is known may commit only at its end, after any number of polls.
            least = first - max(_POLL, largest_poll) if largest_poll else 0
            yield replace(jump, at_least=min(jump.lost, least))
        largest_poll = max(largest_poll, *polls, 0)
