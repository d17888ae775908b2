"""The committed offsets that a coordinator has at any position in a log partition.

Both adding rows and looking up positions work on columns, many rows at once. Memory grows with the number of existing
offsets.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commit_order import begins, in_effect_by_number, stable_order
from kafka_records_tables.coordinator.offsets.commits import NO_TOPIC_ID
from kafka_records_tables.coordinator.offsets.key_numbers import UNREADABLE, KeyNumbers
from kafka_records_tables.coordinator.transactions import (
    COMMITTED,
    OPEN,
    PENDING,
    next_markers,
    outside_transactions,
)

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot
    from kafka_records_tables.coordinator.offsets.last_commits import CommitKey
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

NO_TIME: Final = -1
"""The value in a commit that means "no time" (`OffsetCommitValue.expireTimestamp`)."""

FARTHEST_MS: Final = 2**60
"""The latest time that is stored, in milliseconds since 1970. A commit may contain any number; a larger one is replaced
by this limit, so that sums fit in 64 bits."""

LOG_OFFSET, COMMIT_MS, EXPIRE_MS, IS_KNOWN, IS_LEGACY, TOPIC_ID = range(6)
"""The columns of a commit: its place in the log; its times, at most FARTHEST_MS from 1970; IS_KNOWN, 0 for an
undecodable value and otherwise 1; IS_LEGACY, 1 for a `LegacyOffsetCommit`. Tombstones have keys of `OffsetCommit`, so a
cleaner never removes a legacy commit because of them, and a cleaned log may still contain one although its offset was
deleted long ago. TOPIC_ID is a number for the commit's topic id, or 0."""

_COLUMNS: Final = 6

NEVER: Final = np.iinfo(np.int64).max
"""A position after all rows."""

_FIRST_LOOK: Final = 8
"""The number of offsets at which `first_ones` looks first for each answer. Each further round multiplies it by the same
number."""

_FEW: Final = 128
_PARTS: Final = 8
"""If more than `_FEW` answers are incomplete, `first_ones` looks for the rest in this many parts."""


class _Commits(NamedTuple):
    """Commits, in arrays with one element per commit."""

    keys: INT64
    values: INT64
    """The columns LOG_OFFSET, COMMIT_MS and so on, with one row per commit."""
    producers: INT64

    def chosen(self, which: FLAGS) -> _Commits:
        return _Commits(*(each[which] for each in self))

    def followed_by(self, others: _Commits) -> _Commits:
        return _Commits(*(np.concatenate(both) for both in zip(self, others, strict=True)))


_NO_COMMITS: Final = _Commits(np.zeros(0, np.int64), np.zeros((0, _COLUMNS), np.int64), np.zeros(0, np.int64))


class LiveOffsets:
    """The committed offsets, and the offsets that open transactions may commit, at any position in some rows."""

    def __init__(self) -> None:
        self._numbers = KeyNumbers()
        # In order of creation, because results must not depend on how many rows are processed at a time.
        self._before = _NO_COMMITS
        """The offsets that exist before the rows, with their last commits."""
        self._pending = _NO_COMMITS
        """The commits that still wait for a marker after the rows."""
        self._waits: dict[str, dict[int, tuple[int, int]]] = {}
        """By group and log offset, in log order: the commits of open transactions, as number and IS_LEGACY."""
        self._lot: Lot | None = None

    @property
    def keys(self) -> list[CommitKey]:
        """The group, topic and partition of each number."""
        return self._numbers.keys

    @property
    def lot(self) -> Lot:
        """The rows that were added last."""
        assert self._lot is not None
        return self._lot

    def take(self, rows: pa.RecordBatch, found: DecodedRecords, commits: CommitLot, context: Context) -> None:
        """Add the rows that follow. `commits` contains the commits and tombstones among them, and `found` the decoded
        ones. Rows with unreadable keys are skipped."""
        assert self._lot is None, "forget the rows before"
        numbers = self._numbers.of_lot(commits)
        self._numbers.taken_again()
        at = np.searchsorted(rows.column("offset").to_numpy(), found.offsets)
        plain = outside_transactions(rows, context)[at]
        words = rows.column("transaction").take(pa.array(at))
        is_open = _is_one_of(words, PENDING, OPEN) & ~plain
        values = _values(found, commits.types)
        values[~(plain | is_open), IS_KNOWN] = 0
        every = _Commits(numbers, values, rows.column("producer_id").fill_null(-1).to_numpy()[at])
        is_readable = numbers > UNREADABLE
        waiting = self._pending.followed_by(every.chosen(is_readable & is_open))
        is_chosen = is_readable & (plain | (_is_one_of(words, COMMITTED) & ~is_open))
        own, is_tombstone = every.chosen(is_chosen), found.is_tombstone[is_chosen]
        self._lot = Lot(rows, self.keys, self._before, own, is_tombstone, waiting)
        self._pending = waiting.chosen(self._lot.waits_until == NEVER)

    def up_to(self, offset: int) -> None:
        """Process the open transactions below an offset."""
        lot, keys = self.lot, self.keys
        for number, stands, is_legacy in zip(*lot.begins_to_wait.up_to(offset), strict=True):
            self._waits.setdefault(keys[number][0], {})[stands] = number, is_legacy
        for number, stands in zip(*lot.stops_waiting.up_to(offset), strict=True):
            waits = self._waits[keys[number][0]]
            del waits[stands]
            if not waits:
                del self._waits[keys[number][0]]

    def pending(self, group: str, *, is_log_whole: bool) -> dict[tuple[str, int], int]:
        """The offsets of a group that are certainly pending in open transactions at the current position: by topic and
        partition, the log offset of the commit."""
        if group not in self._waits:
            return {}
        last = {number: (stands, is_legacy) for stands, (number, is_legacy) in self._waits[group].items()}
        keys = self.keys
        return {
            keys[number][1:]: stands for number, (stands, is_legacy) in last.items() if is_log_whole or not is_legacy
        }

    def forget(self) -> None:
        """Forget the rows, and free the numbers of offsets that neither exist nor are pending. Call it after processing
        all rows."""
        self._before, self._lot = self.lot.last(), None
        is_kept = np.zeros(len(self.keys), np.bool_)
        is_kept[self._before.keys] = is_kept[self._pending.keys] = True
        self._numbers.keep(is_kept)


class _Turns:
    """Changes in vectors, processed in order of place."""

    def __init__(self, places: INT64, *columns: INT64) -> None:
        """`places` are ascending."""
        self._places: list[int] = places.tolist()
        self._columns: list[list[int]] = [column.tolist() for column in columns]
        self._next = 0

    def up_to(self, offset: int) -> list[list[int]]:
        """The columns of the changes below an offset that were not returned yet."""
        begin, places = self._next, self._places
        if begin == len(places) or places[begin] >= offset:
            return [[] for _ in self._columns]
        self._next = bisect_left(places, offset, begin)
        return [column[begin : self._next] for column in self._columns]


class Lot:
    """The committed offsets at each position in consecutive rows of a log."""

    def __init__(
        self,
        rows: pa.RecordBatch,
        keys: list[CommitKey],
        before: _Commits,
        own: _Commits,
        is_tombstone: FLAGS,
        waiting: _Commits,
    ) -> None:
        """`before` contains the offsets that exist before the rows; `own` the commits that take effect where they are
        written, and tombstones; `waiting` the commits that wait for a marker."""
        self._offsets = rows.column("offset").to_numpy()
        self._width = len(self._offsets) + 2
        self._numbers = own.keys, own.values[:, LOG_OFFSET]
        self.groups: dict[str, int] = {}
        """A code for each group."""
        topics: dict[str, int] = {}
        groups = self.groups
        self.group = np.array([groups.setdefault(key[0], len(groups)) for key in keys], np.int64)
        self.topic = np.array([topics.setdefault(key[1], len(topics)) for key in keys], np.int64)
        """For each number, the code of its group and a code for its topic."""
        # A tombstone also removes the commits of open transactions.
        self._deletions = np.sort(self._at(*self._numbers)[is_tombstone])
        marker, is_committed = _markers(rows, waiting)
        self.waits_until = np.minimum(marker, self._next_deletion(waiting.keys, waiting.values[:, LOG_OFFSET] + 1))
        """The place up to which each of `waiting` is pending; NEVER if it is still pending after the rows."""
        ended = waiting.chosen(is_committed)
        every = before.followed_by(own).followed_by(ended)
        stands = every.values[:, LOG_OFFSET]
        place = np.concatenate([stands[: len(stands) - len(ended.keys)], marker[is_committed]])
        self._order, self._keys = in_effect_by_number(every.keys, place, stands, only_last=False)
        self._values = every.values
        self._events = self._at(self._keys, place[self._order])
        self._is_commit = np.ones(len(stands), np.bool_)
        self._is_commit[len(before.keys) : len(before.keys) + len(own.keys)] = ~is_tombstone
        self._is_commit = self._is_commit[self._order]
        self._lives = self._found_lives(place, len(before.keys))
        is_new = waiting.values[:, LOG_OFFSET] >= self._offsets[0]
        stands = waiting.values[is_new, LOG_OFFSET]
        self.begins_to_wait = _Turns(stands, waiting.keys[is_new], stands, waiting.values[is_new, IS_LEGACY])
        """The numbers of pending offsets, the places of their commits, and IS_LEGACY."""
        over = np.argsort(self.waits_until, kind="stable")
        over = over[self.waits_until[over] < NEVER]
        self.stops_waiting = _Turns(self.waits_until[over], waiting.keys[over], waiting.values[over, LOG_OFFSET])

    def last(self) -> _Commits:
        """The offsets that exist after the rows, with their last commits."""
        numbers = self._lives.number[self._lives.end == NEVER]
        _, values = self.commits(numbers, np.full(len(numbers), NEVER))
        return _Commits(numbers, values, np.full(len(numbers), -1))

    def numbers(self, log_offsets: INT64) -> INT64:
        """The numbers of the offsets deleted by the tombstones at these log offsets."""
        of_rows, places = self._numbers
        return of_rows[np.searchsorted(places, log_offsets)]

    def commits(self, numbers: INT64, offsets: INT64) -> tuple[FLAGS, INT64]:
        """Whether offsets exist right before positions, and the commit columns of those that exist."""
        at = np.searchsorted(self._events, self._at(numbers, offsets)) - 1
        there = (at >= 0) & (np.append(self._keys, -1)[at] == numbers) & np.append(self._is_commit, False)[at]
        return there, self._values[np.append(self._order, 0)[at[there]]]

    def are_deleted(self, numbers: INT64, since: INT64, until: INT64) -> FLAGS:
        """Whether there is a tombstone between two positions."""
        found: FLAGS = self._next_deletion(numbers, since) < until
        return found

    def first_ones(
        self, of: INT64, wanted: INT64, offsets: INT64, allows: Callable[[INT64, INT64], FLAGS], most: int
    ) -> tuple[INT64, INT64]:
        """For each code in `wanted`, find up to `most` offsets that exist right before a position: the oldest ones for
        which `allows` returns True, given indexes of `wanted` and numbers. `of` contains the code of each number.
        Returns indexes of `wanted`, ascending, and numbers."""
        codes = of[self._lives.number]
        order = stable_order(codes)
        asked = _Asked(wanted, offsets, allows, most)
        rows, numbers = _first_ones(self._lives.chosen(order), codes[order], np.arange(len(wanted)), asked)
        order = np.argsort(rows, kind="stable")
        return rows[order], numbers[order]

    def _at(self, numbers: INT64, offsets: INT64) -> INT64:
        """A sort key for an offset and a position in the rows, by the number of the offset first."""
        # All positions before the rows count as one, which precedes the first row.
        places = np.where(offsets < self._offsets[0], 0, np.searchsorted(self._offsets, offsets) + 1)
        at: INT64 = numbers * self._width + places
        return at

    def _next_deletion(self, numbers: INT64, offsets: INT64) -> INT64:
        """The place of the first tombstone of an offset at or after a position, or NEVER."""
        there = np.append(self._deletions, NEVER)
        found = there[np.searchsorted(self._deletions, self._at(numbers, offsets))]
        is_same = found // self._width == numbers
        places: INT64 = np.where(is_same, self._offsets[np.where(is_same, found % self._width - 1, 0)], NEVER)
        return places

    def _found_lives(self, place: INT64, before: int) -> _Lives:
        """When each offset existed. The first `before` commits precede the rows."""
        is_commit, order = self._is_commit, self._order
        was_there = np.append(False, is_commit)[:-1] & ~begins(self._keys)
        first = np.flatnonzero(is_commit & ~was_there)
        last = np.flatnonzero(~is_commit & was_there)
        number, begin = self._keys[first], place[order[first]]
        behind = np.append(last, len(order))[np.searchsorted(last, first)]
        is_ended = np.append(self._keys, -1)[behind] == number
        end = np.where(is_ended, place[np.append(order, 0)[behind]], NEVER)
        # Offsets from before the rows keep their order of creation.
        is_old = order[first] < before
        turn = np.where(is_old, order[first], self._values[order[first], LOG_OFFSET])
        begin = np.where(is_old, -1, begin)
        return _Lives(number, begin, end).chosen(np.lexsort((turn, begin)))


class _Lives(NamedTuple):
    """When offsets were created and deleted, in order of creation."""

    number: INT64
    begin: INT64
    end: INT64
    """The place of the tombstone; NEVER if there is none."""

    def chosen(self, which: FLAGS | INT64) -> _Lives:
        return _Lives(*(each[which] for each in self))


class _Asked(NamedTuple):
    """The arguments of `Lot.first_ones`."""

    wanted: INT64
    offsets: INT64
    allows: Callable[[INT64, INT64], FLAGS]
    most: int


def _first_ones(lives: _Lives, codes: INT64, row: INT64, asked: _Asked) -> tuple[INT64, INT64]:
    """The result of `Lot.first_ones` for some rows, with rows in no particular order. `lives` are sorted by `codes`."""
    if not len(row):
        return row, row
    offsets = asked.offsets[row]
    is_near = (lives.end >= offsets.min()) & (lives.begin < offsets.max())
    lives, codes = lives.chosen(is_near), codes[is_near]
    at = np.searchsorted(codes, asked.wanted[row])
    behind = np.searchsorted(codes, asked.wanted[row], side="right")
    counts = np.zeros(len(row), np.int64)
    places, numbers = [row[:0]], [row[:0]]
    size = _FIRST_LOOK
    while len(left := np.flatnonzero((at < behind) & (counts < asked.most))):
        if size > _FIRST_LOOK and len(left) > _FEW:
            # Most of the first offsets were deleted earlier or are created later, so look at fewer positions together.
            parts = [_first_ones(lives, codes, row[some], asked) for some in np.array_split(left, _PARTS)]
            is_done = ~np.isin(np.concatenate(places), left)
            of_parts, numbers_of_parts = (np.concatenate(each) for each in zip(*parts, strict=True))
            done = row[np.concatenate(places)[is_done]]
            return np.append(done, of_parts), np.append(np.concatenate(numbers)[is_done], numbers_of_parts)
        sizes = np.minimum(behind[left] - at[left], size)
        place = np.repeat(left, sizes)
        some = np.arange(len(place)) + np.repeat(at[left] - np.cumsum(sizes) + sizes, sizes)
        at[left] += sizes
        size *= _FIRST_LOOK
        is_there = (lives.begin[some] < offsets[place]) & (lives.end[some] >= offsets[place])
        place, number = place[is_there], lives.number[some[is_there]]
        is_allowed = asked.allows(row[place], number)
        place, number = place[is_allowed], number[is_allowed]
        is_first = np.arange(len(place)) - np.searchsorted(place, place) + counts[place] < asked.most
        counts += np.bincount(place, minlength=len(row))
        places.append(place[is_first])
        numbers.append(number[is_first])
    return row[np.concatenate(places)], np.concatenate(numbers)


def _markers(rows: pa.RecordBatch, waiting: _Commits) -> tuple[INT64, FLAGS]:
    """For each waiting commit, the place of the marker that ends its transaction (NEVER if there is none), and whether
    the transaction was committed."""
    places, is_committed = np.full(len(waiting.keys), NEVER), np.zeros(len(waiting.keys), np.bool_)
    markers = rows.select(["offset", "producer_id", "control"]).filter(rows.column("control").is_valid())
    if not len(places) or not markers.num_rows:
        return places, is_committed
    waits = pa.RecordBatch.from_arrays(
        [pa.array(waiting.values[:, LOG_OFFSET]), pa.array(waiting.producers)], ["offset", "producer_id"]
    )
    at = next_markers(waits, markers)
    found = at >= 0
    places[found] = markers.column("offset").to_numpy()[at[found]]
    is_committed[found] = _is_one_of(markers.column("control"), "commit")[at[found]]
    return places, is_committed


def _values(found: DecodedRecords, types: tuple[int, ...]) -> INT64:
    """The value columns of commits. `types` are the numbers of the record types of commits, the older type first."""
    commit, expire = (
        found.member(of, "value", name).fill_null(NO_TIME).to_numpy(zero_copy_only=False)
        for of, name in ((types, "commit_timestamp"), (types[1:], "expire_timestamp"))
    )
    commit = np.clip(commit, -FARTHEST_MS, FARTHEST_MS)
    is_legacy = found.columns.record_type == types[0]
    topic_id = _numbers_of_ids(found.member(types[1:], "value", "topic_id"))
    columns = (found.offsets, commit, expire, ~found.has_error, is_legacy, topic_id)
    return np.stack([column.astype(np.int64) for column in columns], axis=1)


def _numbers_of_ids(ids: pa.Array) -> INT64:
    """A number for each topic id; 0 if there is none or if it is NO_TOPIC_ID."""
    encoded = ids.dictionary_encode()
    known = [0 if each == NO_TOPIC_ID else zlib.crc32(each.encode()) + 1 for each in encoded.dictionary.to_pylist()]
    numbers: INT64 = np.array([*known, 0], np.int64)[encoded.indices.fill_null(len(known)).to_numpy()]
    return numbers


def _is_one_of(words: pa.Array, *wanted: str) -> FLAGS:
    found: FLAGS = pc.is_in(words, pa.array(wanted)).to_numpy(zero_copy_only=False)
    return found
