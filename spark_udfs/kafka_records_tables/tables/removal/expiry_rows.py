"""Creates the rows of `expirations`: when each offset and group expires, and the tombstones of a clean-up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_runtime.records.framing import KEY_VERSION, framed
from kafka_records_runtime.wire.walker import encode
from kafka_records_tables.coordinator.groups.group_model import CLASSIC, CONSUMER, SIMPLE, STREAMS
from kafka_records_tables.coordinator.groups.subscriptions import REGEX_RECORD, HeldGroup
from kafka_records_tables.coordinator.records.decoded_records import numbers_of, schemas
from kafka_records_tables.coordinator.rules import expiry_rules as rules
from kafka_records_tables.tables.column_types import YEAR_9999_END_MS, instants, record_batch

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.tables.removal.held_offsets import Held, HeldOffsets

_NEVER: Final = np.iinfo(np.int64).max
_COMMIT: Final = "OffsetCommit"

_GROUP_TOMBSTONES: Final = {
    CLASSIC: ("GroupMetadata",),
    SIMPLE: ("GroupMetadata",),
    CONSUMER: (
        "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupPartitionMetadata",
        "ConsumerGroupMetadata",
    ),
    STREAMS: ("StreamsGroupTargetAssignmentMetadata", "StreamsGroupMetadata", "StreamsGroupTopology"),
}
"""The tombstones that each kind's `createGroupTombstoneRecords` writes for a group without members, whether or not
there is a record of that type. A consumer group also gets tombstones for its resolved regular expressions."""

_RULES: Final = tuple(rules.CHANGES_WITH)
_NUMBERS: Final = {rule: number for number, rule in enumerate(_RULES)}


class _GroupRow(NamedTuple):
    group_id: str
    rule: str
    expires_ms: int
    log_offset: int


class ExpiryRows:
    """Creates the rows from the offsets and groups of a coordinator. `retention` is in milliseconds."""

    def __init__(
        self, schema: pa.Schema, found: Held, context: Context, retention: int, *, is_kip_211: bool = False
    ) -> None:
        self._schema = schema
        self._held = found
        self._context = context
        self._retention = retention
        self._is_kip_211 = is_kip_211
        self._rule = rules.kip_211_rule if is_kip_211 else rules.kafka_rule
        self._records = schemas(context, "consumer_offsets")

    def batches(self, at: int | None = None, until: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, committed offsets first: with `at`, the tombstones that a clean-up at that time would write; with
        `until`, everything that has expired by then; otherwise, everything. Times are in milliseconds since 1970."""
        limit = until if at is None else at
        if self._held.offsets is not None:
            yield from self._offset_rows(self._held.offsets, limit, at is not None)
        yield from self._group_rows(limit, at is not None)

    # -- offsets -------------------------------------------------------------------------------------------------------

    @cached_property
    def _expiries(self) -> tuple[INT64, INT64]:
        """When each offset expires, or _NEVER, and the number of the deciding rule."""
        offsets = self._held.offsets
        if offsets is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        group_rules = [self._rule(self._held.groups.get(name)) for name in offsets.group.dictionary.to_pylist()]
        codes = offsets.group.indices.to_numpy()
        numbers = np.array([_NUMBERS[each.rule] for each in group_rules], np.int64)[codes]
        since = np.array([each.base_ms or 0 for each in group_rules], np.int64)[codes]
        commits = offsets.commit_timestamp_ms.fill_null(0).to_numpy()
        base = np.where(numbers == _NUMBERS[rules.STATE_TIMESTAMP], since, commits)
        expires = _later(base, self._retention)
        is_by_time = np.array([each.is_by_time for each in group_rules], np.bool_)[codes]
        if not self._is_kip_211:
            named = offsets.expire_timestamp_ms
            is_named = is_by_time & named.is_valid().to_numpy(zero_copy_only=False)
            expires = np.where(is_named, named.fill_null(0).to_numpy(), expires)
            numbers[is_named] = _NUMBERS[rules.EXPIRE_TIMESTAMP]
            self._set(numbers, rules.OPEN_TRANSACTION, is_by_time & offsets.is_pending)
        self._set(numbers, rules.SUBSCRIBED, is_by_time & offsets.is_in([each.topics for each in group_rules]))
        self._set(numbers, rules.UNREADABLE, is_by_time & ~offsets.is_known)
        expires[~np.isin(numbers, [_NUMBERS[rule] for rule in _BY_TIME])] = _NEVER
        return expires, numbers

    @staticmethod
    def _set(numbers: INT64, rule: str, where: FLAGS) -> None:
        numbers[where] = _NUMBERS[rule]

    def _offset_rows(self, offsets: HeldOffsets, limit: int | None, has_tombstones: bool) -> Iterator[pa.RecordBatch]:
        expires, numbers = self._expiries
        chosen = _is_shown(expires, limit)
        if not chosen.any():
            return
        keys, record_type = None, None
        there = pa.array(chosen)
        if has_tombstones:
            (number,) = numbers_of(self._records, [_COMMIT])
            keys, record_type = _keys(offsets, chosen, self._records[number], number), number
        columns = {
            "kind": "offset",
            "group_id": offsets.group.filter(there).dictionary_decode(),
            "group_kind": offsets.kinds(self._held.groups).filter(there),
            "topic": offsets.topic.filter(there),
            "partition": offsets.partition.filter(there),
            **_told(expires[chosen], numbers[chosen]),
            "record_type": record_type,
            "key": keys,
            "log_partition": self._context.partition,
            "log_offset": offsets.log_offset.filter(there),
        }
        yield record_batch(self._schema, columns, int(chosen.sum()))

    # -- groups --------------------------------------------------------------------------------------------------------

    @cached_property
    def _groups(self) -> list[_GroupRow]:
        expires, numbers = self._expiries
        latest: dict[str, int] = {}
        unreadable: set[str] = set()
        offsets = self._held.offsets
        if offsets is not None:
            names, codes = offsets.group.dictionary.to_pylist(), offsets.group.indices.to_numpy()
            last = np.full(len(names), np.iinfo(np.int64).min, np.int64)
            np.maximum.at(last, codes, expires)
            latest = dict(zip(names, last.tolist(), strict=True))
            unreadable = {names[code] for code in np.unique(codes[numbers == _NUMBERS[rules.UNREADABLE]]).tolist()}
        waiting = frozenset() if self._is_kip_211 else frozenset(group for group, _, _ in self._held.pending)
        found = []
        for group_id, group in self._held.groups.items():
            rule, when = self._of_group(group_id, group, latest.get(group_id), unreadable, waiting)
            found.append(_GroupRow(group_id, rule, when, group.made_at))
        return found

    def _of_group(
        self, group_id: str, group: HeldGroup, last: int | None, unreadable: set[str], waiting: frozenset[str]
    ) -> tuple[str, int]:
        """The rule for a group, and when the group is deleted, or _NEVER. `last` is when its last offset is deleted."""
        rule = self._rule(group).rule
        if rule in (rules.SHARE_GROUP, rules.UNREADABLE):
            return rule, _NEVER
        if not group.is_empty:
            return rules.MEMBERS, _NEVER
        if group_id in unreadable:
            return rules.UNREADABLE, _NEVER
        if group_id in waiting:
            return rules.OPEN_TRANSACTION, _NEVER
        if last is None:
            return rules.NOTHING_LEFT, self._held.seen_ms.get(group_id, 0)
        return (rules.STAYS if last == _NEVER else rules.LAST_OFFSET), last

    def _group_rows(self, limit: int | None, has_tombstones: bool) -> Iterator[pa.RecordBatch]:
        shown = _is_shown(np.array([row.expires_ms for row in self._groups], np.int64), limit)
        chosen = [row for row, is_shown in zip(self._groups, shown.tolist(), strict=True) if is_shown]
        tombstones: list[tuple[int | None, bytes | None]] = [(None, None)] * len(chosen)
        if has_tombstones:
            each = [self._tombstones(row.group_id) for row in chosen]
            tombstones = [tombstone for of_one in each for tombstone in of_one]
            chosen = [row for row, of_one in zip(chosen, each, strict=True) for _ in of_one]
        if not chosen:
            return
        expires = np.array([row.expires_ms for row in chosen], np.int64)
        columns = {
            "kind": "group",
            "group_id": pa.array([row.group_id for row in chosen], pa.string()),
            "group_kind": pa.array([self._held.groups[row.group_id].kind for row in chosen], pa.string()),
            "topic": None,
            "partition": None,
            **_told(expires, np.array([_NUMBERS[row.rule] for row in chosen], np.int64)),
            "record_type": pa.array([number for number, _ in tombstones], pa.int16()),
            "key": pa.array([key for _, key in tombstones], pa.binary()),
            "log_partition": self._context.partition,
            "log_offset": pa.array([row.log_offset for row in chosen], pa.int64()),
        }
        yield record_batch(self._schema, columns, len(chosen))

    def _tombstones(self, group_id: str) -> list[tuple[int | None, bytes | None]]:
        group = self._held.groups[group_id]
        names = _GROUP_TOMBSTONES[group.kind]
        keys: list[tuple[str, dict[str, Any]]] = [(name, {"group_id": group_id}) for name in names]
        regexes = group.regexes if group.kind == CONSUMER else ()
        keys += [(REGEX_RECORD, {"group_id": group_id, "regular_expression": regex}) for regex in regexes]
        found: list[tuple[int | None, bytes | None]] = []
        for name, members in keys:
            (number,) = numbers_of(self._records, [name])
            schema = self._records[number]
            names_of_key = [field.name for field in schema.key.root.fields]
            named = dict(zip(names_of_key, members.values(), strict=True))
            found.append((number, framed(number, encode(schema.key, named, KEY_VERSION))))
        return found


_BY_TIME: Final = (rules.COMMIT_TIMESTAMP, rules.STATE_TIMESTAMP, rules.EXPIRE_TIMESTAMP)


def _is_shown(expires: INT64, limit: int | None) -> FLAGS:
    """Flags offsets that expire by `limit`, or all of them without a limit."""
    if limit is None:
        return np.ones(len(expires), np.bool_)
    is_due: FLAGS = (expires <= limit) & (expires != _NEVER)
    return is_due


def _later(base: INT64, retention: int) -> INT64:
    """`base` plus the retention; _NEVER if Kafka's own subtraction of `base` from the clock overflows."""
    is_sane = (base <= _NEVER - retention - 1) & (base >= YEAR_9999_END_MS - _NEVER)
    return np.where(is_sane, np.where(is_sane, base, 0) + retention, _NEVER)


def _told(expires: INT64, numbers: INT64) -> dict[str, Any]:
    """The columns with the time and the rule."""
    when = pa.array(expires, pa.int64(), mask=expires == _NEVER)
    codes = pa.array(numbers)
    changes = pa.array([list(rules.CHANGES_WITH[rule]) for rule in _RULES], pa.list_(pa.string()))
    return {
        "expires_timestamp": instants(when),
        "expires_timestamp_ms": when,
        "rule": pa.array(_RULES, pa.string()).take(codes),
        "protected_by": pa.array([rules.PROTECTED_BY.get(rule) for rule in _RULES], pa.string()).take(codes),
        "changes_with": changes.take(codes),
    }


def _keys(offsets: HeldOffsets, chosen: FLAGS, schema: RecordSchema, number: int) -> pa.Array:
    """The keys of tombstones: those of the commits, re-encoded if a commit has an old key version or bytes after its
    key."""
    own = offsets.key.filter(pa.array(chosen))
    is_rebuilt = ~offsets.has_own_key[chosen]
    if not is_rebuilt.any():
        return own
    there = pa.array(chosen & ~offsets.has_own_key)
    group = offsets.group.filter(there).dictionary_decode().to_pylist()
    topic, partition = offsets.topic.filter(there).to_pylist(), offsets.partition.filter(there).to_pylist()
    names = [field.name for field in schema.key.root.fields]
    rebuilt = [
        framed(number, encode(schema.key, dict(zip(names, key, strict=True)), KEY_VERSION))
        for key in zip(group, topic, partition, strict=True)
    ]
    return pc.replace_with_mask(own, pa.array(is_rebuilt), pa.array(rebuilt, pa.binary()))
