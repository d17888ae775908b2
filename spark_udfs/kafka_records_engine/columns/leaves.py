"""Arrow arrays out of numpy vectors: the last step of everything that is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._cursor import Cursor, Vector
from kafka_records_engine.columns.arrow_types import TooMuchForOneArray
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_runtime.wire import MAX_INT32

_CHUNK: Final = 1 << 16
"""Rows up to which constant arrays and index vectors are kept for the next batch."""

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_PAIRS: Final = np.frombuffer(b"".join(bytes((high, low)) for high in _ALPHABET for low in _ALPHABET), np.uint16)
"""The two characters for every 12 bits."""

_UUID_TEXT: Final = 22
_MOST_UUIDS: Final = MAX_INT32 // _UUID_TEXT


def bitmap(flags: FLAGS) -> pa.Buffer:
    """Flags as Arrow packs them."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def validity(valid: FLAGS | None) -> pa.Buffer | None:
    """The bitmap of nulls; None when there are none."""
    return None if valid is None else bitmap(valid)


def flags(array: pa.Array) -> FLAGS:
    """A bool array without nulls as numpy's."""
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


# -- fixed width -----------------------------------------------------------------------------------


def _number_builder(arrow: pa.DataType, width: str) -> Callable[[Vector], pa.Array]:
    native = np.dtype(width).newbyteorder("=")

    def build(vector: Vector) -> pa.Array:
        content = np.ascontiguousarray(vector, native)
        return pa.Array.from_buffers(arrow, len(vector), [None, pa.py_buffer(content)], 0)

    return build


def _bools(vector: Vector) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(vector), [None, bitmap(vector != 0)], 0)


def _uuids(vector: Vector) -> pa.Array:
    """Kafka's text of a uuid: 22 characters of base64 for URLs (`org.apache.kafka.common.Uuid.toString`).

    Raises TooMuchForOneArray.
    """
    count = len(vector)
    if count > _MOST_UUIDS:
        raise TooMuchForOneArray
    halves = np.ascontiguousarray(vector).view(">u8").reshape(count, 2)
    high, low = halves[:, 0].astype(np.uint64), halves[:, 1].astype(np.uint64)
    # Twelve bits are two characters: five times in the upper half, once across, and so on; eight bits are left.
    groups = [high >> shift & 0xFFF for shift in (52, 40, 28, 16, 4)]
    groups.append((high & 0xF) << 8 | low >> 56)
    groups += [low >> shift & 0xFFF for shift in (44, 32, 20, 8)]
    groups.append((low & 0xFF) << 4)
    text = np.empty((count, len(groups)), np.uint16)
    for place, group in enumerate(groups):
        text[:, place] = _PAIRS.take(group.view(np.int64))
    places = np.arange(0, (count + 1) * _UUID_TEXT, _UUID_TEXT, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(places), pa.py_buffer(text)], 0)


WIRE_WIDTHS: Final[Mapping[str, str]] = {
    "bool": "u1",
    "int8": "i1",
    "int16": ">i2",
    "uint16": ">u2",
    "int32": ">i4",
    "uint32": ">u4",
    "int64": ">i8",
    "float64": ">f8",
    "uuid": "V16",
}
"""Spec type → how numpy reads it from the wire."""

BUILDERS: Final[Mapping[str, Callable[[Vector], pa.Array]]] = {
    "bool": _bools,
    "int8": _number_builder(pa.int8(), "i1"),
    "int16": _number_builder(pa.int16(), "i2"),
    "uint16": _number_builder(pa.int32(), "i4"),
    "int32": _number_builder(pa.int32(), "i4"),
    "uint32": _number_builder(pa.int64(), "i8"),
    "int64": _number_builder(pa.int64(), "i8"),
    "float64": _number_builder(pa.float64(), "f8"),
    "uuid": _uuids,
}
"""Spec type → the array of a vector that was read with WIRE_WIDTHS."""


# -- bytes and text ---------------------------------------------------------------------------------


class _Odd:
    """1, 3, 5, … as an Arrow array."""

    def __init__(self) -> None:
        self._kept = self._make(_CHUNK)

    @staticmethod
    def _make(count: int) -> pa.Array:
        return pa.array(np.arange(1, 2 * count, 2, dtype=np.int32 if count < 1 << 30 else np.int64))

    def first(self, count: int) -> pa.Array:
        return self._kept.slice(0, count) if count <= _CHUNK else self._make(count)


_ODD: Final = _Odd()
_NOTHING: Final = pa.py_buffer(b"")


def _copied(cursor: Cursor, starts: INT64, stops: INT64) -> tuple[pa.Buffer, pa.Buffer]:
    """Offsets and content of the bytes from `starts` to `stops`, notes of the elements of a cursor.

    The row buffer with starts and stops in turn is a binary array of what is wanted and of what lies between, where
    elements may have lengths below zero. Only what is wanted is looked at, and copied in C.
    """
    count, order, buffer = len(cursor), cursor.order, cursor.batch.buffer
    if cursor.dead is not None:
        starts, stops = (np.where(cursor.dead, 0, cursor.in_order(note)) for note in (starts, stops))
        order = None
    total = int(stops.sum(dtype=np.int64) - starts.sum(dtype=np.int64))
    if not total:
        return pa.py_buffer(np.zeros(count + 1, np.int32)), _NOTHING
    places = np.empty(2 * count + 2, np.int32)
    places[0] = 0
    places[1:-1:2] = starts
    places[2::2] = stops
    # Arrow takes the mean of all elements for that of the wanted ones, and sets aside as much.
    places[-1] = min(buffer.size, 2 * total + total // count + 1)
    both = pa.Array.from_buffers(pa.binary(), 2 * count + 1, [None, pa.py_buffer(places), buffer], 0)
    _, offsets, content = both.take(_ODD.first(count) if order is None else pa.array(2 * order + 1)).buffers()
    return offsets, content


def items(cursor: Cursor, starts: INT64, stops: INT64, size: int) -> Vector:
    """What lies from `starts` to `stops` in the rows of a cursor, cut into items of `size` bytes."""
    return np.frombuffer(_copied(cursor, starts, stops)[1], f"V{size}")


def raw_bytes(cursor: Cursor, starts: INT64, stops: INT64, valid: FLAGS | None) -> pa.Array:
    """Binary array of spans in the rows of a cursor."""
    offsets, content = _copied(cursor, starts, stops)
    return pa.Array.from_buffers(pa.binary(), len(cursor), [validity(valid), offsets, content])


def texts(cursor: Cursor, starts: INT64, stops: INT64, valid: FLAGS | None) -> pa.Array:
    """String array of spans in the rows of a cursor; elements that are no UTF-8 die."""
    offsets, content = _copied(cursor, starts, stops)
    if content.size and np.frombuffer(content, np.uint8).max() >= 0x80:
        wrong = _not_utf8(pa.Array.from_buffers(pa.binary(), len(cursor), [None, offsets, content]))
        if wrong:
            cursor.fail_at(np.array(wrong))
            return texts(cursor, starts, stops, valid)
    return pa.Array.from_buffers(pa.string(), len(cursor), [validity(valid), offsets, content])


_LEAF: Final = 8


def _not_utf8(raw: pa.Array, first: int = 0) -> list[int]:
    """The elements of a binary array that are no UTF-8, found by halving what Arrow refuses."""
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        if len(raw) > _LEAF:
            half = len(raw) // 2
            return _not_utf8(raw.slice(0, half), first) + _not_utf8(raw.slice(half), first + half)
        return [first + place for place, each in enumerate(raw.to_pylist()) if not _is_utf8(each)]
    return []


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


# -- lists, constants, rows put together --------------------------------------------------------------


def lists(kind: pa.DataType, first: INT64, values: pa.Array, valid: FLAGS | None) -> pa.Array:
    """List array whose element i holds `values[first[i]:first[i + 1]]`."""
    places = pa.py_buffer(first.astype(np.int32))
    return pa.Array.from_buffers(kind, len(first) - 1, [validity(valid), places], children=[values])


def structs(kind: pa.StructType, columns: list[pa.Array], count: int) -> pa.StructArray:
    """Struct array without nulls."""
    return pa.Array.from_buffers(kind, count, [None], 0, children=columns)


class Constant:
    """An array that says the same any number of times, kept for the next batch."""

    def __init__(self, kind: pa.DataType, value: Any) -> None:
        self._kept = without_inner_nulls(pa.array([value], kind))

    def times(self, count: int) -> pa.Array:
        kept = self._kept  # once: another thread may put a shorter one there
        if count <= len(kept):
            return kept.slice(0, count)
        longer = at(kept, np.zeros(count, np.int64))
        if count <= _CHUNK:
            self._kept = longer
        return longer


def joined(arrays: list[pa.Array]) -> pa.Array:
    """Arrays one after the other. Raises TooMuchForOneArray."""
    try:
        return pa.concat_arrays(arrays)
    except pa.ArrowInvalid:  # offsets of 32 bits
        raise TooMuchForOneArray from None


def at(array: pa.Array, places: INT64) -> pa.Array:
    """The elements of `array` at `places`; a negative place gives null. Raises TooMuchForOneArray."""
    missing = places < 0
    try:
        taken = array.take(pa.array(places, mask=missing if missing.any() else None))
    except pa.ArrowInvalid:  # offsets of 32 bits
        raise TooMuchForOneArray from None
    return without_inner_nulls(taken)


def without_inner_nulls(array: pa.Array) -> pa.Array:
    """The same values, where members that are never null say so below null structs too.

    Arrow makes the members of a null struct null; writers of Parquet refuse that where a member is declared not null.
    The bytes below are zero and empty, so that only the bitmap has to go. No copy.
    """
    return _rebuilt(array, array.type, nullable=True)


def _rebuilt(array: pa.Array, kind: pa.DataType, nullable: bool) -> pa.Array:
    has_nulls = nullable and array.null_count > 0
    if pa.types.is_struct(kind):
        inner = [_rebuilt(array.field(i), kind.field(i).type, kind.field(i).nullable) for i in range(kind.num_fields)]
        valid = flags(array.is_valid()) if has_nulls else None
        return pa.Array.from_buffers(kind, len(array), [validity(valid)], children=inner)
    if not pa.types.is_list(kind) and (nullable or not array.null_count):
        return array
    bits, *others = array.buffers()[: 2 if pa.types.is_list(kind) else None]
    members = None
    if pa.types.is_list(kind):
        members = [_rebuilt(array.values, kind.value_type, kind.value_field.nullable)]
    kept = [bits if has_nulls else None, *others]
    return pa.Array.from_buffers(kind, len(array), kept, offset=array.offset, children=members)
