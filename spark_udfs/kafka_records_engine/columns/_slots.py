"""Notes about array elements. Steps that find the elements write them, and later steps read them.

Each step that has something to note owns *slots*, which are created with the step. `Step.scan` puts one vector into
each of its slots. `ElementVectors` collects the vectors of all scans by slot. `Step.build` gets each vector from the
same slot of a `Scanned`. A slot that two steps share, an unfilled slot, and a slot of another plan raise an error
immediately.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kafka_records_engine.columns._cursor import Cursor, ElementSet, Slices, Vector
from kafka_records_engine.numpy_types import INT64


class Slot:
    """The place for one vector of notes. `name` describes it; `kind` is its numpy type. A slot equals only itself."""

    __slots__ = ("kind", "name")

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind

    def __repr__(self) -> str:
        return f"Slot({self.name!r}, {self.kind!r})"


class WrongSlots(LookupError):
    """A step and its slots do not match. This is a bug in this package, not an error in the input."""


SlotVectors = dict[Slot, Vector]
"""The notes of one scan: for each slot of the plan, a vector with an entry for each element of the cursor."""


def own_slots(owners: Iterable[Sequence[Slot]]) -> list[Slot]:
    """All slots of several steps. Raises WrongSlots if two steps share one."""
    slots = [slot for owned in owners for slot in owned]
    if len({*slots}) != len(slots):
        raise WrongSlots(f"steps share a slot: {slots}")
    return slots


class ElementVectors:
    """The notes about all elements of given arrays in reading order: the first elements of all rows, then the second
    ones.

    Elements are numbered row by row: `first` is the number of the first element of each row and, at its end, the count
    of all elements. `order` is the index of each element's notes in the vectors. It is meaningless for elements that
    the scan never reached; their rows have failed.
    """

    def __init__(self, first: INT64, slots: Iterable[Slot]) -> None:
        total = int(first[-1])
        self._first = first
        self._count = 0
        self.vectors: SlotVectors = {slot: np.empty(total, slot.kind) for slot in slots}
        self.order = np.zeros(total, np.int64)

    def add(self, owners: INT64, level: int | INT64, notes: SlotVectors) -> None:
        """Add the notes about one element in each of the rows `owners`. `level` elements precede it in its row."""
        start, stop = self._count, self._count + len(owners)
        self.order[self._first[owners] + level] = np.arange(start, stop)
        if len(notes) != len(self.vectors):
            raise WrongSlots(f"expected the slots {[*self.vectors]}, got {[*notes]}")
        for slot, vector in self.vectors.items():
            vector[start:stop] = _noted(slot, notes)
        self._count = stop


class Scanned(ElementSet):
    """The elements of arrays after their scan, with their notes: `counts` elements in each element of `outer`.

    They have no positions and do not move. `order` is the index of each element's notes in the vectors; None means that
    they are in the order of the elements.
    """

    __slots__ = ("_counts", "_order", "_outer", "_owners", "_total", "_vectors")

    def __init__(self, outer: Cursor, counts: INT64, total: int, vectors: SlotVectors, order: INT64 | None) -> None:
        """`counts` has the number of inner elements for each element of `outer`, and `total` is their sum."""
        self._outer = outer
        self._counts = counts
        self._total = total
        self._vectors = vectors
        self._order = order
        self._owners: INT64 | None = None
        self.block = outer.block
        self.dead = None if outer.dead is None else outer.dead[self.owners]

    def __len__(self) -> int:
        return self._total

    @property
    def outer(self) -> Cursor:
        """The outer elements, which contain these elements."""
        return self._outer

    @property
    def owners(self) -> INT64:
        """For each element, the element of `outer` that contains it. Computed on demand, because it is mostly needed
        for broken bytes."""
        if self._owners is None:
            self._owners = np.repeat(np.arange(len(self._counts)), self._counts)
        return self._owners

    def rows_of(self, which: Any) -> INT64:
        return self._outer.rows_of(self.owners[which])

    def inside(self, pos: INT64, index: INT64) -> Cursor:
        return self._outer.inside(pos, self.owners[index])

    def vector(self, slot: Slot) -> Vector:
        """The notes in a slot, in the order of the elements. Raises WrongSlots if there are none."""
        noted = _noted(slot, self._vectors)
        return noted if self._order is None else noted[self._order]

    def slices(self, starts: Slot, stops: Slot) -> Slices:
        """Slices whose starts and stops are in two slots. They stay in reading order; see `Slices.order`."""
        return Slices(_noted(starts, self._vectors), _noted(stops, self._vectors), self._order)


def _noted(slot: Slot, vectors: SlotVectors) -> Vector:
    try:
        return vectors[slot]
    except KeyError:
        raise WrongSlots(f"{slot!r} has no values, only {[*vectors]} have") from None
