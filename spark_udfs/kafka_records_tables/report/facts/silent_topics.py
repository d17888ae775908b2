"""Topics to which nothing is written any more, although clients wrote to them all the time before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_records_tables.report.facts.group_facts import LogEnds
from kafka_records_tables.report.facts.log_samples import TABLE as SAMPLES
from kafka_records_tables.report.facts.usual_values import STOP, UsualGap, usual_gap

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext


@dataclass(frozen=True, slots=True)
class Silence:
    """A topic to which nothing has been written since `last_ms`."""

    topic: str
    partition: int
    offset: int
    """The place of its last record."""
    last_ms: int
    usual: UsualGap
    """The usual interval between its batches before."""


def silence_of(context: RuleContext, topic: str, least_ms: int) -> Silence | None:
    """The silence of a topic in files: nothing was written for at least `least_ms`, and for at least STOP times as long
    as ever between the batches that are known; None if there is none."""
    rows = context.look(SAMPLES, topic=topic).to_pylist()
    ends = LogEnds(rows)
    times: set[int] = set()
    newest: tuple[int, int, int] | None = None
    for row in rows:
        place = (row["topic"], row["partition"])
        latest = ends.latest(place)
        if latest is None:
            if row["log_start_offset"] != row["log_end_offset"]:
                return None
            continue
        offset, at_ms = latest
        newest = max(newest or (at_ms, row["partition"], offset), (at_ms, row["partition"], offset))
        times.update(each["timestamp_ms"] for each in row["samples"])
    usual = usual_gap(times)
    if newest is None or usual is None:
        return None
    last_ms, partition, offset = newest
    if context.at_ms - last_ms < max(least_ms, STOP * usual.most_ms):
        return None
    return Silence(topic, partition, offset, last_ms, usual)
