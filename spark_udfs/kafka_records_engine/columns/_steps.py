"""The steps that reading a message takes, each for many rows at a time.

`scan` moves a cursor over the bytes of a step and notes in vectors where and what everything is; `build` makes arrays
of such vectors. They are apart because the elements of arrays are scanned level by level, the first of every row, then
the second, while arrays are built in one go. `skip` scans without taking notes. `hop` skips for a single row, in plain
Python: quicker than vectors of a few elements. It raises Broken, or what indexing raises.

All of them agree on what they accept as structure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._cursor import Cursor, Vector
from kafka_records_engine.columns._leaves import BUILDERS, WIRE_WIDTHS, raw_bytes, texts
from kafka_records_engine.columns.arrow_arrays import at
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_runtime.wire import FIXED_SIZES, MAX_INT32, MAX_STRING

Notes = list[Vector]
Slots = list[pa.Array | None]


class Broken(Exception):
    """Bytes that are not as they should be."""


class Step(Protocol):
    """`notes` are the types of the vectors that `scan` appends and `build` takes, one after the other. The cursor of
    `build` only knows which elements are dead, to which rows they belong, and where their notes are."""

    @property
    def notes(self) -> Sequence[str]: ...

    def scan(self, cursor: Cursor, notes: Notes) -> None: ...

    def build(self, cursor: Cursor, notes: Iterator[Vector], slots: Slots) -> None: ...

    def read(self, cursor: Cursor, slots: Slots) -> None: ...

    def skip(self, cursor: Cursor) -> None: ...

    def hop(self, data: Any, pos: int, end: int) -> int: ...


class Content(Protocol):
    """What follows a length, which is below zero for null: text, bytes or the elements of an array.

    `longest` is what a compact length may be; one of fixed width cannot be more.
    """

    @property
    def longest(self) -> int: ...

    @property
    def notes(self) -> Sequence[str]: ...

    def scan(self, cursor: Cursor, size: int, lengths: INT64, notes: Notes) -> None: ...

    def build(self, cursor: Cursor, notes: Iterator[Vector], slots: Slots) -> None: ...

    def read(self, cursor: Cursor, size: int, lengths: INT64, slots: Slots) -> None: ...

    def skip(self, cursor: Cursor, size: int, lengths: INT64) -> None: ...

    def hop(self, data: Any, pos: int, end: int, length: int) -> int: ...


class Plan(Protocol):
    """How one value is read: a whole message, the element of an array, a nested struct, a tagged field."""

    @property
    def notes(self) -> Sequence[str]: ...

    @property
    def fixed_size(self) -> int | None: ...

    def scan(self, cursor: Cursor, notes: Notes) -> None: ...

    def build(self, cursor: Cursor, notes: Iterator[Vector]) -> pa.Array: ...

    def read(self, cursor: Cursor) -> pa.Array: ...

    def skip(self, cursor: Cursor) -> None: ...

    def hop(self, data: Any, pos: int, end: int) -> int: ...


def existing(cursor: Cursor, lengths: INT64, nullable: bool) -> tuple[INT64, FLAGS | None]:
    """Lengths of which none is negative, and which of them are no nulls (None: all).

    Nulls have zero; the dead have zero too if there is a null, else what was read for them.
    """
    if np.minimum.reduce(lengths, initial=0) >= 0:
        return lengths, None
    null = lengths < 0
    cursor.fail_where(lengths < -1 if nullable else null)
    usable = ~null if cursor.dead is None else ~null & ~cursor.dead
    return np.where(usable, lengths, 0), ~null if nullable else None


# -- fixed width -----------------------------------------------------------------------------------


class Fixed:
    """Adjacent fields of fixed width, read together, and the length behind them if that is of fixed width too."""

    def __init__(
        self, members: Sequence[tuple[int, str]], length: str | None = None, content: Content | None = None
    ) -> None:
        """`members` are slots and spec types; `length` is `int16` or `int32`."""
        self._slots = [slot for slot, _ in members]
        self._builders = [BUILDERS[base] for _, base in members]
        bases = [base for _, base in members] + ([length] if length else [])
        self._item = np.dtype([(f"f{place}", WIRE_WIDTHS[base]) for place, base in enumerate(bases)])
        self._length = f"f{len(members)}"
        self._content = content
        self._size = self._item.itemsize
        # Items of several fields are picked up as plain bytes, which is quicker, and looked into afterwards.
        self._kind = f"V{self._size}" if members else WIRE_WIDTHS[bases[0]]
        code = "h" if length == "int16" else "i"
        self._unpack = Struct(f">{self._size - FIXED_SIZES[length]}x{code}").unpack_from if length else None
        own = [self._kind] if members else []
        self.notes = [*own, *(content.notes if content else ())]

    def _lengths(self, items: Vector) -> INT64:
        lengths = items.view(self._item)[self._length] if self._slots else items
        return lengths.astype(np.int64)

    def scan(self, cursor: Cursor, notes: Notes) -> None:
        items = cursor.peek(self._kind)
        if self._slots:
            notes.append(items)
        if self._content is None:
            cursor.need(self._size)
        else:
            self._content.scan(cursor, self._size, self._lengths(items), notes)

    def build(self, cursor: Cursor, notes: Iterator[Vector], slots: Slots) -> None:
        if self._slots:
            self._fill(cursor.in_order(next(notes)), slots)
        if self._content is not None:
            self._content.build(cursor, notes, slots)

    def _fill(self, items: Vector, slots: Slots) -> None:
        fields = items.view(self._item)
        for place, (slot, build) in enumerate(zip(self._slots, self._builders, strict=True)):
            slots[slot] = build(fields[f"f{place}"])

    def read(self, cursor: Cursor, slots: Slots) -> None:
        items = cursor.peek(self._kind)
        if self._content is None:
            cursor.need(self._size)
        else:
            self._content.read(cursor, self._size, self._lengths(items), slots)
        if self._slots:
            self._fill(items, slots)

    def skip(self, cursor: Cursor) -> None:
        if self._content is None:
            cursor.need(self._size)
        else:
            self._content.skip(cursor, self._size, self._lengths(cursor.peek(self._kind)))

    def hop(self, data: Any, pos: int, end: int) -> int:
        after = pos + self._size
        if after > end:
            raise Broken
        if self._content is None or self._unpack is None:
            return after
        return self._content.hop(data, after, end, self._unpack(data, pos)[0])


class Compact:
    """A compact length, an unsigned varint one above it, and what follows."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self.notes = content.notes

    def scan(self, cursor: Cursor, notes: Notes) -> None:
        self._content.scan(cursor, 0, self._lengths(cursor), notes)

    def build(self, cursor: Cursor, notes: Iterator[Vector], slots: Slots) -> None:
        self._content.build(cursor, notes, slots)

    def read(self, cursor: Cursor, slots: Slots) -> None:
        self._content.read(cursor, 0, self._lengths(cursor), slots)

    def skip(self, cursor: Cursor) -> None:
        self._content.skip(cursor, 0, self._lengths(cursor))

    def _lengths(self, cursor: Cursor) -> INT64:
        lengths = cursor.uvarints() - 1
        cursor.fail_where(lengths > self._content.longest)
        return lengths

    def hop(self, data: Any, pos: int, end: int) -> int:
        value, pos = hop_uvarint(data, pos, end)
        return self._content.hop(data, pos, end, value - 1)


def hop_uvarint(data: Any, pos: int, end: int) -> tuple[int, int]:
    """An unsigned varint of one row, and where it ends."""
    value = shift = 0
    while pos < end and shift < 35:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
        shift += 7
    raise Broken


# -- text and bytes ---------------------------------------------------------------------------------


class Variable:
    """Text (of at most 32767 bytes of UTF-8) or bytes."""

    def __init__(self, slot: int, is_text: bool, nullable: bool) -> None:
        self._slot = slot
        self._nullable = nullable
        self._make = texts if is_text else raw_bytes
        self.longest = MAX_STRING if is_text else MAX_INT32
        self.notes = ["i4", "i4", "?"] if nullable else ["i4", "i4"]

    def scan(self, cursor: Cursor, size: int, lengths: INT64, notes: Notes) -> None:
        lengths, valid = existing(cursor, lengths, self._nullable)
        notes.extend(cursor.spans(size, lengths))
        if self._nullable:
            notes.append(np.ones(len(lengths), np.bool_) if valid is None else valid)

    def build(self, cursor: Cursor, notes: Iterator[Vector], slots: Slots) -> None:
        starts, stops = next(notes), next(notes)
        valid = cursor.in_order(next(notes)) if self._nullable else None
        slots[self._slot] = self._make(cursor, starts, stops, None if valid is None or valid.all() else valid)

    def read(self, cursor: Cursor, size: int, lengths: INT64, slots: Slots) -> None:
        lengths, valid = existing(cursor, lengths, self._nullable)
        slots[self._slot] = self._make(cursor, *cursor.spans(size, lengths), valid)

    def skip(self, cursor: Cursor, size: int, lengths: INT64) -> None:
        cursor.spans(size, existing(cursor, lengths, self._nullable)[0])

    def hop(self, data: Any, pos: int, end: int, length: int) -> int:
        if length < 0:
            if length < -1 or not self._nullable:
                raise Broken
            return pos
        pos += length
        if pos > end or length > self.longest:
            raise Broken
        return pos


# -- structs ----------------------------------------------------------------------------------------


class Nested:
    """A struct that is always there."""

    def __init__(self, slot: int, plan: Plan) -> None:
        self._slot = slot
        self._plan = plan
        self.notes = plan.notes

    def scan(self, cursor: Cursor, notes: Notes) -> None:
        self._plan.scan(cursor, notes)

    def build(self, cursor: Cursor, notes: Iterator[Vector], slots: Slots) -> None:
        slots[self._slot] = self._plan.build(cursor, notes)

    def read(self, cursor: Cursor, slots: Slots) -> None:
        slots[self._slot] = self._plan.read(cursor)

    def skip(self, cursor: Cursor) -> None:
        self._plan.skip(cursor)

    def hop(self, data: Any, pos: int, end: int) -> int:
        return self._plan.hop(data, pos, end)


@dataclass(frozen=True)
class Nullable:
    """A struct that may be null: a byte, 1 before a struct and `null` instead of one (-1; in a tag 0)."""

    slot: int
    plan: Plan
    null: int
    notes: Sequence[str] = ("i8", "?")

    def _present(self, cursor: Cursor) -> FLAGS:
        marks = cursor.bytes()
        there = marks == 1
        cursor.fail_where(~there & (marks != self.null & 0xFF))
        return cursor.live(there)

    def scan(self, cursor: Cursor, notes: Notes) -> None:
        there = self._present(cursor)
        notes.extend((cursor.pos, there))
        self._skip(cursor, np.flatnonzero(there))

    def build(self, cursor: Cursor, notes: Iterator[Vector], slots: Slots) -> None:
        pos, there = cursor.in_order(next(notes)), cursor.in_order(next(notes))
        index = np.flatnonzero(cursor.live(there))
        slots[self.slot] = self._spread(self.plan.read(cursor.inside(pos[index], index)), index, len(cursor))

    def read(self, cursor: Cursor, slots: Slots) -> None:
        there = self._present(cursor)
        if there.all():
            slots[self.slot] = self.plan.read(cursor)
            return
        index = np.flatnonzero(there)
        some = cursor.select(index)
        slots[self.slot] = self._spread(self.plan.read(some), index, len(cursor))
        cursor.adopt(some, index)

    @staticmethod
    def _spread(values: pa.Array, index: INT64, count: int) -> pa.Array:
        places = np.full(count, -1)
        places[index] = np.arange(len(index))
        return at(values, places)

    def skip(self, cursor: Cursor) -> None:
        self._skip(cursor, np.flatnonzero(self._present(cursor)))

    def _skip(self, cursor: Cursor, index: INT64) -> None:
        some = cursor.select(index)
        self.plan.skip(some)
        cursor.pos = cursor.pos.copy()  # it may have been noted
        cursor.adopt(some, index)

    def hop(self, data: Any, pos: int, end: int) -> int:
        if pos >= end:
            raise Broken
        mark = data[pos]
        if mark == 1:
            return self.plan.hop(data, pos + 1, end)
        if mark != self.null & 0xFF:
            raise Broken
        return pos + 1
