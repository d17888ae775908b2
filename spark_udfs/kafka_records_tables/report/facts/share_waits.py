"""How long the first unprocessed record of each share partition has held the start offset. Only the report uses this
table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.coordinator.shares.share_batches import combined
from kafka_records_tables.coordinator.shares.share_replay import UPDATE
from kafka_records_tables.report.facts.share_state_reader import READS, RECORDS, ShareStateReader
from kafka_records_tables.tables.declaration import Column, Table
from kafka_records_tables.topics import SHARE_STATE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.shares.share_batches import StateBatch

PROCESSED: Final = (2, 4)
"""The final states of a record: acknowledged and archived."""
_UNDECIDED: Final = -1
_KEY: Final = ("group_id", "topic_id", "partition")

TABLE: Final = Table(
    name="share_waits",
    topic=SHARE_STATE,
    about="how long the first unprocessed record of each share partition has held the start offset",
    helper="history",
    records=RECORDS,
    reads=READS,
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic_id", "string", "id of the topic that it consumes"),
        Column("partition", "int32", "partition of the topic"),
        Column("first_offset", "int64", "the first offset that is not processed, as far as single records show it"),
        Column(
            "held_ms",
            "int64",
            "when the first record after first_offset was processed; null if none was",
        ),
        Column("held_at", "int64", "the offset of the record that says so"),
        Column("longest_hold_ms", "int64", "how long an earlier record held the start offset at most, in milliseconds"),
        Column("changed_ms", "int64", "when the last change of the state was written"),
        Column("changed_at", "int64", "the offset of the record of this change"),
        Column("changes", "int64", "the number of changes"),
        Column("longest_pause_ms", "int64", "the longest time between two changes, in milliseconds"),
        Column("log_partition", "int32", "partition of the log"),
    ),
    sort=("log_partition", "group_id", "topic_id", "partition"),
    group="group_id",
    module=__name__,
    rules="""\
One row per share partition with a change. Changes are updates with batches, and snapshots in which more is processed
than before: a broker also writes snapshots of share partitions that do not change. Acquiring a record and renewing its
lock change nothing in the log (`SharePartition`).
""",
)


@dataclass(slots=True)
class _Waits:
    """The state of a share partition so far."""

    first_offset: int = 0
    held_ms: int | None = None
    held_at: int | None = None
    longest_hold_ms: int = 0
    changed_ms: int | None = None
    changed_at: int | None = None
    changes: int = 0
    longest_pause_ms: int = 0


def first_unprocessed(start_offset: int, batches: Iterable[tuple[int, int, int]]) -> int:
    """The first offset from a start offset on that is neither acknowledged nor archived. Batches are first and last
    offsets and states, in ascending order."""
    first = start_offset
    for begin, end, state in batches:
        if state in PROCESSED and begin <= first <= end:
            first = end + 1
    return first


class Reader(ShareStateReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._partitions: dict[tuple[str, str, int], _Waits] = {}
        self._starts: dict[tuple[str, str, int], int] = {}
        """The start offsets of the state."""
        self._batches: dict[tuple[str, str, int], list[StateBatch]] = {}
        """The state of the offsets from the first unprocessed one on."""
        self._lasts: dict[tuple[str, str, int], int] = {}
        """The highest processed offsets."""

    def take_state(self, event: Any, batches: Sequence[StateBatch]) -> None:
        key, at_ms = event.key, event.timestamp_ms
        if event.value is None or at_ms is None:
            return
        waits = self._partitions.setdefault(key, _Waits())
        start, before = event.value.start_offset, self._starts.get(key, _UNDECIDED)
        if start == _UNDECIDED:
            start = before
        if start < before:
            # The start offset was moved back.
            waits.first_offset, waits.held_ms, waits.held_at = start, None, None
            self._lasts.pop(key, None)
            self._batches.pop(key, None)
        self._starts[key] = start
        first, known = max(waits.first_offset, start), self._lasts.get(key, _UNDECIDED)
        left = combined(self._batches.get(key, ()) if event.record == UPDATE else (), batches, first)
        first = first_unprocessed(first, ((each.first_offset, each.last_offset, each.delivery_state) for each in left))
        last = max((each.last_offset for each in left if each.delivery_state in PROCESSED), default=_UNDECIDED)
        self._batches[key] = [each for each in left if each.last_offset >= first]
        moved = first > waits.first_offset
        if moved:
            if waits.held_ms is not None:
                waits.longest_hold_ms = max(waits.longest_hold_ms, at_ms - waits.held_ms)
            waits.first_offset, waits.held_ms, waits.held_at = first, None, None
        if last > first and waits.held_ms is None:
            waits.held_ms, waits.held_at = at_ms, event.offset
        if batches and (moved or last > known or event.record == UPDATE):
            if waits.changed_ms is not None:
                waits.longest_pause_ms = max(waits.longest_pause_ms, at_ms - waits.changed_ms)
            waits.changed_ms, waits.changed_at = at_ms, event.offset
            waits.changes += 1
        self._lasts[key] = max(known, last)

    def finish(self) -> Iterator[pa.RecordBatch]:
        names = [each.name for each in fields(_Waits)]
        rows = [
            {
                **dict(zip(_KEY, key, strict=True)),
                **{name: getattr(waits, name) for name in names},
                "log_partition": self.context.partition,
            }
            for key, waits in self._partitions.items()
            if waits.changes
        ]
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=TABLE.schema)
