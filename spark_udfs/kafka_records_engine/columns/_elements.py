"""Finds the elements of arrays, and reads them as if they were rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._cursor import Cursor, Slices
from kafka_records_engine.columns._interfaces import Broken, Members, Packed, Plan
from kafka_records_engine.columns._leaves import items
from kafka_records_engine.columns._slots import ElementVectors, Scanned, Slot, SlotVectors
from kafka_records_engine.columns._steps import existing, present
from kafka_records_engine.columns.arrow_arrays import lists
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_runtime.wire.primitives import MAX_INT32

CACHED: Final = 8 << 20
"""The number of bytes that are likely to stay in the processor's caches between two levels of elements."""

FEW: Final = 48
"""For fewer rows than this, a plain Python loop over the elements is faster than vectors. Without the loop, one huge
array among small ones would need thousands of steps over vectors with a single element."""


class Elements:
    """The elements of an array. Each has at least `smallest` bytes.

    Before anything is allocated, a count is compared with the number of bytes left, so the size of the input limits the
    memory. Elements without bytes are left to the schema walker, which limits their number.

    For arrays inside arrays only positions and counts are noted: `build` reads the inner arrays as if they were rows.
    """

    longest = MAX_INT32

    def __init__(self, name: str, kind: pa.DataType, element: Plan, smallest: int, nullable: bool) -> None:
        self._name = name
        self._kind = kind
        self._element = element
        self._smallest = smallest
        self._nullable = nullable
        self._positions = Slot(f"{name}: positions", "i8")
        self._counts = Slot(f"{name}: counts", "i8")
        self._present = Slot(f"{name}: present", "?")
        self.slots = [self._positions, self._counts, *([self._present] if nullable else [])]

    def _enter(self, cursor: Cursor, size: int, counts: INT64) -> tuple[INT64, FLAGS | None]:
        """Move to the first element. Returns the counts, with zero for nulls and dead elements, and flags for non-null
        arrays."""
        counts, valid = existing(cursor, counts, self._nullable)
        if size:
            cursor.need(size)
        cursor.fail_where(counts * self._smallest > cursor.end - cursor.pos if self._smallest else counts > 0)
        return (counts if cursor.dead is None else np.where(cursor.dead, 0, counts)), valid

    def scan(self, cursor: Cursor, size: int, lengths: INT64, notes: SlotVectors) -> None:
        counts, valid = self._enter(cursor, size, lengths)
        notes[self._positions] = cursor.pos
        notes[self._counts] = counts
        if self._nullable:
            notes[self._present] = present(valid, len(counts))
        self._pass(cursor, counts)

    def build(self, scanned: Scanned, members: Members) -> None:
        pos, counts = scanned.vector(self._positions), scanned.vector(self._counts)
        valid = scanned.vector(self._present) if self._nullable else None
        again = scanned.inside(pos, np.arange(len(pos)))
        if scanned.dead is not None:
            again.fail(scanned.dead)
            counts = np.where(scanned.dead, 0, counts)
        members[self._name] = self._read(again, counts, None if valid is None or valid.all() else valid)

    def read(self, cursor: Cursor, size: int, lengths: INT64, members: Members) -> None:
        members[self._name] = self._read(cursor, *self._enter(cursor, size, lengths))

    def skip(self, cursor: Cursor, size: int, lengths: INT64) -> None:
        self._pass(cursor, self._enter(cursor, size, lengths)[0])

    def _pass(self, cursor: Cursor, counts: INT64) -> None:
        """Move past the elements without noting anything."""
        if self._element.packed is None:
            ElementWalk(self._element, cursor, counts, None).run()
        else:
            cursor.pos = cursor.pos + counts * self._element.packed.size

    def _read(self, cursor: Cursor, counts: INT64, valid: FLAGS | None) -> pa.Array:
        """The list array of the elements at the positions of the cursor, which moves past them."""
        first = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=first[1:])
        packed = self._element.packed
        if packed is None:
            scanned = self._scanned(cursor, counts, first)
        else:
            scanned = self._unpacked(cursor, counts, int(first[-1]), packed)
        return lists(self._kind, first, self._element.build(scanned), valid)

    def _scanned(self, cursor: Cursor, counts: INT64, first: INT64) -> Scanned:
        notes = ElementVectors(first, self._element.slots)
        ElementWalk(self._element, cursor, counts, notes).run()
        return Scanned(cursor, counts, int(first[-1]), notes.vectors, notes.order)

    @staticmethod
    def _unpacked(cursor: Cursor, counts: INT64, total: int, packed: Packed) -> Scanned:
        starts = cursor.pos
        cursor.pos = starts + counts * packed.size
        if packed.slot is None:
            return Scanned(cursor, counts, total, {}, None)
        vectors = {packed.slot: items(cursor, Slices(starts, cursor.pos), packed.size)}
        return Scanned(cursor, counts, total, vectors, None)

    def hop(self, data: Any, pos: int, end: int, length: int) -> int:
        if length < 0:
            if length < -1 or not self._nullable:
                raise Broken
            return pos
        if length * self._smallest > end - pos or (length and not self._smallest):
            raise Broken
        if self._element.packed is not None:
            return pos + length * self._element.packed.size
        hop = self._element.hop
        for _ in range(length):
            pos = hop(data, pos, end)
        return pos


class ElementWalk:
    """One pass over the elements of arrays: the first element of every row, then the second element of every row, and
    so on. `cursor` moves past them.

    `notes` collects the notes about the elements; if it is None, the pass only skips them.
    """

    def __init__(self, element: Plan, cursor: Cursor, counts: INT64, notes: ElementVectors | None) -> None:
        self._element = element
        self._cursor = cursor
        self._counts = counts
        self._notes = notes

    def run(self) -> None:
        index = np.flatnonzero(self._counts)
        if not index.size:
            return
        # copy the array, because `adopt` writes into it and notes may refer to it
        self._cursor.pos = self._cursor.pos.copy()
        for near in self._neighbours(index):
            self._levels(near)

    def _neighbours(self, index: INT64) -> Iterator[INT64]:
        """Splits `index` into parts that are close enough to each other to stay in the processor's caches."""
        if self._notes is None:  # skipped elements are not in row order
            yield index
            return
        places = np.maximum.accumulate(self._cursor.pos[index])
        cuts = np.searchsorted(places, np.arange(places[0] + CACHED, places[-1], CACHED))
        yield from (part for part in np.split(index, cuts) if len(part))

    def _levels(self, index: INT64) -> None:
        # Put the longest arrays first, so that the rows that still have an element are always at the front of the
        # vectors.
        index = index[np.argsort(-self._counts[index], kind="stable")]
        left = self._counts[index]
        falling = -left
        some = self._cursor.select(index)
        level = 0
        while len(some) > FEW:
            self._scan(some, index[: len(some)], level)
            level += 1
            self._retire(some, index, int(np.searchsorted(falling[: len(some)], -level)))
            if some.dead is not None:  # a broken row may have any count, so it must not cost a step per element
                self._cursor.adopt(some, index[: len(some)])
                alive = np.flatnonzero(~some.dead)
                some, index, left = some.select(alive), index[alive], left[alive]
                falling = -left
        self._rest(some, index, (left[: len(some)] - level).tolist(), level)
        self._retire(some, index, 0)

    def _retire(self, some: Cursor, index: INT64, staying: int) -> None:
        """Keep the first `staying` rows in `some`; the others have no element left."""
        if staying < len(some):
            behind = some.split(staying)
            self._cursor.adopt(behind, index[staying : staying + len(behind)])

    def _scan(self, elements: Cursor, owners: INT64, level: int | INT64) -> None:
        """Move past one element in each of the rows `owners`. It is element number `level` of its array."""
        if self._notes is None:
            self._element.skip(elements)
            return
        notes: SlotVectors = {}
        self._element.scan(elements, notes)
        self._notes.add(owners, level, notes)

    def _rest(self, some: Cursor, index: INT64, left: list[int], level: int) -> None:
        """Read all remaining elements, row by row."""
        data = some.block.data.data
        found: list[list[int]] = []
        for place, count in enumerate(left):
            starts: list[int] = []
            try:
                some.pos[place] = self._hop(data, int(some.pos[place]), int(some.end[place]), count, starts)
            except (Broken, IndexError):
                some.fail_at(np.array([place]))
                starts = []
            found.append(starts)
        if self._notes is not None and any(found):
            counts = np.array([len(starts) for starts in found])
            places = np.repeat(np.arange(len(found)), counts)
            numbers = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
            elements = some.inside(np.concatenate([np.array(starts, np.int64) for starts in found]), places)
            self._scan(elements, index[places], level + numbers)
            if elements.dead is not None:  # `hop` is less strict than `scan`: it does not check the order of tags
                some.fail_at(places[elements.dead])

    def _hop(self, data: Any, pos: int, end: int, count: int, starts: list[int]) -> int:
        append, hop = starts.append, self._element.hop
        for _ in range(count):
            append(pos)
            pos = hop(data, pos, end)
        return pos
