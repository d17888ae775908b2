"""A partition on whose record consumers fail, now or earlier."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.facts.usual_values import usual_most

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import MemberLife, Span

KIND: Final = "crash_loop"


@dataclass(frozen=True, slots=True)
class StuckPartition:
    """A partition whose offset does not move, although members get it again and again."""

    topic: str
    partition: int
    offset: int
    lag: int
    unread_ms: int | None
    span: Span
    attempts: list[MemberLife]
    """The members that have had it since then, and left."""
    usual: int | None = None
    """The number of members that had it and left before its offset moved, which 95 % of the earlier cases do not
    exceed; None if the log has too few cases."""

    @property
    def place(self) -> str:
        """The partition in the form that operators write."""
        return f"{self.topic}-{self.partition}"


def usual_attempts(
    spans: list[Span], left: list[MemberLife], written_ms: Callable[[int], int | None] | None
) -> int | None:
    """How many members usually had a partition and left before its offset moved, according to its history: the number
    that 95 % of its commits do not exceed; None if the log has too few commits. Members count from the time at which
    there was a record to read. `written_ms` returns that time for an offset; offsets without a known time are left out.
    Without `written_ms`, members count from the commit.
    """
    times = sorted(each.left_ms or 0 for each in left)
    counts = []
    for each in spans:
        written = 0 if written_ms is None else written_ms(each.offset)
        if each.from_ms is not None and each.to_ms is not None and written is not None:
            since = min(max(each.from_ms, written), each.to_ms)
            counts.append(bisect_left(times, each.to_ms) - bisect_left(times, since))
    return usual_most(counts)
