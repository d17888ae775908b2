"""What happened to the groups of a log partition: every record of a group in log order, with its state around it.

`group_records` replays the last record of each key, for tables of what is; this replays all records, for tables of what
happened. Of commits only those become events that make a simple group: of all others nothing about the group follows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_engine.numpy_types import FLAGS, INT16
from kafka_records_tables.coordinator.groups.group_model import GROUP, OF_MEMBERS, ROLES, Groups, picked_with
from kafka_records_tables.coordinator.groups.group_states import GroupState, Transition, state_of
from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED
from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.groups.subscriptions import PICKED as SUBSCRIPTIONS
from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot, first_behind, first_of_each
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.last_commits import commit_keys
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, are_of_types, numbers_of
from kafka_records_tables.coordinator.records.latest import joined
from kafka_records_tables.coordinator.records.lot_size import LOT_ROWS
from kafka_records_tables.coordinator.records.named_records import Event, Picked, events

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.coordinator.groups.group_model import Group

READS: Final = ("offset", "timestamp_ms", "base_offset", "key", "value", "control")
"""The columns of raw rows that are needed."""

_OF_COMMITS: Final = ("offset", "timestamp_ms", "base_offset", "key", "control")
"""The columns that are kept of commits, none of which is a tombstone."""

_ENDS: Final = tuple(name for name in GROUP_RECORDS if ROLES[name] == GROUP)
"""The records whose tombstones end a group."""

_MOST_RECORDS: Final = 16_384
"""When so many records of groups have gathered, commits are not waited for."""


_OFFSET: Final = attrgetter("offset")


class GroupLog:
    """Follows the groups of one log partition through its records; memory follows the groups and a lot of rows."""

    def __init__(
        self,
        schemas: Mapping[int, RecordSchema],
        context: Context,
        *,
        more: Iterable[Picked] = (),
        consequence: str = "nothing is told of it",
    ) -> None:
        """`more` are members of values that events have beside those of the replay. Records that cannot be decoded are
        reported, with the `consequence`."""
        self._picked = picked_with(SUBSCRIPTIONS, *more)
        self._schemas = schemas
        self._context = context
        self._consequence = consequence
        self._groups = Groups()
        self._waiting: deque[Event] = deque()
        self._batches: dict[int, int] = {}
        self._commit_types = numbers_of(schemas, COMMITS)
        self._group_types = numbers_of(schemas, (*GROUP_RECORDS, *PARTS))
        self._states: dict[str, GroupState] = {}
        self._commits: list[pa.RecordBatch] = []
        self._records: list[pa.RecordBatch] = []
        self._commit_count = self._record_count = 0

    def take(self, batch: pa.RecordBatch) -> list[Transition]:
        """Add raw rows behind those before, with READS; what happened as far as it was replayed, which is done for many
        rows at once. Rows of other types, and control rows, are passed over."""
        types, _ = prefix_column(batch.column("key"))
        is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        self._add_records(batch, types, is_record)
        values = is_record & are_of_types(types, self._commit_types)
        values &= batch.column("value").is_valid().to_numpy(zero_copy_only=False)
        if values.any():
            self._commits.append(_chosen(batch, _OF_COMMITS, values))
            self._commit_count += int(values.sum())
        if self._commit_count > LOT_ROWS or self._record_count > _MOST_RECORDS:
            return self.rest()
        return []

    def rest(self) -> list[Transition]:
        """What happened that `take` has not yet told of; at the end of the log all of it."""
        self._decode(CommitLot(joined(self._commits), self._schemas) if self._commits else None)
        self._commits, self._commit_count = [], 0
        return self.up_to(None)

    def add(self, batch: pa.RecordBatch, lot: CommitLot) -> None:
        """Add raw rows as `take` does, whose commits and tombstones are already a `lot`. They wait for `up_to`."""
        types, _ = prefix_column(batch.column("key"))
        self._add_records(batch, types, batch.column("control").is_null().to_numpy(zero_copy_only=False))
        self._decode(lot)

    def up_to(self, offset: int | None) -> list[Transition]:
        """Replay what waits below an `offset`, or all of it. What happened."""
        waiting, found = self._waiting, []
        while waiting and (offset is None or waiting[0].offset < offset):
            transition = self._replay(waiting.popleft())
            if transition.before is None or transition.event.record in ROLES:
                found.append(transition)
        if not waiting:
            self._groups.forget_ends()
            self._batches.clear()
        return found

    def group(self, group_id: str) -> Group | None:
        """The group after the records that were replayed; None where there is none."""
        return self._groups.get(group_id)

    def state(self, group_id: str) -> GroupState | None:
        """Its state."""
        return self._states.get(group_id)

    def _add_records(self, batch: pa.RecordBatch, types: INT16, is_record: FLAGS) -> None:
        """Keep the records of groups."""
        of_groups = is_record & are_of_types(types, self._group_types)
        if of_groups.any():
            self._records.append(_chosen(batch, (*READS, "file", "position"), of_groups))
            self._record_count += int(of_groups.sum())

    def _decode(self, lot: CommitLot | None) -> None:
        """Let the records that were kept, and the commits of a lot, wait to be replayed."""
        told, places = self._decoded()
        self._records, self._record_count = [], 0
        ends = [(each.group_id, each.offset) for each in told if each.record in _ENDS and each.is_tombstone]
        makers, places_of_commits = ([], {}) if lot is None else self._makers(lot, ends)
        self._batches |= places | places_of_commits
        self._waiting += sorted([*told, *makers], key=_OFFSET)

    def _decoded(self) -> tuple[list[Event], dict[int, int]]:
        """The records of groups, and their batches by their offsets."""
        if not self._records:
            return [], {}
        found = DecodedRecords(joined(self._records), self._schemas, self._context.shared)
        found.report(self._context, lambda row: self._consequence if found.has_key[row] else NOT_USED)
        return list(events(found, self._picked)), _batches(found.rows)

    def _makers(self, lot: CommitLot, ends: list[tuple[str, int]]) -> tuple[list[Event], dict[int, int]]:
        """The commit values that may make a simple group, and their batches by their offsets: the first of each group
        that was not there, and the first behind each of the `ends` of a group."""
        ended = {name for name, _ in ends}
        is_open = np.array([name in ended or name not in self._groups.by_id for name in lot.groups], np.bool_)
        group = np.where(lot.is_tombstone, -1, lot.group)
        first = first_of_each(group)
        first = first[group[first] >= 0]
        numbers = {name: number for number, name in enumerate(lot.groups)}
        behind = [(numbers[name], offset) for name, offset in ends if name in numbers]
        chosen = np.union1d(first[is_open[group[first]]], first_behind(behind, group, lot.offsets))
        rows = _columns(lot.rows, ("offset", "timestamp_ms", "base_offset")).take(pa.array(chosen))
        codes, types = lot.codes[chosen], lot.keys.columns.record_type
        keys = commit_keys(lot.keys, lot.types, pa.array(codes))
        names = [lot.keys.record_name(number) for number in types[codes].tolist()]
        parts = (lot.offsets[chosen].tolist(), names, keys, rows.column("timestamp_ms").to_pylist())
        return [
            Event(offset, name, key, (), False, False, time) for offset, name, key, time in zip(*parts, strict=True)
        ], _batches(rows)

    def _replay(self, event: Event) -> Transition:
        group_id, groups = event.group_id, self._groups
        before, group = self._states.get(group_id), groups.get(group_id)
        is_of_member = ROLES.get(event.record) in OF_MEMBERS
        member = group.members.get(event.member_id) if is_of_member and group is not None else None
        replaced = None
        if event.record in ROLES:
            replaced = groups.replay(event)
        else:
            groups.commit(group_id, event.offset, event.timestamp_ms)
        group = groups.get(group_id)
        after = state_of(group, before, event)
        if after is None:
            self._states.pop(group_id, None)
        elif after is not before:
            self._states[group_id] = after
        member_after = group.members.get(event.member_id) if is_of_member and group is not None else None
        batch = self._batches.get(event.offset, event.offset)
        return Transition(event, batch, before, after, member, member_after, replaced)


def _chosen(batch: pa.RecordBatch, names: Iterable[str], which: FLAGS) -> pa.RecordBatch:
    """Some rows, and of their columns `names`, as far as they are there."""
    columns = _columns(batch, names)
    return columns if which.all() else columns.filter(pa.array(which))


def _columns(batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
    return batch.select([name for name in names if name in batch.schema.names])


def _batches(rows: pa.RecordBatch) -> dict[int, int]:
    """The offset of the batch by that of the record, as far as the source tells."""
    if "base_offset" not in rows.schema.names:
        return {}
    told = zip(rows.column("offset").to_pylist(), rows.column("base_offset").to_pylist(), strict=True)
    return {offset: batch for offset, batch in told if batch is not None and batch >= 0}
