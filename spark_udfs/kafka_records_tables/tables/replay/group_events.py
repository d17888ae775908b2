"""What happened to the groups of a log partition: every record of a group in log order, with its state around it.

`group_records` replays the last record of each key, for tables of what is; this replays all records, for tables of what
happened. Of commits only those become events that make a simple group: of all others nothing about the group follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_engine.numpy_types import FLAGS
from kafka_records_tables.tables.committed.commit_lots import CommitLot, first_behind, first_of_each
from kafka_records_tables.tables.committed.commits import COMMITS
from kafka_records_tables.tables.committed.last_commits import commit_keys
from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords, numbers_of
from kafka_records_tables.tables.decoded.fold import Event, Picked, events
from kafka_records_tables.tables.decoded.latest import joined
from kafka_records_tables.tables.decoded.lots import LOT_ROWS
from kafka_records_tables.tables.replay.group_records import NOT_USED
from kafka_records_tables.tables.replay.group_replay import GROUP, ROLES, Replay, picked_with
from kafka_records_tables.tables.replay.group_states import GroupState, state_of
from kafka_records_tables.tables.replay.records_of_groups import GROUP_RECORDS, PARTS
from kafka_records_tables.tables.replay.subscriptions import KEPT_ROLES
from kafka_records_tables.tables.replay.subscriptions import PICKED as SUBSCRIPTIONS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.tables.replay.group_replay import Group

READS: Final = ("offset", "timestamp_ms", "base_offset", "key", "value", "control")
"""The columns of raw rows that are needed."""

_ENDS: Final = tuple(name for name in GROUP_RECORDS if ROLES[name] == GROUP)
"""The records whose tombstones end a group."""

_MOST_RECORDS: Final = 16_384
"""When so many records of groups have gathered, commits are not waited for."""


class GroupEvent(NamedTuple):
    """One record about a group, and what it did to the group."""

    event: Event
    """The record. The key of a commit is the group, the topic and the partition, its value is empty."""
    batch_offset: int
    """Offset of the first record of its batch, as the file has it; its own where a source does not tell. A coordinator
    that lingers (`group.coordinator.append.linger.ms`) puts several writes into one batch."""
    before: GroupState | None
    """None where there was no such group."""
    after: GroupState | None
    """None where there is no such group any more."""

    @property
    def group_id(self) -> str:
        """The group."""
        group_id: str = self.event.key[0]
        return group_id


class GroupLog:
    """Follows the groups of one log partition through its records; memory follows the groups and a lot of rows."""

    def __init__(
        self,
        schemas: Mapping[int, RecordSchema],
        context: Context,
        *,
        more: Picked | None = None,
        kept: Collection[str] = (),
        consequence: str = "nothing is told of it",
    ) -> None:
        """`more` are members of values that events have behind those of the replay (`picked` names all), `kept` are
        roles of records that groups keep (`Group.last`). Records that cannot be decoded are reported, with the
        `consequence`."""
        self.picked = picked_with({name: (*SUBSCRIPTIONS.get(name, ()), *(more or {}).get(name, ())) for name in ROLES})
        """By record, the names of the members of the values of events, in their order."""
        self._schemas = schemas
        self._context = context
        self._consequence = consequence
        self._replay = Replay({*KEPT_ROLES, *kept})
        self._commit_types = numbers_of(schemas, COMMITS)
        self._group_types = np.array(numbers_of(schemas, (*GROUP_RECORDS, *PARTS)), np.int16)
        self._states: dict[str, GroupState] = {}
        self._commits: list[pa.RecordBatch] = []
        self._records: list[pa.RecordBatch] = []
        self._commit_count = self._record_count = 0

    def of_rows(self, batch: pa.RecordBatch, commits: CommitLot) -> list[GroupEvent]:
        """What happens in raw rows behind those before, with READS; `commits` are the commits among them, without
        tombstones."""
        types, _ = prefix_column(batch.column("key"))
        is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        of_groups = is_record & np.isin(types, self._group_types)
        if of_groups.any():
            self._records.append(_chosen(batch, (*READS, "file", "position"), of_groups))
        return self._happened(commits)

    def take(self, batch: pa.RecordBatch) -> list[GroupEvent]:
        """Add raw rows behind those before, with READS; what happened as far as it was replayed, which is done for many
        rows at once. Rows of other types, and control rows, are passed over."""
        types, _ = prefix_column(batch.column("key"))
        is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        of_groups = is_record & np.isin(types, self._group_types)
        if of_groups.any():
            self._records.append(_chosen(batch, (*READS, "file", "position"), of_groups))
            self._record_count += int(of_groups.sum())
        values = is_record & np.isin(types, self._commit_types)
        values &= batch.column("value").is_valid().to_numpy(zero_copy_only=False)
        if values.any():
            self._commits.append(_chosen(batch, READS, values))
            self._commit_count += int(values.sum())
        if self._commit_count > LOT_ROWS or self._record_count > _MOST_RECORDS:
            return self.rest()
        return []

    def rest(self) -> list[GroupEvent]:
        """What happened that `take` has not yet told of; at the end of the log all of it."""
        return self._happened(CommitLot(joined(self._commits), self._schemas) if self._commits else None)

    def _happened(self, commits: CommitLot | None) -> list[GroupEvent]:
        told, places = self._decoded()
        ends = [(e.key[0], e.offset) for e in told if e.record in _ENDS and e.value is None and not e.is_broken]
        makers, places_of_commits = self._makers(commits, ends)
        self._commits, self._records = [], []
        self._commit_count = self._record_count = 0
        places |= places_of_commits
        replayed = [self._replayed(event, places) for event in merge(told, makers, key=attrgetter("offset"))]
        self._replay.forget_ends()
        return [each for each in replayed if each.before is None or each.event.record in ROLES]

    def group(self, group_id: str) -> Group | None:
        """The group as the last event has left it; None where there is none."""
        return self._replay.groups.get(group_id)

    def _decoded(self) -> tuple[list[Event], dict[int, int]]:
        """The records of groups, and their batches by their offsets."""
        if not self._records:
            return [], {}
        found = DecodedRecords(joined(self._records), self._schemas)
        found.report(self._context, lambda row: self._consequence if found.has_key[row] else NOT_USED)
        return list(events(found, self.picked)), _batches(found.rows)

    def _makers(self, lot: CommitLot | None, ends: list[tuple[str, int]]) -> tuple[list[Event], dict[int, int]]:
        """The commit values that may make a simple group, and their batches by their offsets: the first of each group
        that was not there, and the first behind each of the `ends` of a group."""
        if lot is None or not lot.rows.num_rows:
            return [], {}
        ended = {name for name, _ in ends}
        is_open = np.array([name in ended or name not in self._replay.groups for name in lot.groups], np.bool_)
        first = first_of_each(lot.group)
        first = first[lot.group[first] >= 0]
        numbers = {name: number for number, name in enumerate(lot.groups)}
        behind = [(numbers[name], offset) for name, offset in ends if name in numbers]
        chosen = np.union1d(first[is_open[lot.group[first]]], first_behind(behind, lot.group, lot.offsets))
        rows = lot.rows.take(pa.array(chosen))
        codes = lot.codes[chosen]
        names = {number: lot.keys.record_name(number) for number in lot.types}
        records = (names[number] for number in lot.keys.columns.record_type[codes].tolist())
        keys = commit_keys(lot.keys, lot.types, pa.array(codes))
        parts = (lot.offsets[chosen].tolist(), records, keys, rows.column("timestamp_ms").to_pylist())
        return [
            Event(offset, record, key, (), False, False, time) for offset, record, key, time in zip(*parts, strict=True)
        ], _batches(rows)

    def _replayed(self, event: Event, places: Mapping[int, int]) -> GroupEvent:
        group_id = event.key[0]
        before = self._states.get(group_id)
        if event.record in ROLES:
            self._replay.take(event)
        else:
            self._replay.commit(group_id, event.offset)
        after = state_of(self._replay.groups.get(group_id), before, event)
        if after is None:
            self._states.pop(group_id, None)
        elif after is not before:
            self._states[group_id] = after
        return GroupEvent(event, places.get(event.offset, event.offset), before, after)


def _chosen(batch: pa.RecordBatch, names: Iterable[str], which: FLAGS) -> pa.RecordBatch:
    """Some rows, and of their columns `names`, as far as they are there."""
    columns = batch.select([name for name in names if name in batch.schema.names])
    return columns if which.all() else columns.filter(pa.array(which))


def _batches(rows: pa.RecordBatch) -> dict[int, int]:
    """The offset of the batch by that of the record, as far as the source tells."""
    if "base_offset" not in rows.schema.names:
        return {}
    told = zip(rows.column("offset").to_pylist(), rows.column("base_offset").to_pylist(), strict=True)
    return {offset: batch for offset, batch in told if batch is not None and batch >= 0}
