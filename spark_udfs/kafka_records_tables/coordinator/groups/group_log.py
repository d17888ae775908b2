"""The history of the groups of a log partition: every record of a group in log order, with the group's state before and
after it.

`last_group_records` replays only the last record of each key, for tables of current state. This module replays all
records, for tables of events. Only commits that create a simple group become events, because the others say nothing
about the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_engine.numpy_types import FLAGS
from kafka_records_tables.coordinator.groups.group_model import GROUP, OF_MEMBERS, ROLES, Groups, picked_with
from kafka_records_tables.coordinator.groups.group_states import GroupState, Transition, state_of
from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED
from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.groups.subscriptions import PICKED as SUBSCRIPTIONS
from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot, first_behind, first_of_each
from kafka_records_tables.coordinator.offsets.last_commits import commit_keys
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, are_of_types, numbers_of
from kafka_records_tables.coordinator.records.named_records import Event, Picked, events

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

READS: Final = ("offset", "timestamp_ms", "base_offset", "key", "value", "control")
"""The columns of raw rows that this module reads."""

_ENDS: Final = tuple(name for name in GROUP_RECORDS if ROLES[name] == GROUP)
"""The records whose tombstones end a group."""

_OFFSET: Final = attrgetter("offset")


class GroupLot(NamedTuple):
    """The records of groups in a batch of rows, and the events that they cause."""

    found: DecodedRecords | None
    """The records of groups, decoded; None if there are none. The caller reports undecodable records."""
    transitions: list[Transition]
    """The events, in log order."""

    def report(self, context: Context, consequence: str) -> None:
        """Report the records of groups that cannot be decoded; `consequence` is the text for a broken value."""
        found = self.found
        if found is not None:
            found.report(context, lambda row: consequence if found.has_key[row] else NOT_USED)


class GroupLog:
    """Follows the groups of one log partition through its records. Memory grows with the number of groups and the size
    of one batch of rows."""

    def __init__(
        self, schemas: Mapping[int, RecordSchema], *, more: Iterable[Picked] = (), shared: dict[Any, Any] | None = None
    ) -> None:
        """`more` names the members of values that events contain in addition to those that the replay needs; `shared`
        is `Context.shared`."""
        self._picked = picked_with(SUBSCRIPTIONS, *more)
        self._schemas = schemas
        self._shared = shared
        self._groups = Groups()
        self._group_types = numbers_of(schemas, (*GROUP_RECORDS, *PARTS))
        self._states: dict[str, GroupState] = {}

    def add(self, batch: pa.RecordBatch, lot: CommitLot) -> GroupLot:
        """Replay the raw rows that follow those of the last call. The rows have the columns READS; rows of other record
        types and control rows are skipped. `lot` contains the decoded commits among these rows; it may lack tombstones
        of offsets."""
        found = self._decoded(batch)
        told = [] if found is None else list(events(found, self._picked))
        ends = [(each.group_id, each.offset) for each in told if each.record in _ENDS and each.is_tombstone]
        makers, batches = self._makers(lot, ends)
        if found is not None:
            batches |= _batches(found.rows)
        transitions = []
        for event in merge(told, makers, key=_OFFSET):
            transition = self._replay(event, batches)
            if transition.before is None or event.record in ROLES:
                transitions.append(transition)
        self._groups.forget_ends()
        return GroupLot(found, transitions)

    def _decoded(self, batch: pa.RecordBatch) -> DecodedRecords | None:
        """The records of groups among raw rows."""
        types, _ = prefix_column(batch.column("key"))
        of_groups = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        of_groups &= are_of_types(types, self._group_types)
        if not of_groups.any():
            return None
        return DecodedRecords(_chosen(batch, (*READS, "file", "position"), of_groups), self._schemas, self._shared)

    def _makers(self, lot: CommitLot, ends: list[tuple[str, int]]) -> tuple[list[Event], dict[int, int]]:
        """The commits that may create a simple group, and the batch offset of each. These are the first commit of each
        group that did not exist, and the first after each of the `ends` of a group."""
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

    def _replay(self, event: Event, batches: Mapping[int, int]) -> Transition:
        group_id, groups, role = event.group_id, self._groups, ROLES.get(event.record)
        before, group = self._states.get(group_id), groups.get(group_id)
        member = member_after = replaced = None
        member_id = event.member_id if role in OF_MEMBERS else None
        if member_id is not None and group is not None:
            member = group.members.get(member_id)
        if role is None:
            groups.commit(group_id, event.offset, event.timestamp_ms)
        else:
            replaced = groups.replay(event)
        group = groups.get(group_id)
        if member_id is not None and group is not None:
            member_after = group.members.get(member_id)
        after = state_of(group, before, event)
        if after is None:
            self._states.pop(group_id, None)
        elif after is not before:
            self._states[group_id] = after
        batch = batches.get(event.offset, event.offset)
        return Transition(event, batch, before, after, member, member_after, replaced)


def _chosen(batch: pa.RecordBatch, names: Iterable[str], which: FLAGS) -> pa.RecordBatch:
    """The chosen rows, with those of `names` that exist."""
    columns = _columns(batch, names)
    return columns if which.all() else columns.filter(pa.array(which))


def _columns(batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
    return batch.select([name for name in names if name in batch.schema.names])


def _batches(rows: pa.RecordBatch) -> dict[int, int]:
    """Offsets of batches by the offsets of their records, if the source reports batches."""
    if "base_offset" not in rows.schema.names:
        return {}
    told = zip(rows.column("offset").to_pylist(), rows.column("base_offset").to_pylist(), strict=True)
    return {offset: batch for offset, batch in told if batch is not None and batch >= 0}
