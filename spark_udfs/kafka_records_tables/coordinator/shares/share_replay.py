"""Replays the records of share partitions as a share coordinator does (`ShareCoordinatorShard.replay`, Kafka 4.3.1)."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import UNKNOWN_STATE, Finding
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, place_of
from kafka_records_tables.coordinator.records.latest import codes_of_same
from kafka_records_tables.coordinator.shares.share_batches import UNDECIDED, StateBatch, combined, combined_at_once

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

SNAPSHOT: Final = "ShareSnapshot"
UPDATE: Final = "ShareUpdate"

_KEY: Final = ("group_id", "topic_id", "partition")

_ONLY_IN_SNAPSHOTS: Final = ("state_epoch", "create_timestamp", "write_timestamp")

_KEPT: Final = {"leader_epoch": -1, "start_offset": UNDECIDED}
"""Fields for which an update may mean "keep the present value", and the number that means it."""


class ShareReplay:
    """The states of share partitions after the records of `found`, which are in log order.

    `types` are the record types of a snapshot and of an update; `unusable` are the offsets of records that no
    coordinator can replay. After such a record, or an undecodable one, the state is unknown until a snapshot or a
    tombstone.
    """

    def __init__(self, found: DecodedRecords, types: tuple[int, ...], unusable: Collection[int]) -> None:
        self._found = found
        self._types = types
        self._keys = {name: found.member(types, "key", name) for name in _KEY}
        self._fields: dict[str, pa.Array] = {}
        rows = np.flatnonzero(found.has_key)
        codes = codes_of_same([*self._keys.values()])[rows]
        order = np.argsort(codes, kind="stable")
        rows = rows[order]
        firsts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        ends = np.append(firsts[1:], len(rows))[: len(firsts)]
        is_snapshot = found.columns.record_type[rows] == types[0]
        is_unknown = found.has_error[rows] | np.isin(found.offsets[rows], list(unusable))
        is_tombstone = found.is_tombstone[rows]
        # Find each share partition's last record that discards all earlier state.
        resets = np.where(is_snapshot | is_unknown | is_tombstone, np.arange(len(rows)), -1)
        resets = np.maximum.reduceat(resets, firsts) if len(rows) else resets
        begins = np.where(resets < 0, firsts, resets + (is_tombstone & ~is_unknown)[resets])
        has_state = (begins < ends) & ((resets < 0) | ~is_unknown[resets])
        counts = (ends - begins)[has_state]
        self._begins = np.cumsum(counts) - counts
        """The first record of each state, as an index of `_rows`: a snapshot, or an update without one."""
        self._ends = self._begins + counts - 1
        """The last record of each state."""
        self._states = np.repeat(np.arange(len(counts)), counts)
        """The state of each record."""
        chosen = np.arange(len(self._states)) + np.repeat(begins[has_state] - self._begins, counts)
        self._rows = rows[chosen]
        self._has_snapshot = is_snapshot[chosen][self._begins]
        self.update_counts: INT64 = counts - self._has_snapshot
        """For each state, the number of updates after the snapshot."""

    def __len__(self) -> int:
        return len(self._begins)

    def key(self, name: str) -> pa.Array:
        """A field of the key of each share partition."""
        return self._keys[name].take(pa.array(self._rows[self._ends]))

    def field(self, name: str) -> pa.Array:
        """A field of each state. Fields that only snapshots have are null if there is no snapshot."""
        if name in _KEPT:
            return self._values(name, self._sayings(name)[self._ends])
        return self._values(name, self._ends if name == "delivery_complete_count" else self._begins)

    @property
    def is_partial(self) -> FLAGS:
        """Whether a state lacks its snapshot, or an update refers to a different snapshot, which is missing."""
        epochs = self._vector("snapshot_epoch")
        is_other = epochs != epochs[self._begins][self._states]
        found: FLAGS = ~self._has_snapshot | (np.bincount(self._states, is_other, len(self)) > 0)
        return found

    @property
    def log_offsets(self) -> INT64:
        """The offset of the last record of each state."""
        offsets: INT64 = self._found.offsets[self._rows[self._ends]]
        return offsets

    @property
    def snapshot_offsets(self) -> pa.Array:
        """The offset of the snapshot of each state; null if there is none."""
        return pa.array(self._found.offsets[self._rows[self._begins]], mask=~self._has_snapshot)

    def batches(self) -> tuple[INT64, INT64]:
        """The state of each batch, ascending, and the batches, with a row per field of `StateBatch` and a column per
        batch."""
        rows, batches = _batch_columns(self._found, self._types)
        records = np.full(self._found.rows.num_rows, -1)
        records[self._rows] = np.arange(len(self._rows))
        records = records[rows]
        order = np.argsort(records, kind="stable")[np.count_nonzero(records < 0) :]
        records, batches = records[order], batches[:, order]
        states = self._states[records]
        # A snapshot is used unchanged.
        is_changed = self._begins < self._ends
        in_turn = is_changed & self._is_moved_back
        at_once = (is_changed & ~in_turn)[states]
        as_it_is = ~is_changed[states]
        parts = [(states[as_it_is], batches[:, as_it_is])]
        if at_once.any():
            *done, is_open = combined_at_once(states[at_once], batches[:, at_once], self._starts[self._ends])
            parts.append((done[0], done[1]))
            in_turn |= is_open & is_changed
        parts += [self._in_turn(state, records, batches) for state in np.flatnonzero(in_turn).tolist()]
        states = np.concatenate([part[0] for part in parts])
        order = np.argsort(states, kind="stable")
        return states[order], np.concatenate([part[1] for part in parts], axis=1)[:, order]

    def _in_turn(self, state: int, records: INT64, batches: INT64) -> tuple[INT64, INT64]:
        """The batches of a state, added record by record."""
        begin, end = int(self._begins[state]), int(self._ends[state]) + 1
        cuts = np.searchsorted(records, np.arange(begin, end + 1)).tolist()
        of_record = [_state_batches(batches[:, cut:stop]) for cut, stop in pairwise(cuts)]
        left = of_record[0]
        for new, start in zip(of_record[1:], self._starts[begin + 1 : end].tolist(), strict=True):
            left = combined(left, new, start)
        return np.full(len(left), state), np.array(left, np.int64).reshape(-1, len(StateBatch._fields)).T

    @cached_property
    def _starts(self) -> INT64:
        """The start offset after each record."""
        return self._vector("start_offset")[self._sayings("start_offset")]

    @property
    def _is_moved_back(self) -> FLAGS:
        """Whether any update of each state has a lower start offset than the update before it."""
        starts = np.where(self._starts == UNDECIDED, np.iinfo(np.int64).min, self._starts)
        is_lower = starts < np.append(starts[:1], starts[:-1])
        is_lower[self._begins] = False
        is_lower[(self._begins + 1)[self._begins < self._ends]] = False
        found: FLAGS = np.bincount(self._states, is_lower, len(self)) > 0
        return found

    def _sayings(self, name: str) -> INT64:
        """For each record, the last record up to it that sets a field in `_KEPT`."""
        numbers = np.arange(len(self._rows))
        says = self._vector(name) != _KEPT[name]
        says[self._begins] = True
        found: INT64 = np.maximum.accumulate(np.where(says, numbers, 0))
        return found

    def _vector(self, name: str) -> INT64:
        """A field of the values of all records."""
        vector: INT64 = self._values(name, np.arange(len(self._rows))).to_numpy()
        return vector

    def _values(self, name: str, records: INT64) -> pa.Array:
        """A field of the values of these records."""
        if name not in self._fields:
            types = self._types[:1] if name in _ONLY_IN_SNAPSHOTS else self._types
            self._fields[name] = self._found.member(types, "value", name)
        return self._fields[name].take(pa.array(self._rows[records]))


def refused_records(found: DecodedRecords, types: tuple[int, ...]) -> dict[int, str]:
    """For each record that can be decoded but that no coordinator can replay, the problem, by row. `types` are the
    record types of a snapshot and of an update."""
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
    """Report the `refused_records` with this consequence, and return their offsets."""
    said = refused_records(found, types)
    for row, what in said.items():
        number = int(found.columns.record_type[row])
        place = place_of(found.rows, row, context)
        context.report(Finding("damage", UNKNOWN_STATE, what, consequence, record_type=number, **place))
    return {int(found.offsets[row]) for row in said}


def batches_of(found: DecodedRecords, types: tuple[int, ...]) -> dict[int, list[StateBatch]]:
    """The batches in the value of each record, by its offset; records without batches are left out. `types` are as in
    `refused_records`."""
    rows, batches = _batch_columns(found, types)
    firsts = np.flatnonzero(np.diff(rows, prepend=-1))
    ends = [*firsts[1:].tolist(), len(rows)]
    # Create all at once, because there are many.
    every = _state_batches(batches)
    parts = [every[start:end] for start, end in zip(firsts.tolist(), ends, strict=False)]
    return dict(zip(found.offsets[rows[firsts]].tolist(), parts, strict=True))


def _batch_columns(found: DecodedRecords, types: tuple[int, ...]) -> tuple[INT64, INT64]:
    """The row of each batch, and the batches, with a row per field of `StateBatch` and a column per batch."""
    rows, batches = [np.zeros(0, np.int64)], [np.zeros((len(StateBatch._fields), 0), np.int64)]
    for number in types:
        if number in found.columns.records:
            lists = found.member((number,), "value", "state_batches")
            flat = pc.list_flatten(lists)
            rows.append(pc.list_parent_indices(lists).to_numpy())
            batches.append(np.stack([pc.struct_field(flat, name).to_numpy() for name in StateBatch._fields]))
    return np.concatenate(rows), np.concatenate(batches, axis=1)


def _state_batches(batches: INT64) -> list[StateBatch]:
    return list(map(_as_batch, zip(*batches.tolist(), strict=True)))


_as_batch: Final = partial(tuple.__new__, StateBatch)
"""The same as `StateBatch._make`, without a Python-level call per batch, because there are many."""
