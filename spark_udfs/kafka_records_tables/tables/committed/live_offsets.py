"""The committed offsets of a log partition as the log goes on: at any place, those that a coordinator holds there.

Commits are taken in columns, many at once; memory follows the offsets that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.tables.committed.commit_lots import first_of_each
from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords
from kafka_records_tables.tables.decoded.latest import codes_of

if TYPE_CHECKING:
    from kafka_records_tables.tables.committed.last_commits import CommitKey

NO_TIME: Final = -1
"""Stands for no time in commits (`OffsetCommitValue.expireTimestamp`)."""

FARTHEST_MS: Final = 2**60
"""Times that commits tell may be any number; beyond this one they are taken for it, so that sums stay in 64 bits."""

_FIRST_ROOM: Final = 1024


class CommitRows(NamedTuple):
    """Commits of some rows of a log, an element of each array for each; `keys` are numbers of `LiveOffsets`."""

    keys: INT64
    log_offset: INT64
    commit_ms: INT64
    """At most FARTHEST_MS from 1970."""
    expire_ms: INT64
    is_known: FLAGS
    """False for a value that cannot be decoded."""
    is_legacy: FLAGS
    """True for a `LegacyOffsetCommit`. Tombstones have keys of `OffsetCommit`, so a cleaner never takes such a commit
    along, and in a cleaned log it may stand there although its offset is long deleted."""

    def chosen(self, which: FLAGS | slice) -> CommitRows:
        """Some of them."""
        numbers = (self.keys[which], self.log_offset[which], self.commit_ms[which], self.expire_ms[which])
        return CommitRows(*numbers, self.is_known[which], self.is_legacy[which])


class LiveOffsets:
    """The offsets that are committed, and those that open transactions commit, after some records."""

    def __init__(self) -> None:
        self.keys: list[CommitKey] = []
        """Group, topic and partition of each number."""
        self.is_there = np.zeros(_FIRST_ROOM, np.bool_)
        self.is_known = np.zeros(_FIRST_ROOM, np.bool_)
        self.log_offset = np.zeros(_FIRST_ROOM, np.int64)
        self.commit_ms = np.zeros(_FIRST_ROOM, np.int64)
        self.expire_ms = np.zeros(_FIRST_ROOM, np.int64)
        self.is_legacy = np.zeros(_FIRST_ROOM, np.bool_)
        self._numbers: dict[CommitKey, int] = {}
        self._free: list[int] = []
        # The numbers of those that are there, in the order in which they came to be: answers must not hang on how many
        # rows are looked at together.
        self._of_group: dict[str, dict[int, None]] = {}
        self._of_topic: dict[str, dict[int, None]] = {}
        self._pending: dict[int, list[CommitRows]] = {}
        self._gone: set[int] = set()
        self._waits: dict[str, dict[CommitKey, tuple[int, bool]]] | None = None
        """What `pending` says, by group, until something changes it."""

    def rows(self, found: DecodedRecords, types: tuple[int, ...]) -> CommitRows:
        """The commits among decoded rows; `types` are those of commits, older type first. Rows whose keys cannot be
        read are left out."""
        if not found.rows.num_rows:
            nothing = np.zeros(0, np.int64)
            return CommitRows(nothing, nothing, nothing, nothing, nothing > 0, nothing > 0)
        codes = codes_of([found.rows.column("key")])
        # Keys of other bytes may name the same offset: an older type, or bytes behind the fields.
        first = pa.array(first_of_each(codes))
        parts = (found.member(types, "key", name).take(first).to_pylist() for name in ("group", "topic", "partition"))
        numbers = np.array([-1 if None in key else self._number(key) for key in zip(*parts, strict=True)], np.int64)
        commit, expire = (
            found.member(of, "value", name).fill_null(NO_TIME).to_numpy(zero_copy_only=False)
            for of, name in ((types, "commit_timestamp"), (types[1:], "expire_timestamp"))
        )
        commit = np.clip(commit, -FARTHEST_MS, FARTHEST_MS)
        is_legacy = found.columns.record_type == types[0]
        rows = CommitRows(numbers[codes], found.offsets, commit, expire, ~found.has_error, is_legacy)
        return rows.chosen(rows.keys >= 0)

    def _number(self, key: CommitKey) -> int:
        number = self._numbers.get(key)
        if number is not None:
            return number
        if self._free:
            number = self._free.pop()
            self.keys[number] = key
        else:
            number = len(self.keys)
            self.keys.append(key)
            if number == len(self.is_there):
                self._grow()
        self._numbers[key] = number
        self.is_there[number] = False
        return number

    def _grow(self) -> None:
        for name in ("is_there", "is_known", "log_offset", "commit_ms", "expire_ms", "is_legacy"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros(len(array), array.dtype)]))

    # -- what records do -----------------------------------------------------------------------------------------------

    def commit(self, rows: CommitRows) -> None:
        """Take commits that take effect where they stand, in the order of the log."""
        for number in dict.fromkeys(rows.keys[~self.is_there[rows.keys]].tolist()):
            group, topic, _ = self.keys[number]
            self._of_group.setdefault(group, {})[number] = None
            self._of_topic.setdefault(topic, {})[number] = None
        # Among equal numbers the last assignment wins.
        self.is_there[rows.keys] = True
        self.is_known[rows.keys] = rows.is_known
        self.log_offset[rows.keys] = rows.log_offset
        self.commit_ms[rows.keys] = rows.commit_ms
        self.expire_ms[rows.keys] = rows.expire_ms
        self.is_legacy[rows.keys] = rows.is_legacy

    def wait(self, producer: int, rows: CommitRows) -> None:
        """Take commits in a transaction of a producer, in the order of the log."""
        self._waits = None
        self._pending.setdefault(producer, []).append(rows)

    def end(self, producer: int, is_committed: bool) -> None:
        """Take the end of its transaction. A plain commit written behind one of the transaction stays
        (`OffsetMetadataManager.replayEndTransactionMarker`)."""
        self._waits = None
        for rows in self._pending.pop(producer, ()):
            if is_committed:
                is_later = ~self.is_there[rows.keys] | (self.log_offset[rows.keys] < rows.log_offset)
                self.commit(rows.chosen(is_later))
            self._gone.update(rows.keys.tolist())

    def delete(self, keys: Iterable[CommitKey]) -> None:
        """Take tombstones. Each takes the pending offsets of its partition along (`OffsetMetadataManager.replay`)."""
        gone = list(dict.fromkeys(number for key in keys if (number := self._numbers.get(key)) is not None))
        for number in gone:
            if self.is_there[number]:
                group, topic, _ = self.keys[number]
                _drop(self._of_group, group, number)
                _drop(self._of_topic, topic, number)
        self.is_there[gone] = False
        self._gone.update(gone)
        waits = self._waits_by_group()
        if any(self.keys[number] in waits.get(self.keys[number][0], ()) for number in gone):
            self._waits = None
            for producer, lots in self._pending.items():
                self._pending[producer] = [_without(rows, gone) for rows in lots]

    def forget(self) -> None:
        """Give up the numbers of offsets that are gone. Rows made before must have been taken."""
        waiting = self._waiting()
        for number in self._gone:
            if not self.is_there[number] and number not in waiting:
                del self._numbers[self.keys[number]]
                self._free.append(number)
        self._gone.clear()

    def _waiting(self) -> dict[int, tuple[int, bool]]:
        """What open transactions commit, by number and in the order of the log: where it stands, and `is_legacy`."""
        lots = [rows for some in self._pending.values() for rows in some]
        columns = ((rows.log_offset.tolist(), rows.keys.tolist(), rows.is_legacy.tolist()) for rows in lots)
        waiting = [each for some in columns for each in zip(*some, strict=True)]
        return {number: (offset, is_legacy) for offset, number, is_legacy in sorted(waiting)}

    # -- what is asked -------------------------------------------------------------------------------------------------

    def number(self, key: CommitKey) -> int | None:
        """The number of an offset that is there, or None."""
        number = self._numbers.get(key)
        return number if number is not None and self.is_there[number] else None

    def pending(self, groups: Sequence[str], *, is_log_whole: bool) -> dict[CommitKey, int]:
        """What open transactions commit for sure for some groups: where the commit stands in the log."""
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
        """The offsets of a group that are there."""
        return self._of_group.get(group, {}).keys()

    def of_topic(self, topic: str, without: set[int], most: int, *, is_log_whole: bool) -> list[int]:
        """Offsets of a topic that are there for sure, of any group, `most` of them."""
        there = (number for number in self._of_topic.get(topic, ()) if number not in without)
        return list(islice((number for number in there if is_log_whole or not self.is_legacy[number]), most))


def _without(rows: CommitRows, gone: list[int]) -> CommitRows:
    """The commits of other keys."""
    return rows.chosen(~np.isin(rows.keys, gone))


def _drop(index: dict[str, dict[int, None]], name: str, number: int) -> None:
    numbers = index[name]
    del numbers[number]
    if not numbers:
        del index[name]
