"""FlatBuffers, the format of Arrow's metadata. Every position is checked before it is read, so any bytes are safe to
read.

A table starts with the distance back to its vtable. The vtable contains the sizes of both, and the position of each
field in the table, or 0 if the field has its default. Nested strings, vectors and tables are distances forward.
https://flatbuffers.dev/internals/
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error
from typing import Any, Final, TypeVar

import pyarrow as pa

_U16: Final = Struct("<H")
_I32: Final = Struct("<i")
_U32: Final = Struct("<I")
_SHAPES: Final = {shape: Struct(f"<{shape}") for shape in "?bBhHiIq"}

T = TypeVar("T")


def root(data: bytes) -> FlatTable:
    """The root table of a FlatBuffers buffer. Raises pa.ArrowInvalid if it is damaged."""
    return FlatTable(data, _unpacked(_U32, data, 0))


class FlatTable:
    """One table in a buffer. A position outside of the buffer raises pa.ArrowInvalid."""

    __slots__ = ("_at", "_data", "_places")

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        vtable = at - _unpacked(_I32, data, at)
        size, table_size = _unpacked(_U16, data, vtable), _unpacked(_U16, data, vtable + 2)
        if size < 4 or size % 2 or vtable + size > len(data) or at + table_size > len(data):
            raise pa.ArrowInvalid(f"the table at byte {at} of the metadata runs past its end")
        self._places = tuple(_unpacked(_U16, data, vtable + place) for place in range(4, size, 2))
        if any(place >= table_size for place in self._places if place):
            raise pa.ArrowInvalid(f"the table at byte {at} of the metadata has a field after its end")

    def number(self, slot: int, shape: str, default: int = 0) -> int:
        """The number in the field `slot`; `shape` is one letter of the module `struct`."""
        at = self._field(slot)
        return default if at is None else int(_unpacked(_SHAPES[shape], self._data, at))

    def table(self, slot: int) -> FlatTable | None:
        """The table in the field `slot`."""
        at = self._field(slot)
        return None if at is None else FlatTable(self._data, self._behind(at))

    def text(self, slot: int) -> str | None:
        """The string in the field `slot`."""
        at = self._field(slot)
        if at is None:
            return None
        start, count = self._vector(at, 1)
        try:
            return self._data[start : start + count].decode()
        except UnicodeDecodeError as wrong:
            raise pa.ArrowInvalid(f"the metadata has a name that is not UTF-8: {wrong}") from None

    def tables(self, slot: int) -> Iterator[FlatTable]:
        """The tables of the vector in the field `slot`."""
        at = self._field(slot)
        start, count = (0, 0) if at is None else self._vector(at, 4)
        for place in range(start, start + 4 * count, 4):
            yield FlatTable(self._data, self._behind(place))

    def structs(self, slot: int, shape: Struct) -> list[tuple[Any, ...]]:
        """The structs of the vector in the field `slot`."""
        at = self._field(slot)
        start, count = (0, 0) if at is None else self._vector(at, shape.size)
        return list(shape.iter_unpack(self._data[start : start + shape.size * count]))

    def _field(self, slot: int) -> int | None:
        place = self._places[slot] if slot < len(self._places) else 0
        return self._at + place if place else None

    def _behind(self, at: int) -> int:
        return at + _unpacked(_U32, self._data, at)

    def _vector(self, at: int, width: int) -> tuple[int, int]:
        """Where the items of a vector start, and their number."""
        start = self._behind(at)
        count = _unpacked(_U32, self._data, start)
        if start + 4 + width * count > len(self._data):
            raise pa.ArrowInvalid(f"the vector at byte {start} of the metadata runs past its end")
        return start + 4, count


def _unpacked(shape: Struct, data: bytes, at: int) -> int:
    try:
        if at >= 0:
            return int(shape.unpack_from(data, at)[0])
    except error:
        pass
    raise pa.ArrowInvalid(f"the metadata refers to byte {at}, but is only {len(data)} bytes long")
