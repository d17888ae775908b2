"""Replays the records of share partitions as a share coordinator does (`ShareCoordinatorShard.replay`, Kafka 4.3.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc

from kafka_records_engine.findings import UNKNOWN_STATE, Finding
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, place_of
from kafka_records_tables.coordinator.records.named_records import Event, Picked
from kafka_records_tables.coordinator.shares.share_batches import UNDECIDED, StateBatch, combined

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

SNAPSHOT: Final = "ShareSnapshot"
UPDATE: Final = "ShareUpdate"

_OF_BOTH: Final = ("snapshot_epoch", "leader_epoch", "start_offset", "delivery_complete_count")

PICKED: Final[Picked] = {
    SNAPSHOT: (*_OF_BOTH, "state_epoch", "create_timestamp", "write_timestamp"),
    UPDATE: _OF_BOTH,
}
"""The fields of each record that the replay needs, besides `batches_of`."""

_NO_CHANGE: Final = -1
"""The start offset or leader epoch in an update that keeps the present one."""

SharePartition = tuple[str, str, int]
"""Group id, topic id and partition."""


@dataclass(slots=True)
class ShareState:
    """The state of one share partition."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: list[StateBatch]
    log_offset: int
    """The offset of the last record from which the state was built."""
    state_epoch: int | None = None
    create_timestamp: int | None = None
    write_timestamp: int | None = None
    snapshot_log_offset: int | None = None
    update_count: int = 0
    """The number of updates after the snapshot."""
    is_partial: bool = False
    """Whether the records have an update but no snapshot before it."""


@dataclass(slots=True)
class ShareReplay:
    """The states of share partitions, after records were applied in log order."""

    unusable: Collection[int]
    """Offsets of records that no coordinator can replay."""
    batches: Mapping[int, list[StateBatch]]
    """The batches of records (`batches_of`)."""
    _states: dict[SharePartition, ShareState | None] = field(default_factory=dict)
    """None if a record that cannot be used has left the state unknown."""

    def take(self, event: Event) -> None:
        """Replay one record."""
        # Unpack once, because attribute access to a named tuple is slow here.
        offset, record, key, value, is_broken, _, _ = event
        place: SharePartition = key
        if is_broken or offset in self.unusable:
            self._states[place] = None
        elif value is None:
            self._states.pop(place, None)
        elif record == SNAPSHOT:
            self._states[place] = _snapshot(value, self.batches.get(offset, []), offset)
        elif place not in self._states:
            self._states[place] = _beginning(value, self.batches.get(offset, []), offset)
        elif (state := self._states[place]) is not None:
            _update(state, value, self.batches.get(offset, ()), offset)

    def states(self) -> Mapping[SharePartition, ShareState]:
        """The share partitions whose states are known."""
        return {place: state for place, state in self._states.items() if state is not None}


def refused_records(found: DecodedRecords, types: tuple[int, ...]) -> dict[int, str]:
    """For each row whose record can be decoded but not replayed by any coordinator, the problem. `types` are the record
    types of a snapshot and of an update."""
    is_update = np.isin(found.columns.record_type, types[1:]) & found.has_key
    said = dict.fromkeys(np.flatnonzero(is_update & found.is_tombstone).tolist(), "an update without a value")
    for number in types:
        if number in found.columns.records:
            lists = found.member((number,), "value", "state_batches")
            first, last = (pc.struct_field(pc.list_flatten(lists), name) for name in ("first_offset", "last_offset"))
            rows = pc.list_parent_indices(lists).filter(pc.less(last, first))
            said.update(dict.fromkeys(rows.to_pylist(), "a batch that ends before it begins"))
    return dict(sorted(said.items()))


def reported_as_refused(found: DecodedRecords, types: tuple[int, ...], context: Context, consequence: str) -> set[int]:
    """Report the `refused_records`, with this consequence, and return their offsets."""
    said = refused_records(found, types)
    for row, what in said.items():
        number = int(found.columns.record_type[row])
        place = place_of(found.rows, row, context)
        context.report(Finding("damage", UNKNOWN_STATE, what, consequence, record_type=number, **place))
    return {int(found.offsets[row]) for row in said}


def batches_of(found: DecodedRecords, types: tuple[int, ...]) -> dict[int, list[StateBatch]]:
    """The batches in the value of each record, by its offset; records without batches are left out. `types` are those
    of `refused_records`."""
    batches: dict[int, list[StateBatch]] = {}
    for number in types:
        if number in found.columns.records:
            lists = found.member((number,), "value", "state_batches")
            counts = pc.list_value_length(lists).fill_null(0).to_numpy()
            members = (pc.struct_field(pc.list_flatten(lists), name) for name in StateBatch._fields)
            # Make all at once: there are many.
            every = list(map(_as_batch, zip(*(member.to_numpy().tolist() for member in members), strict=True)))
            rows = np.flatnonzero(counts)
            ends = np.cumsum(counts[rows]).tolist()
            parts = (every[start:end] for start, end in zip([0, *ends], ends, strict=False))
            batches.update(zip(found.offsets[rows].tolist(), parts, strict=True))
    return batches


def _snapshot(value: Sequence[Any], batches: list[StateBatch], offset: int) -> ShareState:
    snapshot_epoch, leader_epoch, start_offset, count, state_epoch, created, written = value
    return ShareState(
        snapshot_epoch, leader_epoch, start_offset, count, batches, offset, state_epoch, created, written, offset
    )


def _beginning(value: Sequence[Any], batches: list[StateBatch], offset: int) -> ShareState:
    """Let an update without an earlier state become the state."""
    snapshot_epoch, leader_epoch, start_offset, count = value
    return ShareState(
        snapshot_epoch, leader_epoch, start_offset, count, batches, offset, update_count=1, is_partial=True
    )


def _update(state: ShareState, value: Sequence[Any], batches: Collection[StateBatch], offset: int) -> None:
    snapshot_epoch, leader_epoch, start_offset, state.delivery_complete_count = value
    if leader_epoch != _NO_CHANGE:
        state.leader_epoch = leader_epoch
    if start_offset != UNDECIDED:
        state.start_offset = start_offset
    state.batches = combined(state.batches, batches, state.start_offset)
    state.log_offset = offset
    state.update_count += 1
    # An update names the snapshot that it is based on. If this is not the last known snapshot, a snapshot in between is
    # missing.
    state.is_partial |= snapshot_epoch != state.snapshot_epoch


_as_batch: Final = partial(tuple.__new__, StateBatch)
"""The same as `StateBatch._make`, without a Python-level call for each batch: there are many."""
