"""Explains every tombstone of `__share_group_state`: the state that it ended, and the evidence for its cause in the
log.

Kafka 4.1 and later write them in two methods. `ShareCoordinatorShard.deleteState` writes one for a share partition with
state. `ShareCoordinatorShard.maybeCleanupShareState` writes, at once, one for each share partition of the deleted
topics that has state in the log partition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, filter_record_types, numbers_of
from kafka_records_tables.coordinator.records.named_records import Event, Picked, events
from kafka_records_tables.coordinator.shares.share_batches import UNDECIDED
from kafka_records_tables.coordinator.shares.share_replay import SNAPSHOT, UPDATE, reported_as_refused
from kafka_records_tables.tables.words.causes import HIGH, MEDIUM, STATE_DELETED, TOPIC_DELETED, Evidence

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

_PICKED: Final[Picked] = {SNAPSHOT: ("start_offset", "state_epoch"), UPDATE: ("start_offset",)}

_NAMELESS: Final = "left out: it is unknown which share partition it is about"
_UNREAD: Final = "not used: a deletion of its share partition may lack its earlier state"

_EITHER: Final = (STATE_DELETED, TOPIC_DELETED)
_BY_REQUEST: Final = (STATE_DELETED,)


class State(NamedTuple):
    """The state of a share partition, as shown by the log."""

    state_epoch: int | None
    start_offset: int | None
    log_offset: int
    """The offset of the last record of the state."""


class ExplainedEnd(NamedTuple):
    """The end of a state: a tombstone, and why it was written."""

    event: Event
    before: State | None
    """The state that it ended; None if it is not in the log."""
    write_offset: int
    """The offset of the first tombstone that may belong to the same write."""
    cause: tuple[str, ...]
    possible: tuple[str, ...]
    confidence: str
    evidence: tuple[Evidence, ...]


@dataclass(slots=True)
class _Write:
    """Tombstones that may have been written at once: consecutive, in one batch and with the same time."""

    base_offset: int | None
    ended: list[tuple[Event, State | None]] = field(default_factory=list)
    stays: dict[str, int] = field(default_factory=dict)
    """By topic id, the last record of a state that exists both before and after the write."""

    @property
    def end(self) -> int:
        """The offset after the last of them."""
        return self.ended[-1][0].offset + 1

    def goes_on(self, event: Event, base_offset: int | None) -> bool:
        """Whether a tombstone may belong to the same write."""
        place = self.end, self.base_offset, self.ended[-1][0].timestamp_ms
        return place == (event.offset, base_offset, event.timestamp_ms)


class ShareTombstones:
    """Explains the tombstones of one log partition. Memory grows with the share partitions with state, the topics and
    the tombstones."""

    def __init__(self, schemas: Mapping[int, RecordSchema], context: Context) -> None:
        """Unusable records are reported to the context."""
        self._schemas = schemas
        self._context = context
        self._types = numbers_of(schemas, (SNAPSHOT, UPDATE))
        self._live: dict[str, dict[tuple[str, int], State]] = {}
        """By topic id, the existing states, ordered by their latest records."""
        self._used: dict[str, int] = {}
        """By topic id, the last record that is not a tombstone."""
        self._writes: list[_Write] = []
        self._is_open = False
        """Whether the next tombstone may belong to the last write."""
        self._next = 0
        self._lost: list[int] = []
        self._there_again: list[int] = []
        """Where records are missing or unusable: the first such offset, and the offset after the last."""

    def take(self, batch: pa.RecordBatch) -> None:
        """Add the raw rows that follow."""
        rows = filter_record_types(batch, self._types, self._context, _NAMELESS)
        if rows.num_rows:
            self._replay(DecodedRecords(rows.filter(pc.is_null(rows.column("control"))), self._schemas))

    def explained(self) -> Iterator[ExplainedEnd]:
        """All tombstones, in log order."""
        self._close()
        for write in self._writes:
            for event, before in write.ended:
                topic_id = event.key[1]
                stays, used = write.stays.get(topic_id), self._used.get(topic_id, -1)
                said: tuple[tuple[str, ...], tuple[str, ...], str, tuple[Evidence, ...]]
                if stays is not None and self._is_whole(stays, write.end):
                    said = _BY_REQUEST, _BY_REQUEST, HIGH, (Evidence("stays_in_topic", stays),)
                elif used >= write.end:
                    said = _BY_REQUEST, _EITHER, MEDIUM, (Evidence("topic_goes_on", used),)
                else:
                    said = _EITHER, _EITHER, HIGH, ()
                yield ExplainedEnd(event, before, write.ended[0][0].offset, *said)

    def _replay(self, found: DecodedRecords) -> None:
        found.report(self._context, lambda row: _UNREAD if found.has_key[row] else _NAMELESS)
        refused = reported_as_refused(found, self._types, self._context, _UNREAD)
        self._note_gaps(found)
        bases = _base_offsets(found)
        for event in events(found, _PICKED):
            is_unknown = event.is_broken or event.offset in refused
            if event.value is None and not is_unknown:
                self._end(event, bases.get(event.offset))
            else:
                self._go_on(event, is_unknown)

    def _note_gaps(self, found: DecodedRecords) -> None:
        offsets = found.offsets[found.has_key]
        follows = np.concatenate([[self._next], offsets[:-1] + 1])[: len(offsets)]
        is_gap = follows != offsets
        self._lost += follows[is_gap].tolist()
        self._there_again += offsets[is_gap].tolist()
        self._next = int(offsets[-1]) + 1 if len(offsets) else self._next

    def _is_whole(self, first: int, last: int) -> bool:
        """Whether no record between `first` and `last` is missing."""
        gap = bisect_right(self._there_again, first)
        return gap == len(self._lost) or self._lost[gap] > last

    def _end(self, event: Event, base_offset: int | None) -> None:
        if not self._is_open or not self._writes[-1].goes_on(event, base_offset):
            self._close()
            self._writes.append(_Write(base_offset))
            self._is_open = True
        group_id, topic_id, partition = event.key
        states = self._live.get(topic_id, {})
        self._writes[-1].ended.append((event, states.pop((group_id, partition), None)))
        if not states:
            self._live.pop(topic_id, None)

    def _go_on(self, event: Event, is_unknown: bool) -> None:
        """Record that a record is not a tombstone."""
        self._close()
        group_id, topic_id, partition = event.key
        states = self._live.setdefault(topic_id, {})
        before = states.pop((group_id, partition), None)
        states[group_id, partition] = _after(before, event, is_unknown)
        self._used[topic_id] = event.offset

    def _close(self) -> None:
        """Record the states that remain after the last write."""
        if self._is_open:
            write = self._writes[-1]
            for topic_id in {event.key[1] for event, _ in write.ended} & self._live.keys():
                write.stays[topic_id] = next(reversed(self._live[topic_id].values())).log_offset
            self._is_open = False


def _after(before: State | None, event: Event, is_unknown: bool) -> State:
    if is_unknown or event.value is None:
        return State(None, None, event.offset)
    start_offset = None if event.value.start_offset == UNDECIDED else event.value.start_offset
    if event.record == SNAPSHOT:
        return State(event.value.state_epoch, start_offset, event.offset)
    if before is None:
        return State(None, start_offset, event.offset)
    return State(before.state_epoch, before.start_offset if start_offset is None else start_offset, event.offset)


def _base_offsets(found: DecodedRecords) -> dict[int, int | None]:
    """The base offsets of the batches of tombstones, by tombstone offset, if the source reports them."""
    if "base_offset" not in found.rows.schema.names:
        return {}
    rows = np.flatnonzero(found.is_tombstone)
    return dict(
        zip(
            found.offsets[rows].tolist(), found.rows.column("base_offset").take(pa.array(rows)).to_pylist(), strict=True
        )
    )
