"""Arrays: finding all their elements, and reading them as if they were rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._cursor import Cursor, Scanned, Vector
from kafka_records_engine.columns._leaves import items
from kafka_records_engine.columns._steps import Broken, Notes, Plan, Slots, existing
from kafka_records_engine.columns.arrow_arrays import lists
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_runtime.wire import MAX_INT32

CACHED: Final = 8 << 20
"""Bytes that the processor's caches keep from one level of elements to the next."""

FEW: Final = 48
"""Rows below which going from element to element in plain Python is quicker than in vectors. One huge array among small
ones would otherwise be thousands of rounds over vectors of one element."""


class Elements:
    """The elements of an array, none of which takes fewer than `smallest` bytes.

    A count is held against the bytes that are left before anything is made, so that memory is bounded by the input.
    Elements without bytes are left to the walker, which knows how many of them it may believe in.
    """

    longest = MAX_INT32

    def __init__(self, slot: int, kind: pa.DataType, element: Plan, smallest: int, nullable: bool) -> None:
        self._slot = slot
        self._kind = kind
        self._element = element
        self._smallest = smallest
        self._nullable = nullable
        self.notes = ["i8", "i8", "?"] if nullable else ["i8", "i8"]

    def _enter(self, cursor: Cursor, size: int, counts: INT64) -> tuple[INT64, FLAGS | None]:
        """Move to the first element; the counts, zero for nulls and for the dead."""
        counts, valid = existing(cursor, counts, self._nullable)
        if size:
            cursor.need(size)
        cursor.fail_where(counts * self._smallest > cursor.end - cursor.pos if self._smallest else counts > 0)
        return (counts if cursor.dead is None else np.where(cursor.dead, 0, counts)), valid

    def scan(self, cursor: Cursor, size: int, lengths: INT64, notes: Notes) -> None:
        counts, valid = self._enter(cursor, size, lengths)
        notes.extend((cursor.pos, counts))
        if self._nullable:
            notes.append(np.ones(len(counts), np.bool_) if valid is None else valid)
        self._pass(cursor, counts)

    def build(self, cursor: Cursor, notes: Iterator[Vector], slots: Slots) -> None:
        pos, counts = cursor.in_order(next(notes)), cursor.in_order(next(notes))
        valid = cursor.in_order(next(notes)) if self._nullable else None
        again = cursor.inside(pos, np.arange(len(pos)))
        if cursor.dead is not None:
            again.fail(cursor.dead)
            counts = np.where(cursor.dead, 0, counts)
        slots[self._slot] = self._read(again, counts, None if valid is None or valid.all() else valid)

    def read(self, cursor: Cursor, size: int, lengths: INT64, slots: Slots) -> None:
        slots[self._slot] = self._read(cursor, *self._enter(cursor, size, lengths))

    def skip(self, cursor: Cursor, size: int, lengths: INT64) -> None:
        self._pass(cursor, self._enter(cursor, size, lengths)[0])

    def _pass(self, cursor: Cursor, counts: INT64) -> None:
        if self._element.fixed_size is None:
            _Walk(self._element, cursor, counts, None).run()
        else:
            cursor.pos = cursor.pos + counts * self._element.fixed_size

    def _read(self, cursor: Cursor, counts: INT64, valid: FLAGS | None) -> pa.Array:
        first = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=first[1:])
        size = self._element.fixed_size
        if size is None:
            record = _Record(first, self._element.notes)
            _Walk(self._element, cursor, counts, record).run()
            notes, order = record.notes, record.order
        else:
            starts = cursor.pos
            cursor.pos = starts + counts * size
            notes, order = [items(cursor, starts, cursor.pos, size)] if size else [], None
        inner = Scanned(cursor, counts, int(first[-1]), order)
        return lists(self._kind, first, self._element.build(inner, iter(notes)), valid)

    def hop(self, data: Any, pos: int, end: int, length: int) -> int:
        if length < 0:
            if length < -1 or not self._nullable:
                raise Broken
            return pos
        if length * self._smallest > end - pos or (length and not self._smallest):
            raise Broken
        if self._element.fixed_size is not None:
            return pos + length * self._element.fixed_size
        hop = self._element.hop
        for _ in range(length):
            pos = hop(data, pos, end)
        return pos


class _Record:
    """Notes of the elements of arrays in the order of their reading: the first elements of all rows, then the second.

    Elements are numbered row by row, and `first` has the number of each row's first one.
    """

    def __init__(self, first: INT64, kinds: Sequence[str]) -> None:
        total = int(first[-1])
        self._first = first
        self._count = 0
        self.notes: Notes = [np.empty(total, kind) for kind in kinds]
        self.order = np.zeros(total, np.int64)
        """Where in the notes each element is; somewhere for those that are never reached, in dead rows."""

    def add(self, owners: INT64, level: int | INT64, notes: Notes) -> None:
        """Notes of one element of each of the rows `owners`, of which `level` come before it."""
        start, stop = self._count, self._count + len(owners)
        self.order[self._first[owners] + level] = np.arange(start, stop)
        for vector, note in zip(self.notes, notes, strict=True):
            vector[start:stop] = note
        self._count = stop


class _Walk:
    """One way through the elements of arrays, the first of every row, then the second, moving `cursor` behind them.

    `record` takes the notes of the elements, None when nobody wants them.
    """

    def __init__(self, element: Plan, cursor: Cursor, counts: INT64, record: _Record | None) -> None:
        self._element = element
        self._cursor = cursor
        self._counts = counts
        self._record = record

    def run(self) -> None:
        index = np.flatnonzero(self._counts)
        if not index.size:
            return
        self._cursor.pos = self._cursor.pos.copy()  # somebody may have noted it
        for near in self._neighbours(index):
            self._levels(near)

    def _neighbours(self, index: INT64) -> Iterator[INT64]:
        """Parts of `index` that lie so near to each other that they stay in the processor's caches."""
        if self._record is None:  # only passing by, and in no order
            yield index
            return
        places = np.maximum.accumulate(self._cursor.pos[index])
        cuts = np.searchsorted(places, np.arange(places[0] + CACHED, places[-1], CACHED))
        yield from (part for part in np.split(index, cuts) if len(part))

    def _levels(self, index: INT64) -> None:
        # The longest arrays first: who still has an element is then always the head of the vectors.
        index = index[np.argsort(-self._counts[index], kind="stable")]
        left = self._counts[index]
        falling = -left
        some = self._cursor.select(index)
        level = 0
        while len(some) > FEW:
            self._scan(some, index[: len(some)], level)
            level += 1
            self._retire(some, index, int(np.searchsorted(falling[: len(some)], -level)))
            if some.dead is not None:  # who broke may have claimed any number of elements
                self._cursor.adopt(some, index[: len(some)])
                alive = np.flatnonzero(~some.dead)
                some, index, left = some.select(alive), index[alive], left[alive]
                falling = -left
        self._rest(some, index, (left[: len(some)] - level).tolist(), level)
        self._retire(some, index, 0)

    def _retire(self, some: Cursor, index: INT64, staying: int) -> None:
        """Only the first `staying` elements of `some` have anything left to read."""
        if staying < len(some):
            behind = some.split(staying)
            self._cursor.adopt(behind, index[staying : staying + len(behind)])

    def _scan(self, elements: Cursor, owners: INT64, level: int | INT64) -> None:
        """Move behind an element of each, the one with the number `level` in the array of its owner."""
        if self._record is None:
            self._element.skip(elements)
            return
        notes: Notes = []
        self._element.scan(elements, notes)
        self._record.add(owners, level, notes)

    def _rest(self, some: Cursor, index: INT64, left: list[int], level: int) -> None:
        """All further elements, row by row."""
        data = some.batch.data.data
        found: list[list[int]] = []
        for place, count in enumerate(left):
            starts: list[int] = []
            try:
                some.pos[place] = self._hop(data, int(some.pos[place]), int(some.end[place]), count, starts)
            except (Broken, IndexError):
                some.fail_at(np.array([place]))
                starts = []
            found.append(starts)
        if self._record is not None and any(found):
            counts = np.array([len(starts) for starts in found])
            places = np.repeat(np.arange(len(found)), counts)
            numbers = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
            elements = some.inside(np.concatenate([np.array(starts, np.int64) for starts in found]), places)
            self._scan(elements, index[places], level + numbers)
            if elements.dead is not None:  # hopping does not look at the order of tags
                some.fail_at(places[elements.dead])

    def _hop(self, data: Any, pos: int, end: int, count: int, starts: list[int]) -> int:
        append, hop = starts.append, self._element.hop
        for _ in range(count):
            append(pos)
            pos = hop(data, pos, end)
        return pos
