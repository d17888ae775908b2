"""Finds commits that are further ahead of the previous commit than the group can have read in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles
from typing import Any

from kafka_records_tables.report.facts.group_facts import LogEnds, Span


@dataclass(frozen=True, slots=True)
class Jump:
    """A commit that is further ahead of the previous commit than the group usually reads in between."""

    topic: str
    partition: int
    before: int
    before_ms: int | None
    """The time at which the group first committed `before`."""
    after: Span
    lost: int
    at_least: int | None = None
    """How many records were certainly deleted before the commit; None if `lost` is an estimate."""


@dataclass(frozen=True, slots=True)
class UsualStep:
    """The usual distance between two commits of a group that reads all records in between."""

    step: int
    """How much of a jump's distance counts as read."""
    limit: float
    """A commit is a jump if its distance from the previous commit exceeds this limit."""
    after: int
    """The number of commits after which a partition's usual distance is known. A longer distance before that may be a
    backlog that the group found when it began."""


Steps = Sequence[tuple[Span, Span]]
"""Commits of a partition, each with the previous one. Offsets ascend."""


def steps_of(spans: Sequence[Span]) -> Steps:
    """The commits of a partition that moved its offset forward, each with the previous one."""
    return [
        (before, after)
        for before, after in pairwise(spans)
        if before.ended_by != "tombstone" and after.offset > before.offset
    ]


def usual_if_few_jump(steps: Steps, least: int, times: float) -> UsualStep | None:
    """The usual distance if few commits jump, so that the median is close to it; None if there are fewer than `least`.

    A group that reads a backlog commits more records together than one that waits for each record. So only if at most
    one distance in ten is `times` as long as all others are these jumps."""
    distances = sorted(after.offset - before.offset for before, after in steps)
    if len(distances) < least:
        return None
    limit = max(times * median(distances), 2)
    rarest = distances[-(len(distances) // 10) - 1 :]
    limit = max(limit, next((before for before, after in pairwise(rarest) if after >= times * before), 0))
    usual = [each for each in distances if each <= limit]
    step = round(quantiles(usual, n=4)[2]) if len(usual) > 1 else round(median(distances))
    return UsualStep(step, limit, least)


def usual_if_most_jump(of_partitions: Iterable[Steps], least: int, times: float) -> UsualStep | None:
    """The usual distance of a group that reads no more than usual between two jumps, so that most of its commits may
    jump. Its distances then fall into two classes: short ones without a jump, and long ones.

    None if there are no two such classes: each needs at least `least` distances, none may lie between the longest short
    one and twice that, and the median of the long ones must be `times` as long. The commits of all partitions count
    together, because one application reads them.
    """
    distances = sorted(after.offset - before.offset for steps in of_partitions for before, after in steps)
    last = len(distances) - least
    splits = [at for at in range(least, last + 1) if distances[at] >= 2 * distances[at - 1]]
    if not splits:
        return None
    at = max(splits, key=lambda at: distances[at] / distances[at - 1])
    if median(distances[at:]) < times * median(distances[:at]):
        return None
    longest = distances[at - 1]
    return UsualStep(longest, longest, 0)


def jumps_of(row: Mapping[str, Any], steps: Steps, usual: UsualStep) -> list[Jump]:
    """The jumps of a partition (a row of `lag`) over records that are no longer in its log."""
    start = row["log_start_offset"]
    return [
        Jump(
            row["topic"],
            row["partition"],
            before.offset,
            before.from_ms,
            after,
            # Only records below the present log start can have been deleted.
            min(after.offset - before.offset - usual.step, start - before.offset),
        )
        for number, (before, after) in enumerate(steps)
        if after.offset - before.offset > usual.limit
        and before.offset < start
        and (number >= usual.after or after.offset >= start)
    ]


def was_outrun(row: Mapping[str, Any], steps: Steps, ends: LogEnds, largest_file: int) -> bool:
    """Whether, at a commit before the last one, a partition (a row of `lag`) was further from the end of its log than
    the log is long. Its next records were then deleted, so a later commit jumped over them.

    `largest_file` is the number of offsets in the largest file of the log, by which the log may have been longer.
    """
    start, end = row["log_start_offset"], row["end_offset"]
    if None in (start, end):
        return False
    place = row["topic"], row["partition"]
    for before, _ in steps:
        end_then = ends.end_at(place, before.from_ms)
        # For the time before the first record in the log, only an upper bound of the log end is known: the present log
        # start.
        if end_then is not None and end_then > start and end_then - before.offset > end - start + largest_file:
            return True
    return False
