"""The steps of plans, except those for arrays and tagged fields: fixed-width fields, lengths, text, bytes, and
structs."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._cursor import Cursor, Vector
from kafka_records_engine.columns._interfaces import Broken, Content, Members, Packed, Plan
from kafka_records_engine.columns._leaves import BUILDERS, WIRE_WIDTHS, raw_bytes, texts
from kafka_records_engine.columns._slots import Scanned, Slot, SlotVectors
from kafka_records_engine.columns.arrow_arrays import at
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_runtime.schema import FIXED_SIZES
from kafka_records_runtime.wire.primitives import MAX_INT32, MAX_STRING


def existing(cursor: Cursor, lengths: INT64, nullable: bool) -> tuple[INT64, FLAGS | None]:
    """Lengths with negative ones set to zero, and flags for the elements that are not null (None: no element is null).

    An element becomes dead if its length is negative and does not mean null. If any length is negative, the lengths of
    all dead elements become zero too; otherwise they keep the values that were read.
    """
    if np.minimum.reduce(lengths, initial=0) >= 0:
        return lengths, None
    null = lengths < 0
    cursor.fail_where(lengths < -1 if nullable else null)
    usable = ~null if cursor.dead is None else ~null & ~cursor.dead
    return np.where(usable, lengths, 0), ~null if nullable else None


def present(valid: FLAGS | None, count: int) -> FLAGS:
    """The flags from `existing` as a vector, for a slot."""
    return np.ones(count, np.bool_) if valid is None else valid


# -- fixed width -----------------------------------------------------------------------------------

_LENGTH: Final = "length after them"


class Fixed:
    """Adjacent fields of fixed width. If the length after them also has a fixed width, it is read together with
    them."""

    def __init__(
        self, fields: Sequence[tuple[str, str]], length: str | None = None, content: Content | None = None
    ) -> None:
        """`fields` are names and spec types; `length` is `int16` or `int32`."""
        self._builders = {name: BUILDERS[base] for name, base in fields}
        widths = [(name, WIRE_WIDTHS[base]) for name, base in fields]
        self._item = np.dtype([*widths, (_LENGTH, WIRE_WIDTHS[length])] if length else widths)
        self._content = content
        self._size = self._item.itemsize
        # Items of several fields are copied as plain bytes, which is faster, and are split into fields afterwards.
        self._kind = f"V{self._size}" if fields or length is None else WIRE_WIDTHS[length]
        code = "h" if length == "int16" else "i"
        self._unpack = Struct(f">{self._size - FIXED_SIZES[length]}x{code}").unpack_from if length else None
        self._items = Slot(", ".join(self._builders), self._kind) if fields else None
        self.slots = [*([self._items] if self._items else []), *(content.slots if content else ())]

    @property
    def packed(self) -> Packed | None:
        """The fields as elements of an array; None if content follows them."""
        return Packed(self._size, self._items) if self._content is None else None

    def _lengths(self, items: Vector) -> INT64:
        lengths = items.view(self._item)[_LENGTH] if self._items else items
        return lengths.astype(np.int64)

    def scan(self, cursor: Cursor, notes: SlotVectors) -> None:
        items = cursor.peek(self._kind)
        if self._items:
            notes[self._items] = items
        if self._content is None:
            cursor.need(self._size)
        else:
            self._content.scan(cursor, self._size, self._lengths(items), notes)

    def build(self, scanned: Scanned, members: Members) -> None:
        if self._items:
            self._fill(scanned.vector(self._items), members)
        if self._content is not None:
            self._content.build(scanned, members)

    def _fill(self, items: Vector, members: Members) -> None:
        fields = items.view(self._item)
        for name, build in self._builders.items():
            members[name] = build(fields[name])

    def read(self, cursor: Cursor, members: Members) -> None:
        items = cursor.peek(self._kind)
        if self._content is None:
            cursor.need(self._size)
        else:
            self._content.read(cursor, self._size, self._lengths(items), members)
        if self._items:
            self._fill(items, members)

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
    """A compact length, which is an unsigned varint with the length plus one, and the content after it."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self.slots = content.slots

    def scan(self, cursor: Cursor, notes: SlotVectors) -> None:
        self._content.scan(cursor, 0, self._lengths(cursor), notes)

    def build(self, scanned: Scanned, members: Members) -> None:
        self._content.build(scanned, members)

    def read(self, cursor: Cursor, members: Members) -> None:
        self._content.read(cursor, 0, self._lengths(cursor), members)

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
    """The unsigned varint at a position, and the position after it."""
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
    """Text (at most 32767 bytes of UTF-8) or bytes."""

    def __init__(self, name: str, is_text: bool, nullable: bool) -> None:
        self._name = name
        self._nullable = nullable
        self._make = texts if is_text else raw_bytes
        self.longest = MAX_STRING if is_text else MAX_INT32
        self._starts = Slot(f"{name}: starts", "i4")
        self._stops = Slot(f"{name}: stops", "i4")
        self._present = Slot(f"{name}: present", "?")
        self.slots = [self._starts, self._stops, *([self._present] if nullable else [])]

    def scan(self, cursor: Cursor, size: int, lengths: INT64, notes: SlotVectors) -> None:
        lengths, valid = existing(cursor, lengths, self._nullable)
        slices = cursor.slices(size, lengths)
        notes[self._starts] = slices.starts
        notes[self._stops] = slices.stops
        if self._nullable:
            notes[self._present] = present(valid, len(lengths))

    def build(self, scanned: Scanned, members: Members) -> None:
        valid = scanned.vector(self._present) if self._nullable else None
        slices = scanned.slices(self._starts, self._stops)
        members[self._name] = self._make(scanned, slices, None if valid is None or valid.all() else valid)

    def read(self, cursor: Cursor, size: int, lengths: INT64, members: Members) -> None:
        lengths, valid = existing(cursor, lengths, self._nullable)
        members[self._name] = self._make(cursor, cursor.slices(size, lengths), valid)

    def skip(self, cursor: Cursor, size: int, lengths: INT64) -> None:
        cursor.slices(size, existing(cursor, lengths, self._nullable)[0])

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
    """Reads a struct that is never null."""

    def __init__(self, name: str, plan: Plan) -> None:
        self._name = name
        self._plan = plan
        self.slots = plan.slots

    def scan(self, cursor: Cursor, notes: SlotVectors) -> None:
        self._plan.scan(cursor, notes)

    def build(self, scanned: Scanned, members: Members) -> None:
        members[self._name] = self._plan.build(scanned)

    def read(self, cursor: Cursor, members: Members) -> None:
        members[self._name] = self._plan.read(cursor)

    def skip(self, cursor: Cursor) -> None:
        self._plan.skip(cursor)

    def hop(self, data: Any, pos: int, end: int) -> int:
        return self._plan.hop(data, pos, end)


class Nullable:
    """A struct that may be null: its first byte is 1 if a struct follows, and otherwise `null` (-1, or 0 in a tagged
    field).

    Only positions are noted: `build` reads the structs that are not null as if they were rows.
    """

    def __init__(self, name: str, plan: Plan, null: int) -> None:
        self._name = name
        self._plan = plan
        self._null = null & 0xFF
        self._positions = Slot(f"{name}: positions", "i8")
        self._present = Slot(f"{name}: present", "?")
        self.slots = [self._positions, self._present]

    def _marks(self, cursor: Cursor) -> FLAGS:
        """Move past the byte. Returns flags for the elements that have a struct."""
        marks = cursor.bytes()
        there = marks == 1
        cursor.fail_where(~there & (marks != self._null))
        return cursor.live(there)

    def scan(self, cursor: Cursor, notes: SlotVectors) -> None:
        there = self._marks(cursor)
        notes[self._positions] = cursor.pos
        notes[self._present] = there
        self._skip(cursor, np.flatnonzero(there))

    def build(self, scanned: Scanned, members: Members) -> None:
        pos, there = scanned.vector(self._positions), scanned.vector(self._present)
        index = np.flatnonzero(scanned.live(there))
        values = self._plan.read(scanned.inside(pos[index], index))
        members[self._name] = self._spread(values, index, len(scanned))

    def read(self, cursor: Cursor, members: Members) -> None:
        there = self._marks(cursor)
        if there.all():
            members[self._name] = self._plan.read(cursor)
            return
        index = np.flatnonzero(there)
        some = cursor.select(index)
        members[self._name] = self._spread(self._plan.read(some), index, len(cursor))
        cursor.adopt(some, index)

    @staticmethod
    def _spread(values: pa.Array, index: INT64, count: int) -> pa.Array:
        """An array of `count` elements with `values` at `index`, and null elsewhere."""
        places = np.full(count, -1)
        places[index] = np.arange(len(index))
        return at(values, places)

    def skip(self, cursor: Cursor) -> None:
        self._skip(cursor, np.flatnonzero(self._marks(cursor)))

    def _skip(self, cursor: Cursor, index: INT64) -> None:
        some = cursor.select(index)
        self._plan.skip(some)
        cursor.pos = cursor.pos.copy()  # copy the array, because `adopt` writes into it and notes may refer to it
        cursor.adopt(some, index)

    def hop(self, data: Any, pos: int, end: int) -> int:
        if pos >= end:
            raise Broken
        mark = data[pos]
        if mark == 1:
            return self._plan.hop(data, pos + 1, end)
        if mark != self._null:
            raise Broken
        return pos + 1
