"""The committed offsets that a coordinator has at any position in a log partition.

Commits are added in columns, many at once. Memory grows with the number of existing offsets.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commits import NO_TOPIC_ID
from kafka_records_tables.coordinator.offsets.key_numbers import UNREADABLE, KeyNumbers
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot
    from kafka_records_tables.coordinator.offsets.last_commits import CommitKey

NO_TIME: Final = -1
"""The value in a commit that means "no time" (`OffsetCommitValue.expireTimestamp`)."""

FARTHEST_MS: Final = 2**60
"""The latest time that is kept, in milliseconds since 1970. A commit may contain any number; a larger one is replaced
by this one, so that sums fit in 64 bits."""

_FIRST_ROOM: Final = 1024


LOG_OFFSET, COMMIT_MS, EXPIRE_MS, IS_KNOWN, IS_LEGACY, TOPIC_ID = range(6)
"""The columns of a commit: its place in the log; its times, at most FARTHEST_MS from 1970; 0 for a value that cannot be
decoded, otherwise 1; and 1 for a `LegacyOffsetCommit`. Tombstones have keys of `OffsetCommit`, so a cleaner never
removes such a commit with them, and a cleaned log may still have it although its offset was deleted long ago. TOPIC_ID
is a number for the topic id in the commit, 0 if there is none."""

_COLUMNS: Final = 6


class CommitRows(NamedTuple):
    """The commits in the given rows of a log. Each array has one element per commit."""

    keys: INT64
    """Numbers of `LiveOffsets`."""
    values: INT64
    """The columns LOG_OFFSET, COMMIT_MS and so on, with one row per commit. They are one array, so that one assignment
    copies all."""

    @property
    def log_offset(self) -> INT64:
        """The offset of each commit in the log."""
        return self.values[:, LOG_OFFSET]

    def chosen(self, which: FLAGS | slice) -> CommitRows:
        """The commits at some indexes."""
        return CommitRows(self.keys[which], self.values[which])


class LiveOffsets:
    """The committed offsets, and the offsets that open transactions may commit, at some position in the log."""

    def __init__(self) -> None:
        self._numbers = KeyNumbers()
        self.is_there = np.zeros(_FIRST_ROOM, np.bool_)
        self.values = np.zeros((_FIRST_ROOM, _COLUMNS), np.int64)
        """For each number the last commit, with the columns of `CommitRows`."""
        self.deletions = 0
        """The number of calls of `delete`."""
        self.deleted_by: list[int] = []
        """For each number, which call of `delete` (counted from 1) last deleted an existing offset with a tombstone; 0
        if there was no such call."""
        # The numbers of existing offsets in the order of their creation, because results must not depend on how many
        # rows are processed at a time.
        self._of_group: dict[str, dict[int, None]] = {}
        self._of_topic: dict[str, dict[int, None]] = {}
        self._pending: dict[int, list[CommitRows]] = {}
        self._gone: set[int] = set()
        """The numbers that `forget` checks. They include the numbers of all offsets that neither exist nor are
        pending."""
        self._waits: dict[str, dict[CommitKey, tuple[int, bool]]] | None = None
        """The results of `pending` by group, cached until they change."""

    @property
    def keys(self) -> list[CommitKey]:
        """The group, the topic and the partition of each number."""
        return self._numbers.keys

    @property
    def log_offset(self) -> INT64:
        """For each number, the offset of the last commit in the log."""
        return self.values[:, LOG_OFFSET]

    def rows(self, found: DecodedRecords, types: tuple[int, ...], lot: CommitLot | None = None) -> CommitRows:
        """The commits among decoded rows. `types` are the numbers of the record types of commits, the older type first.
        Rows whose keys cannot be read are left out. `lot` contains the same rows, if the caller has one."""
        if not found.rows.num_rows:
            return CommitRows(np.zeros(0, np.int64), np.zeros((0, _COLUMNS), np.int64))
        numbers = self._numbers.of_rows(found, types) if lot is None else self._numbers.of_lot(lot)
        while len(self.keys) > len(self.is_there):
            self._grow()
        self.deleted_by += [0] * (len(self.keys) - len(self.deleted_by))
        new = self._numbers.taken_again()
        self.is_there[new] = False
        # A commit may turn out to have no effect: its transaction may be aborted, or have an unknown outcome.
        self._gone.update(new)
        commit, expire = (
            found.member(of, "value", name).fill_null(NO_TIME).to_numpy(zero_copy_only=False)
            for of, name in ((types, "commit_timestamp"), (types[1:], "expire_timestamp"))
        )
        commit = np.clip(commit, -FARTHEST_MS, FARTHEST_MS)
        is_legacy = found.columns.record_type == types[0]
        topic_id = _numbers_of_ids(found.member(types[1:], "value", "topic_id"))
        columns = (found.offsets, commit, expire, ~found.has_error, is_legacy, topic_id)
        rows = CommitRows(numbers, np.stack([column.astype(np.int64) for column in columns], axis=1))
        return rows if numbers.min() > UNREADABLE else rows.chosen(numbers > UNREADABLE)

    def _grow(self) -> None:
        self.is_there = np.concatenate([self.is_there, np.zeros_like(self.is_there)])
        self.values = np.concatenate([self.values, np.zeros_like(self.values)])

    # -- what records do -----------------------------------------------------------------------------------------------

    def commit(self, rows: CommitRows) -> None:
        """Add commits that take effect at their own position, in log order."""
        keys = rows.keys
        is_there = self.is_there[keys]
        if b"\0" in is_there.tobytes():  # for few elements, this is faster than numpy
            of_number, of_group, of_topic = self._numbers.keys, self._of_group, self._of_topic
            for number in dict.fromkeys(keys[~is_there].tolist()):
                group, topic, _ = of_number[number]
                of_group.setdefault(group, {})[number] = None
                of_topic.setdefault(topic, {})[number] = None
            self.is_there[keys] = True
        # numpy keeps the last assignment to an index.
        self.values[keys] = rows.values

    def wait(self, producer: int, rows: CommitRows) -> None:
        """Add commits that a producer wrote in an open transaction, in log order."""
        self._waits = None
        self._pending.setdefault(producer, []).append(rows)

    def end(self, producer: int, is_committed: bool) -> None:
        """Apply the marker of a transaction. A commit outside of transactions that was written after a commit of the
        transaction is kept (`OffsetMetadataManager.replayEndTransactionMarker`)."""
        self._waits = None
        for rows in self._pending.pop(producer, ()):
            if is_committed:
                is_later = ~self.is_there[rows.keys] | (self.values[rows.keys, LOG_OFFSET] < rows.log_offset)
                self.commit(rows.chosen(is_later))
            self._gone.update(rows.keys.tolist())

    def delete(self, keys: Iterable[CommitKey]) -> None:
        """Apply tombstones. Each also removes the pending offsets for its partition
        (`OffsetMetadataManager.replay`)."""
        self.deletions += 1
        known, of_number = self._numbers.get, self.keys
        gone = {number: None for key in keys if (number := known(key)) is not None}
        for number in gone:
            group, topic, _ = of_number[number]
            if number in self._of_group.get(group, ()):
                _drop(self._of_group, group, number)
                _drop(self._of_topic, topic, number)
                self.is_there[number] = False
                self.deleted_by[number] = self.deletions
        self._gone.update(gone)
        if not self._pending:
            return
        waits = self._waits_by_group()
        if any((key := of_number[number]) in waits.get(key[0], ()) for number in gone):
            self._waits = None
            for producer, lots in self._pending.items():
                self._pending[producer] = [_without(rows, list(gone)) for rows in lots]

    def forget(self) -> None:
        """Free the numbers of offsets that neither exist nor are pending. The caller must first have added all rows
        that it got from `rows`."""
        waiting, is_there = self._waiting(), self.is_there
        self._numbers.forget(each for each in self._gone if not is_there[each] and each not in waiting)
        self._gone.clear()

    def _waiting(self) -> dict[int, tuple[int, bool]]:
        """The commits of open transactions, by number and in log order: the log offset, and `is_legacy`."""
        lots = [rows for some in self._pending.values() for rows in some]
        told = ((rows.log_offset.tolist(), rows.keys.tolist(), rows.values[:, IS_LEGACY].tolist()) for rows in lots)
        waiting = [each for some in told for each in zip(*some, strict=True)]
        return {number: (offset, bool(is_legacy)) for offset, number, is_legacy in sorted(waiting)}

    # -- what is asked -------------------------------------------------------------------------------------------------

    def number(self, key: CommitKey) -> int | None:
        """The number of an existing offset, or None."""
        number = self._numbers.get(key)
        return number if number is not None and number in self._of_group.get(key[0], ()) else None

    def pending(self, groups: Sequence[str], *, is_log_whole: bool) -> dict[CommitKey, int]:
        """The offsets that open transactions certainly commit for the given groups, as log offsets of the commits."""
        if not self._pending:
            return {}
        waits = self._waits_by_group()
        of_groups = (each for group in groups for each in waits.get(group, {}).items())
        return {key: offset for key, (offset, is_legacy) in of_groups if is_log_whole or not is_legacy}

    def _waits_by_group(self) -> dict[str, dict[CommitKey, tuple[int, bool]]]:
        if self._waits is None:
            self._waits = {}
            for number, told in self._waiting().items():
                key = self.keys[number]
                self._waits.setdefault(key[0], {})[key] = told
        return self._waits

    def of_group(self, group: str) -> Set[int]:
        """The existing offsets of a group."""
        return self._of_group.get(group, {}).keys()

    def topic_ids(self, numbers: Iterable[int]) -> dict[str, set[int]]:
        """By topic, numbers for the topic ids in the commits of some offsets, and 0, which stands for no id."""
        value, keys = self.values.item, self.keys
        found: dict[str, set[int]] = {}
        for number in numbers:
            found.setdefault(keys[number][1], {0}).add(value(number, TOPIC_ID))
        return found

    def of_topic(
        self, topic: str, ids: Set[int], without: set[int], most: int, *, is_log_whole: bool
    ) -> tuple[int, ...]:
        """At most `most` other offsets of any group for a topic. They certainly exist, and are deleted together with
        the offsets `without`, which have the `topic_ids` `ids`, if their topic is deleted. The deletion does not affect
        offsets with the id of an earlier topic of this name, whose deletion a coordinator missed
        (`OffsetMetadataManager.onTopicsDeleted`)."""
        value = self.values.item
        found: list[int] = []
        for number in self._of_topic.get(topic, ()):
            if number in without or not (is_log_whole or not value(number, IS_LEGACY)):
                continue
            if value(number, TOPIC_ID) in ids:
                found.append(number)
                if len(found) == most:
                    break
        return tuple(found)

    def log_offsets(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """For some existing offsets, the offsets of their commits in the log."""
        at = self.values.item
        return tuple([at(number, LOG_OFFSET) for number in numbers])


def _numbers_of_ids(ids: pa.Array) -> INT64:
    """A number for each topic id; 0 if there is none, including the id that means none."""
    encoded = ids.dictionary_encode()
    known = [0 if each == NO_TOPIC_ID else zlib.crc32(each.encode()) + 1 for each in encoded.dictionary.to_pylist()]
    numbers: INT64 = np.array([*known, 0], np.int64)[encoded.indices.fill_null(len(known)).to_numpy()]
    return numbers


def _without(rows: CommitRows, gone: list[int]) -> CommitRows:
    """The commits without those of the given keys."""
    return rows.chosen(~np.isin(rows.keys, gone))


def _drop(index: dict[str, dict[int, None]], name: str, number: int) -> None:
    numbers = index[name]
    del numbers[number]
    if not numbers:
        del index[name]
