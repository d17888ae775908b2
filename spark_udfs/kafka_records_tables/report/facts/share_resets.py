"""Start offsets of share partitions that were altered by request, and the offsets skipped or repeated because of that.
Only the report uses this table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from kafka_records_tables.coordinator.shares.share_batches import UNDECIDED, StateBatch, combined
from kafka_records_tables.coordinator.shares.share_replay import SNAPSHOT, UPDATE
from kafka_records_tables.report.facts.offset_ranges import OffsetRange, merged, offset_count, within, without
from kafka_records_tables.report.facts.share_deliveries import AVAILABLE
from kafka_records_tables.report.facts.share_state_reader import READS, RECORDS, ShareStateReader
from kafka_records_tables.tables.column_types import batch_of
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import SHARE_STATE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_RANGES: Final = "list<struct<first_offset: int64, last_offset: int64>>"

TABLE: Final = Table(
    name="share_resets",
    topic=SHARE_STATE,
    about="share partitions whose start offset was altered by request (AlterShareGroupOffsets)",
    helper="history",
    records=RECORDS,
    reads=READS,
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic_id", "string", "id of the topic that it consumes"),
        Column("topic", "string", "name of the topic; null if the source does not report it"),
        Column("partition", "int32", "partition of the topic"),
        Column("state_epoch", "int32", "the epoch of the group at that time"),
        Column("old_start_offset", "int64", "the first offset before that was not finished"),
        Column("start_offset", "int64", "start offset after"),
        Column("skipped", _RANGES, "offsets that were not finished and that no later request has moved back to"),
        Column("recovered", "int64", "offsets that were skipped, and that a later request has moved back to"),
        Column("attempted", "int64", "of the skipped offsets, those that had been delivered and were available again"),
        Column("repeated", _RANGES, "offsets that were finished before and are delivered again"),
        Column("is_beginning_known", "bool", "whether the log has the offset at which the group began"),
        Column("state_log_offset", "int64", "offset of the last record of the state before"),
        Column("state_timestamp_ms", "int64", "when that record was written, in milliseconds since 1970"),
        *timestamps("log", "when the record of the last initialization of this epoch was written"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    group="group_id",
    module=__name__,
    rules="""\
One row per share partition and epoch. `AlterShareGroupOffsets` needs a group without members. The share coordinator
then writes a snapshot without batches, with the epoch of the group as its state epoch
(`ShareCoordinatorShard.initializeState`). Requests between which no member joined have the same epoch, and one row.
Offsets below a start offset, and those that are acknowledged or archived, are finished. A state that was deleted, or
initialized without a start offset, is a new one.
""",
)


@dataclass(slots=True)
class _SharePartition:
    """The state of a share partition at some point in the log."""

    state_epoch: int
    start: int
    """Its start offset, or `UNDECIDED`."""
    is_beginning_known: bool
    began_at: int | None = None
    """The start offset after the last initialization."""
    batches: list[StateBatch] = field(default_factory=list)
    finished: list[OffsetRange] = field(default_factory=list)
    """Offsets that were finished before the last initialization."""
    last: Any = None
    """The last record of its state."""
    is_untouched: bool = False
    """Whether nothing has been delivered since its offset was altered."""
    rows: list[dict[str, Any]] = field(default_factory=list)

    def set_start(self, start: int) -> None:
        """Set the start offset, and `began_at` if it is the first one after an initialization."""
        self.start = start
        if self.began_at is None and start != UNDECIDED:
            # If the log does not have the beginning, the group may have begun at any offset.
            self.began_at = start if self.is_beginning_known else 0

    def finished_since_initialization(self) -> list[OffsetRange]:
        """The offsets that were finished since the last initialization."""
        done = (each[:2] for each in self.batches if each.delivery_state != AVAILABLE)
        return merged([(self.began_at or 0, self.start - 1), *done])


class Reader(ShareStateReader):
    uses_topics = True
    picked: ClassVar = {SNAPSHOT: ("start_offset", "state_epoch", "snapshot_epoch"), UPDATE: ("start_offset",)}

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._known: dict[tuple[str, str, int], _SharePartition] = {}
        self._chains: list[list[dict[str, Any]]] = []
        """The rows of each share partition, in order."""

    def take_state(self, event: Any, batches: Sequence[StateBatch]) -> None:
        known, value = self._known.get(event.key), event.value
        if value is None:
            self._known.pop(event.key, None)
        elif event.record == SNAPSHOT:
            known = self._after_snapshot(known, event, batches)
            known.batches, known.last = list(batches), event
        elif known is not None:
            if value.start_offset != UNDECIDED:
                known.set_start(value.start_offset)
            known.batches = combined(known.batches, batches, known.start)
            known.last, known.is_untouched = event, False

    def _after_snapshot(
        self, known: _SharePartition | None, event: Any, batches: Sequence[StateBatch]
    ) -> _SharePartition:
        value = event.value
        is_other = known is None or value.state_epoch > known.state_epoch
        if known is None or (is_other and UNDECIDED in (known.start, value.start_offset)):
            is_known = known is not None or not value.snapshot_epoch
            known = self._known[event.key] = _SharePartition(value.state_epoch, UNDECIDED, is_known)
            self._chains.append(known.rows)
            known.set_start(value.start_offset)
        elif is_other or (known.is_untouched and not batches and value.start_offset != known.start):
            self._reset(known, event)
        else:
            known.set_start(value.start_offset)
        return known

    def _reset(self, known: _SharePartition, event: Any) -> None:
        if known.is_untouched:
            row = known.rows.pop()
        else:
            since = known.finished_since_initialization()
            # A start offset is written before the acknowledged records that follow it, so it may lag.
            old = next((last + 1 for first, last in since if first <= known.start <= last), known.start)
            row = self._first_values(known, event, old)
            if known.rows:
                repeated = known.rows[-1]["repeated"]
                known.rows[-1]["repeated"] = without(repeated, without(repeated, since))
            known.finished = merged([*known.finished, *since])
        start = event.value.start_offset
        row |= {
            "start_offset": start,
            "skipped": without([(row["old_start_offset"], start - 1)], known.finished),
            "repeated": within(known.finished, start),
            "log_timestamp_ms": event.timestamp_ms,
            "log_partition": self.context.partition,
            "log_offset": event.offset,
        }
        known.rows.append(row)
        known.state_epoch, known.is_untouched = event.value.state_epoch, True
        known.began_at = known.start = start

    def _first_values(self, known: _SharePartition, event: Any, old_start_offset: int) -> dict[str, Any]:
        """The values of a row that later requests of the same epoch do not change."""
        group_id, topic_id, partition = event.key
        return {
            "group_id": group_id,
            "topic_id": topic_id,
            "topic": self.context.log.topics.names.get(topic_id),
            "partition": partition,
            "state_epoch": event.value.state_epoch,
            "old_start_offset": old_start_offset,
            "tried": [each[:2] for each in known.batches if each.delivery_state == AVAILABLE and each.delivery_count],
            "is_beginning_known": known.is_beginning_known,
            "state_log_offset": known.last.offset,
            "state_timestamp_ms": known.last.timestamp_ms,
        }

    def finish(self) -> Iterator[pa.RecordBatch]:
        rows = [row for chain in self._chains for row in chain]
        for chain in self._chains:
            for at, row in enumerate(chain):
                left = row["skipped"]
                for later in chain[at + 1 :]:
                    left = without(left, within(left, later["start_offset"]))
                row["recovered"] = offset_count(row["skipped"]) - offset_count(left)
                row["attempted"] = sum(offset_count(within(row["tried"], *each)) for each in left)
                row["skipped"] = left
        for row in rows:
            for name in ("skipped", "repeated"):
                row[name] = [{"first_offset": first, "last_offset": last} for first, last in row[name]]
        if rows:
            yield batch_of(TABLE.schema, rows)
