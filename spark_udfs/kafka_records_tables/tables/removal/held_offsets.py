"""The offsets and groups that a group coordinator has in memory, including open transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS
from kafka_records_tables.coordinator.groups.group_model import picked_with
from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED, GroupRecords, Replayed
from kafka_records_tables.coordinator.groups.subscriptions import PICKED, REGEX_RECORD, HeldGroup, held_groups
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.last_commits import CommitKey, Deciding
from kafka_records_tables.coordinator.records.decoded_records import (
    DecodedRecords,
    filter_record_types,
    nulled,
    numbers_of,
    schemas,
)
from kafka_records_tables.tables.commit_columns import commit_columns
from kafka_records_tables.tables.made_once import MadeOnce
from kafka_records_tables.tables.settled_commits import SettledCommits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_records_engine.sources import Context

READS: Final = ("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control")
"""The columns of raw rows that are needed."""

_NO_TIMESTAMP: Final = -1


class HeldOffsets(NamedTuple):
    """Committed offsets, in arrays with one element per offset."""

    group: pa.DictionaryArray
    topic: pa.Array
    partition: pa.Array
    commit_timestamp_ms: pa.Array
    expire_timestamp_ms: pa.Array
    """Null if the commit has no expiry time of its own. Only values of version 1 can have one."""
    log_offset: pa.Array
    key: pa.Array
    """The bytes of the key of its record."""
    has_own_key: FLAGS
    """Whether a coordinator would write the same bytes now: the key has the current version and no trailing bytes."""
    is_known: FLAGS
    """False if an offset exists but none of its records is usable."""
    is_pending: FLAGS
    """Whether an open transaction also commits this partition."""
    told: Mapping[str, Any]
    """The content of the commits, in the columns of `commits.commit_columns`; empty if no table needs it."""

    def is_in(self, topics: Sequence[frozenset[str]]) -> FLAGS:
        """Flags offsets for one of the `topics` of their group. `topics` are in the order of the names in `group`.

        Each pair of group and topic is looked up once.
        """
        of_topic = self.topic.dictionary_encode()
        names = of_topic.dictionary.to_pylist()
        pairs = self.group.indices.to_numpy().astype(np.int64) * (len(names) + 1) + of_topic.indices.to_numpy()
        known, inverse = np.unique(pairs, return_inverse=True)
        found = [names[pair % (len(names) + 1)] in topics[pair // (len(names) + 1)] for pair in known]
        return np.array(found, np.bool_)[inverse]

    def kinds(self, groups: Mapping[str, HeldGroup]) -> pa.Array:
        """The kinds of the groups; null if a group no longer exists."""
        held = (groups.get(name) for name in self.group.dictionary.to_pylist())
        kinds = pa.array([None if group is None else group.kind for group in held], pa.string())
        return kinds.take(self.group.indices)


class Held(NamedTuple):
    """The offsets and groups that a log partition's coordinator has."""

    groups: Mapping[str, HeldGroup]
    offsets: HeldOffsets | None
    """The committed offsets; None if there are none."""
    pending: frozenset[CommitKey]
    """The offsets that open transactions commit, whether or not an older offset exists."""
    seen_ms: Mapping[str, int]
    """By group, the time of its own record or, without one, of its last commit; empty if the source has no
    timestamps."""


class HeldCollector:
    """Collects the offsets and groups that a coordinator has after some raw rows with READS. `names` are the names of
    the records of groups and commits.

    With `with_commits`, offsets have `told`. Tables that share a reading share the result. Reports unusable records. An
    offset that a commit in an open transaction will overwrite remains until the marker. A tombstone also removes the
    pending offsets of its partition (`OffsetMetadataManager.replay`).
    """

    def __init__(self, context: Context, names: Iterable[str], *, with_commits: bool = False) -> None:
        names = tuple(names)
        self._context = context
        self._with_commits = with_commits
        self._once: MadeOnce[_Maker, _Found] = MadeOnce((HeldCollector, names), lambda own: _Maker(own, names), context)

    def take(self, batch: pa.RecordBatch) -> None:
        """Add the next raw rows."""
        self._once.take(batch)

    def held(self) -> Held:
        """The offsets and groups at the end of the log."""
        (found,) = self._once.rest()
        if found.commits is None or found.held.offsets is None or not self._with_commits:
            return found.held
        last = found.commits
        told, there = commit_columns(last.found, last.types, self._context), pa.array(last.is_there)
        told = {name: each.filter(there) if isinstance(each, pa.Array) else each for name, each in told.items()}
        return found.held._replace(offsets=found.held.offsets._replace(told=told))


_PICKED: Final = picked_with(PICKED)


class _Found(NamedTuple):
    held: Held
    commits: Deciding | None


class _Maker:
    def __init__(self, context: Context, names: Iterable[str]) -> None:
        self._context = context
        self._known = known = schemas(context, "consumer_offsets")
        self._types = numbers_of(known, COMMITS)
        self._all_types = numbers_of(known, names)
        self._groups = GroupRecords(known, with_values=(REGEX_RECORD,), columns=("timestamp_ms",))
        self._commits = SettledCommits(context, with_pending=True)

    def take(self, batch: pa.RecordBatch) -> tuple[()]:
        rows = filter_record_types(batch, self._all_types, self._context, NOT_USED)
        if rows.num_rows:
            self._groups.add(rows)
        self._commits.take(rows)
        return ()

    def rest(self) -> tuple[_Found]:
        last, still_open = self._commits.rest()
        replayed = self._groups.replayed(self._context, picked=_PICKED, reports_commits=False)
        offsets = None
        if last is not None and last.is_there.any():
            offsets = _offsets(last, still_open)
        found = held_groups(replayed.groups.by_id)
        return (_Found(Held(found, offsets, still_open, _seen(replayed, found, self._types)), last),)


def _offsets(last: Deciding, pending: frozenset[CommitKey]) -> HeldOffsets:
    found, types = last.found, last.types
    there = pa.array(last.is_there)
    group, topic, partition = (
        found.member(types, "key", name).filter(there) for name in ("group", "topic", "partition")
    )
    # records with keys of the oldest version do not have this field
    expires = nulled(found.member(types[1:], "value", "expire_timestamp"), _NO_TIMESTAMP).filter(there)
    is_pending = np.zeros(len(group), np.bool_)
    if pending:
        keys = zip(group.to_pylist(), topic.to_pylist(), partition.to_pylist(), strict=True)
        is_pending[:] = [key in pending for key in keys]
    return HeldOffsets(
        group.dictionary_encode(),
        topic,
        partition,
        found.member(types, "value", "commit_timestamp").filter(there),
        expires,
        found.rows.column("offset").filter(there),
        found.rows.column("key").filter(there),
        _has_own_key(found, types)[last.is_there],
        last.is_usable[last.is_there],
        is_pending,
        {},
    )


def _has_own_key(found: DecodedRecords, types: tuple[int, ...]) -> FLAGS:
    columns = found.columns
    has: FLAGS = (columns.record_type == types[-1]) & (columns.key_bytes_left == 0)
    has[list(columns.leniencies)] = False
    return has


def _seen(replayed: Replayed, groups: Mapping[str, HeldGroup], types: tuple[int, ...]) -> dict[str, int]:
    """By group, the time of its own record or, without one, of the last record of any of its commits."""
    times: dict[str, int] = {}
    if "timestamp_ms" in replayed.seen.rows.schema.names:
        group = replayed.seen.member(types, "key", "group").dictionary_encode()
        latest = np.full(len(group.dictionary) + 1, _NO_TIMESTAMP, np.int64)
        written = replayed.seen.rows.column("timestamp_ms").fill_null(_NO_TIMESTAMP).to_numpy()
        np.maximum.at(latest, group.indices.fill_null(-1).to_numpy(), written)
        times = dict(zip(group.dictionary.to_pylist(), latest.tolist(), strict=False))
    if "timestamp_ms" in replayed.told.rows.schema.names:
        written = replayed.told.rows.column("timestamp_ms").fill_null(_NO_TIMESTAMP).to_numpy()
        by_offset = dict(zip(replayed.told.offsets.tolist(), written.tolist(), strict=True))
        times |= {name: by_offset[group.made_at] for name, group in groups.items() if group.made_at in by_offset}
    return {name: time for name, time in times.items() if time != _NO_TIMESTAMP}
