"""A partition that gets most records of a topic, as a cause of a growing backlog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_records_tables.report.facts.group_facts import LogEnds
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import counted, shown

_TIMES = 3
"""A partition is hot if it gets at least this many times the average of the others, and at least half of all
records."""


@dataclass(frozen=True, slots=True)
class HotPartition:
    """A partition that gets most records of its topic."""

    topic: str
    partition: int
    written: int
    """The number of records written to it."""
    of_all: int
    """The number of records written to all partitions of the topic."""
    partitions: int
    seconds: float
    was_hot: bool = False
    """Whether it already got most records while the group kept up."""

    @property
    def place(self) -> str:
        """The partition in the form `<topic>-<partition>`."""
        return f"{self.topic}-{self.partition}"


def hot_partition(
    topic: str, partitions: Sequence[int], ends: LogEnds, since_ms: int, until_ms: int
) -> HotPartition | None:
    """The partition that got most records of a topic in a time span; None if there is none, or if the end of a log is
    unknown."""
    written = {}
    for each in partitions:
        before, after = ends.end_at((topic, each), since_ms), ends.end_at((topic, each), until_ms)
        if before is None or after is None:
            return None
        written[each] = max(after - before, 0)
    if len(written) < 2:
        return None
    hot = max(written, key=lambda each: written[each])
    every = sum(written.values())
    rest = (every - written[hot]) / (len(written) - 1)
    if 2 * written[hot] < every or written[hot] < _TIMES * rest:
        return None
    return HotPartition(topic, hot, written[hot], every, len(written), max(until_ms - since_ms, 1) / 1000)


def weigh_skew(hot: HotPartition, read: int, lag: int, waiting: int) -> Verdict:
    """The verdict about a hot partition; `read` is the number of its records that were read in that time; `lag` is the
    number of its waiting records, out of `waiting` in all partitions."""
    share = round(100 * hot.written / max(hot.of_all, 1))
    others = (hot.of_all - hot.written) / hot.seconds / (hot.partitions - 1)
    rates = Evidence(
        f"{hot.written / hot.seconds:.1f} records per second are written to {hot.place} and "
        f"{read / hot.seconds:.1f} are read from it; each of the other "
        f"{counted(hot.partitions - 1, 'partition')} gets {others:.1f} on average"
    )
    waits = Evidence(f"{lag} of {counted(waiting, 'waiting record')} are in {hot.place}")
    return Verdict(
        f"Most records of {shown(hot.topic)} go to one partition: {hot.place} gets {share} % of them "
        f"({hot.written / hot.seconds:.1f} per second), and its reader manages {read / hot.seconds:.1f}. A group has "
        "one reader for each partition.",
        evidence_for=(rates, waits),
        steps=(spread(hot),),
    )


def spread(hot: HotPartition) -> NextStep:
    """The step that helps the reader of a hot partition."""
    return NextStep(
        f"Spread what is written to {hot.place} over more keys, and so over all partitions (a few keys probably have "
        "most records), or make the work for each record faster; more members do not help this partition"
    )
