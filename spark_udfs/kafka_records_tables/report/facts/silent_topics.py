"""Topics to which nothing is written any more, although clients used to write to them steadily."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.usual_values import STOP, UsualGap, usual_gap

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import LogEnds
    from kafka_records_tables.report.rule_context import RuleContext


@dataclass(frozen=True, slots=True)
class Silence:
    """A topic without writes since `last_ms`."""

    topic: str
    partition: int
    offset: int
    """The offset of its last record."""
    last_ms: int
    usual: UsualGap
    """The usual interval between its earlier batches."""


def silence_of(context: RuleContext, ends: LogEnds, topic: str, least_ms: int) -> Silence | None:
    """The silence of a topic in files: nothing was written for at least `least_ms`, and for at least STOP times the
    longest interval between known batches. None if there is no such silence."""
    rows = context.table("log_ends")
    times: set[int] = set()
    newest: list[tuple[int, int, int]] = []
    for partition in kept(rows, equal(rows, "topic", topic))["partition"].to_pylist():
        place = topic, partition
        latest = ends.latest(place)
        if latest is not None:
            newest.append((latest[1], partition, latest[0]))
            times.update(ends.times(place))
        elif ends.start(place) != ends.end(place):
            return None
    usual = usual_gap(times)
    if not newest or usual is None:
        return None
    last_ms, partition, offset = max(newest)
    if context.at_ms - last_ms < max(least_ms, STOP * usual.most_ms):
        return None
    return Silence(topic, partition, offset, last_ms, usual)
