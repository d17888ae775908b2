"""Positions in a deleted topic that a group committed for the topic created after it, and then read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka_records_tables.report.facts.group_facts import commit_spans, ends_of_topic
from kafka_records_tables.report.rule_context import RuleContext

_CLOCKS_MS: Final = 100
"""How much younger than the commit a record must be, because the clocks of producers differ."""


@dataclass(frozen=True, slots=True)
class CarriedPosition:
    """An offset that was committed for a new topic before its log had that many records."""

    group_id: str
    partition: int
    offset: int
    start: int
    """The present start of the log."""
    committed_ms: int
    written_ms: int
    """When the record before the offset was written."""

    @property
    def records(self) -> int:
        """How many records the log still has that the group skipped."""
        return max(self.offset - self.start, 0)


def carried_positions(
    context: RuleContext, topic: str, first: Iterable[Mapping[str, Any]]
) -> tuple[CarriedPosition, ...]:
    """The first commits of groups for a recreated topic (`first`, in the columns of `regressions`) that are beyond the
    end that the new log had then, not below the old position, and not above a later commit."""
    found: dict[tuple[str, int], CarriedPosition] = {}
    for row in sorted(first, key=lambda each: each["commit_timestamp_ms"] or 0):
        group, partition, offset, at_ms = (
            row[name] for name in ("group_id", "partition", "to_offset", "commit_timestamp_ms")
        )
        is_old = at_ms is not None and offset and row["from_offset"] is not None and offset >= row["from_offset"]
        if not is_old or (group, partition) in found:
            continue
        ends = ends_of_topic(context, group, topic)
        written_ms = ends.written_ms((topic, partition), offset - 1)
        if written_ms is None or written_ms <= at_ms + _CLOCKS_MS:
            continue
        spans = commit_spans(context, (group,)).get((group, topic, partition), [])
        if all(each.offset >= offset for each in spans if (each.from_ms or 0) >= at_ms):
            start = ends.start((topic, partition)) or 0
            found[group, partition] = CarriedPosition(group, partition, offset, start, at_ms, written_ms)
    return tuple(found.values())
