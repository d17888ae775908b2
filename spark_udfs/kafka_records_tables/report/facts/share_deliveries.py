"""Records that share groups archived or received several times, over the whole history of their state: a table that
only the report uses."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.report.facts.share_state_reader import READS, RECORDS, ShareStateReader
from kafka_records_tables.tables.column_types import batch_of
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import SHARE_STATE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.shares.share_batches import StateBatch

AVAILABLE: Final = 0
ARCHIVED: Final = 4
_SEVERAL: Final = 2
"""A range counts as delivered several times once it has become available again this often."""

TABLE: Final = Table(
    name="share_deliveries",
    topic=SHARE_STATE,
    about="every range of offsets that a share group archived, or that was delivered three times or more",
    helper="history",
    records=RECORDS,
    reads=READS,
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic_id", "string", "id of the topic that it consumes"),
        Column("topic", "string", "name of the topic; null if the source does not report it"),
        Column("partition", "int32", "partition of the topic"),
        Column("first_offset", "int64", "first offset of the range"),
        Column("last_offset", "int64", "last offset of the range"),
        Column(
            "delivery_state", "int8", "the state of its records after that: 0 available, 2 acknowledged, 4 archived"
        ),
        Column("delivery_count", "int32", "how many times its records were delivered"),
        Column(
            "released_ms",
            "list<int64>",
            "when its records became available again after each delivery, if the log shows it",
        ),
        *timestamps("log", "when the first record that says so was written"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    group="group_id",
    module=__name__,
    rules="""\
One row per range of offsets, from the first record of the state that has it archived. If a part of a range was
archived before, or a start offset that moved has cut it, only the new part has a row. Ranges that were not archived
have a row if they became available again twice or more: from the record that has them acknowledged, or else from the
last one that has them available.
""",
)


@dataclass(slots=True)
class _Released:
    """A range of offsets that became available again."""

    times: dict[int, int | None] = field(default_factory=dict)
    """When it became available, by the number of previous deliveries."""
    last: int = -1
    event: Any = None
    """The record in which it is available after its last delivery."""


class Covered:
    """Offsets that were already reported, as disjoint ranges that do not touch."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, first: int, last: int) -> list[tuple[int, int]]:
        """Add a range, and return the parts of it that are new."""
        # The ranges from index `at` to `end` overlap or touch the new one.
        at = end = bisect_left(self._lasts, first - 1)
        new, begins, ends = [], first, last
        while end < len(self._firsts) and self._firsts[end] <= last + 1:
            if self._firsts[end] > begins:
                new.append((begins, self._firsts[end] - 1))
            begins, ends = max(self._lasts[end] + 1, begins), max(self._lasts[end], ends)
            end += 1
        if begins <= last:
            new.append((begins, last))
        first = min([first, *self._firsts[at:end]])
        self._firsts[at:end], self._lasts[at:end] = [first], [ends]
        return new


class Reader(ShareStateReader):
    uses_topics = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._rows: list[dict[str, Any]] = []
        self._seen: dict[tuple[str, str, int], Covered] = {}
        self._released: dict[tuple[tuple[str, str, int], int], _Released] = {}
        """Ranges that became available again, by share partition and first offset."""

    def take_state(self, event: Any, batches: Sequence[StateBatch]) -> None:
        if event.value is None:
            return
        seen = self._seen.setdefault(event.key, Covered())
        for first, last, count, state in batches:
            # A snapshot repeats ranges from earlier updates.
            if state == AVAILABLE and count:
                of_range = self._released.setdefault((event.key, first), _Released())
                if count not in of_range.times:
                    of_range.times[count] = event.timestamp_ms
                    of_range.last, of_range.event = last, event
                continue
            times = self._released.pop((event.key, first), _Released()).times
            if state == ARCHIVED:
                for new in seen.add(first, last):
                    self._tell(event, *new, state, count, times)
            elif len(times) >= _SEVERAL:
                self._tell(event, first, last, state, count, times)

    def _tell(self, event: Any, first: int, last: int, state: int, count: int, times: dict[int, int | None]) -> None:
        group_id, topic_id, partition = event.key
        self._rows.append(
            {
                "group_id": group_id,
                "topic_id": topic_id,
                "topic": self.context.log.topics.names.get(topic_id),
                "partition": partition,
                "first_offset": first,
                "last_offset": last,
                "delivery_state": state,
                "delivery_count": count,
                "released_ms": list(times.values()),
                "log_timestamp_ms": event.timestamp_ms,
                "log_partition": self.context.partition,
                "log_offset": event.offset,
            }
        )

    def finish(self) -> Iterator[pa.RecordBatch]:
        for (_, first), each in self._released.items():
            if len(each.times) >= _SEVERAL:
                self._tell(each.event, first, each.last, AVAILABLE, max(each.times), each.times)
        if self._rows:
            yield batch_of(TABLE.schema, self._rows)
