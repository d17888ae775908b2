"""Finds commits that stay one below the end of a log for longer than the group needs to read a record."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kafka_records_tables.report.facts.group_facts import LogEnds, Place, Span

_TIMES: Final = 3
"""A commit rests if it stays this many times as long as the group took to commit the record before it after that was
written."""
_TOGETHER_MS: Final = 100
"""Records that were written within this time were written together."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A commit after which the group committed nothing else until another record was written, or until the time of the
    report."""

    place: Place
    span: Span
    left: int
    """The number of offsets from the commit to the end that the log had then."""
    stayed_ms: int
    came_together: bool
    """Whether the record at the committed offset and the one before it were written at the same time."""


@dataclass(frozen=True, slots=True)
class LowCommits:
    """The commits of a group since it last reached the end of a log."""

    reached: tuple[Place, Span] | None
    """The last commit known to have reached the end of its log; None if there is none."""
    first: Mapping[Place, Span]
    """The first commit for each partition after that."""
    rests: Sequence[Rest]

    @property
    def one_short(self) -> list[Rest]:
        """The commits that rested one below the end."""
        return [each for each in self.rests if each.left == 1]


class _Log:
    """The batches of records at the end of a log. Transaction markers do not count."""

    def __init__(self, ends: LogEnds, place: Place, at_ms: int) -> None:
        self._offsets, self._times = ends.batches(place)
        self._at_ms = at_ms
        self.end = self._offsets[-1] + 1 if self._offsets else None
        self.written_ms: Callable[[int], int | None] = partial(ends.written_ms, place)
        """See `LogEnds.written_ms`."""

    def end_at(self, at_ms: int) -> int | None:
        """Where the log ended at a given time; None if unknown."""
        at = bisect_right(self._times, at_ms)
        return self._offsets[at - 1] + 1 if at else None

    def next_write(self, from_ms: int) -> int:
        """When the next batch was written, or the time of the report."""
        at = bisect_right(self._times, from_ms)
        return self._times[at] if at < len(self._times) else self._at_ms


def low_commits(
    spans: Mapping[Place, Sequence[Span]], ends: Mapping[str, LogEnds], least_ms: int, at_ms: int
) -> LowCommits:
    """The commits of a group since one last reached the end of a log, with those that rested for at least `least_ms`.
    `ends` are the ends of the logs by topic. Commits that may or may not have reached the end count as if they had."""
    logs = {place: _Log(ends[place[0]], place, at_ms) for place in spans}
    since_ms, reached = -1, None
    for place, of_place in spans.items():
        for span in of_place:
            end, written = logs[place].end, logs[place].written_ms(span.offset)
            is_past = end is not None and span.offset >= end
            if (written is None or written > _time(span)) and _time(span) >= since_ms:
                since_ms = _time(span)
                reached = (place, span) if is_past or written is not None else None
    after = {place: [each for each in of_place if _time(each) > since_ms] for place, of_place in spans.items()}
    rests = [_rest(place, each, logs[place]) for place, those in after.items() for each in those]
    return LowCommits(
        reached,
        {place: those[0] for place, those in after.items() if those},
        [each for each in rests if each is not None and each.stayed_ms >= least_ms],
    )


def _time(span: Span) -> int:
    return span.from_ms or 0


def _rest(place: Place, span: Span, log: _Log) -> Rest | None:
    """A commit that stayed although there was a record to read, for longer than the group would need to read and commit
    it, judged by the record before it. If another commit follows before another record, the group was still at work."""
    from_ms = _time(span)
    end, before_ms, next_ms = log.end_at(from_ms), log.written_ms(span.offset - 1), log.written_ms(span.offset)
    if end is None or before_ms is None or next_ms is None or span.ended_by == "tombstone":
        return None
    until_ms = log.next_write(from_ms)
    if (span.to_ms is not None and span.to_ms < until_ms) or until_ms - from_ms < _TIMES * (from_ms - before_ms):
        return None
    return Rest(place, span, end - span.offset, until_ms - from_ms, next_ms - before_ms <= _TOGETHER_MS)
