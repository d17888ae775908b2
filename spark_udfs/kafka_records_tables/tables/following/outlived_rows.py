"""Removes carried rows that no later record can need: those of deleted members, offsets and groups.

A tombstone is carried because it may still matter: for a commit that waits for its marker, or for a group that no other
record creates. If neither is possible, a replay gives the same groups with and without the rows of the key, regardless
of what follows. So the tombstone and what it deleted are removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kafka_records_tables.coordinator.groups.group_model import (
    CLASSIC,
    CURRENT,
    GROUP,
    MEMBER,
    REGEX,
    ROLES,
    SHARE,
    TARGET,
    TARGET_OF_MEMBER,
    role_of,
)
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, schemas
from kafka_records_tables.coordinator.records.latest import codes_of, codes_of_same
from kafka_records_tables.coordinator.transactions import ABORTED, outside_transactions

if TYPE_CHECKING:
    from kafka_records_engine.numpy_types import FLAGS, INT64
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.declaration import Table

_COMMIT: Final = "commit"
_OTHER: Final = "other"

_PARTS: Final = (MEMBER, CURRENT, TARGET_OF_MEMBER, REGEX)
"""The roles of records of which a group has several, one for each value of the last key field."""

_NOWHERE: Final = -1
_BEHIND_ALL: Final = np.iinfo(np.int64).max


class CarriedKeys:
    """The keys of the given raw rows; arrays have an element per row."""

    def __init__(self, rows: pa.RecordBatch, table: Table, context: Context) -> None:
        found = DecodedRecords(rows.select(["offset", "key"]), schemas(context, table.folder))
        self.role: NDArray[np.object_] = np.full(rows.num_rows, _OTHER, object)
        self.kind: NDArray[np.object_] = np.full(rows.num_rows, _OTHER, object)
        group, part = pa.nulls(rows.num_rows, pa.string()), pa.nulls(rows.num_rows, pa.string())
        number = pa.nulls(rows.num_rows, pa.int32())
        for record, column in found.columns.records.items():
            name, fields = found.record_name(record), found.key_names(record)
            which = column.is_valid().to_numpy(zero_copy_only=False)
            group = pc.coalesce(group, pc.struct_field(column, ["key", fields[0]]))
            if name in COMMITS:
                self.role[which] = _COMMIT
                part = pc.coalesce(part, pc.struct_field(column, ["key", "topic"]))
                number = pc.coalesce(number, pc.struct_field(column, ["key", "partition"]))
            elif name in ROLES:
                self.kind[which], self.role[which] = role_of(name)
                part = pc.coalesce(part, pc.struct_field(column, ["key", fields[-1]]))
        encoded = group.dictionary_encode()
        self._names = encoded.dictionary
        self.group: INT64 = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
        """A number for the group, or for another object named by the first key field; -1 if there is none."""
        kind = pa.array(self.kind, pa.string())
        self.of_kind = codes_of_same([group, kind])
        """A number for the group and its kind."""
        self.unit = codes_of_same([group, kind, part, number])
        """A number for each member, regular expression or offset of a group."""

    def of_same_groups(self, rows: FLAGS) -> FLAGS:
        """The rows about the same groups as `rows`, and the rows that are not about a group."""
        chosen = np.zeros(len(self._names) + 1, np.bool_)
        chosen[self.group[rows]] = True
        chosen[-1] = True
        same: FLAGS = chosen[self.group]
        return same

    def named(self, names: pa.Array) -> FLAGS:
        """The rows about groups with these names."""
        is_named = pc.is_in(self._names, value_set=names).to_numpy(zero_copy_only=False)
        rows: FLAGS = np.append(is_named, False)[self.group]
        return rows


def forgets_offsets(table: Table) -> bool:
    """Whether no present or later row needs offsets that a tombstone has deleted, as long as their group exists. True
    if the last record of each key decides."""
    return table.reader.last_of_key and not {*COMMITS}.isdisjoint(table.records)


def forgets_members(table: Table) -> bool:
    """Like `forgets_offsets`, for members and regular expressions. Also true for tables of events, because these name
    the records of members that they need (`Table.names_earlier`)."""
    is_replayed = table.reader.last_of_key or table.names_earlier
    return is_replayed and any(ROLES.get(name) in _PARTS for name in table.records)


def without_outlived(rows: pa.RecordBatch, shown: pa.Array, table: Table, context: Context) -> pa.RecordBatch:
    """Carried rows in log order, without those on which no row of the table can depend any more, regardless of what
    follows. `shown` are the groups that have a row now."""
    if not rows.num_rows:
        return rows
    carried = _Carried(rows, table, context)
    leaves = np.zeros(rows.num_rows, np.bool_)
    if forgets_offsets(table):
        leaves |= carried.deleted_offsets()
    if forgets_members(table):
        leaves |= carried.gone_members()
    if table.is_history:
        leaves |= carried.parts_of_groups_that_ended()
    else:
        leaves |= ~carried.of_groups_that_last(shown)
    return rows.filter(pa.array(~leaves))


class _Carried:
    """Carried rows in log order; flags and offsets have an element per row."""

    def __init__(self, rows: pa.RecordBatch, table: Table, context: Context) -> None:
        self._keys = CarriedKeys(rows, table, context)
        self._offsets = rows.column("offset").to_numpy()
        self._is_value = rows.column("value").is_valid().to_numpy(zero_copy_only=False)
        self._all = np.ones(rows.num_rows, np.bool_)
        key = codes_of([rows.column("key")])
        self._in_force = self._is_value & (self._last(key, self._all) == self._offsets)
        """The rows that no later row of the same key replaces or deletes."""
        self._waits = ~self._all
        if table.needs_transactions:
            is_aborted = pc.fill_null(pc.equal(rows.column("transaction"), ABORTED), False)
            self._waits = ~outside_transactions(rows, context)
            self._waits &= ~is_aborted.to_numpy(zero_copy_only=False)

    def of_groups_that_last(self, shown: pa.Array) -> FLAGS:
        """Rows of groups that are in `shown`, have a key in force, or have a record that waits for a marker. Any other
        group starts over with its next record."""
        return self._keys.of_same_groups(self._in_force | self._waits | self._keys.named(shown))

    def deleted_offsets(self) -> FLAGS:
        """Rows of offsets that end with a tombstone, which also removes earlier waiting commits.

        The last commit of a group is kept even if it is deleted, because it may have created a simple group.
        """
        unit, role = self._keys.unit, self._keys.role
        is_commit = role == _COMMIT
        is_deleted = self._last(unit, self._all) != self._last(unit, self._is_value)
        last_commit = self._last(self._keys.group, is_commit & self._is_value)
        is_earlier = self._last(unit, self._is_value) < np.maximum(last_commit, 0)
        leaves: FLAGS = is_commit & is_deleted & is_earlier
        return leaves

    def gone_members(self) -> FLAGS:
        """Rows of members and regular expressions that end with tombstones, in groups that other records create.

        These tombstones affect only the member, but what they deleted may have created the group. That makes no
        difference if the group's own record and that of its target assignment are in force and follow all records of
        other kinds of groups, because the tombstone of a target assignment matters only if the group exists. A record
        of a classic group starts the group over. Members are kept if they existed when a still waiting commit was
        written. So are those with the first and the last record about a member, from which `group_states` takes where
        members were last recorded.
        """
        keys, kinds = self._keys, self._keys.of_kind
        is_part = np.isin(keys.role, _PARTS)
        is_gone = is_part & ~self._any(keys.unit, self._in_force)
        is_gone &= self._last(keys.unit, self._all) < self._first(keys.group, self._waits)

        of_others = self._last_of_other_kinds(np.isin(keys.kind, [_OTHER], invert=True))
        is_made = self._last(kinds, self._in_force & (keys.role == GROUP)) > of_others
        has_target = self._last(kinds, self._in_force & (keys.role == TARGET)) > of_others
        is_there = is_made & (has_target | (keys.kind == SHARE))

        is_member = keys.role == MEMBER
        values = is_member & self._is_value
        first, last = self._first(kinds, values), self._last(kinds, is_member)
        is_kept = self._any(keys.unit, is_member & ((self._offsets == first) | (self._offsets == last)))

        is_before_classic = self._last(keys.unit, self._all) < self._classic()
        leaves: FLAGS = is_gone & (is_before_classic | is_there & ~is_kept)
        return leaves

    def parts_of_groups_that_ended(self) -> FLAGS:
        """Rows of groups whose records all end with tombstones, and whose group tombstone follows all values. Records
        that end groups are excluded, because they end what earlier commits created. Commits are kept."""
        keys = self._keys
        is_record, is_group = keys.kind != _OTHER, keys.role == GROUP
        end = self._last(keys.group, is_group & ~self._is_value)
        is_over = ~self._any(keys.group, is_record & self._in_force)
        is_over &= end > self._last(keys.group, is_record & self._is_value)
        is_over &= end < self._first(keys.group, self._waits)
        of_this_kind = self._last(keys.of_kind, is_group) == end
        is_ended = (self._classic() == end) | (of_this_kind & (self._last_of_other_kinds(is_record & ~is_group) < 0))
        # A tombstone after the end of the group belongs to a new group, created by later commits.
        leaves: FLAGS = is_record & ~is_group & is_over & is_ended & (self._offsets < end)
        return leaves

    def _classic(self) -> INT64:
        """The offset of the last record of a classic group with the same name."""
        return self._last(self._keys.group, (self._keys.kind == CLASSIC) & (self._keys.role == GROUP))

    def _last_of_other_kinds(self, which: FLAGS) -> INT64:
        """The offset of the last selected row about a group with the same name and another kind."""
        kinds = self._keys.kind
        found = np.full(len(kinds), _NOWHERE, np.int64)
        for kind in set(kinds.tolist()):
            others = self._last(self._keys.group, which & (kinds != kind))
            found = np.where(kinds == kind, others, found)
        return found

    def _last(self, codes: INT64, which: FLAGS) -> INT64:
        """The offset of the last selected row with the same code; _NOWHERE if there is none."""
        found = np.full(int(codes.max()) + 2, _NOWHERE, np.int64)
        np.maximum.at(found, codes[which], self._offsets[which])
        return found[codes]

    def _first(self, codes: INT64, which: FLAGS) -> INT64:
        """The offset of the first selected row with the same code; _BEHIND_ALL if there is none."""
        found = np.full(int(codes.max()) + 2, _BEHIND_ALL, np.int64)
        np.minimum.at(found, codes[which], self._offsets[which])
        return found[codes]

    def _any(self, codes: INT64, which: FLAGS) -> FLAGS:
        """Whether any selected row has the same code."""
        return self._last(codes, which) > _NOWHERE
