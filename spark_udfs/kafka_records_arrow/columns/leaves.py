"""Arrow arrays out of numpy vectors: the last step of everything that is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafka_records_arrow.columns.cursor import Cursor
from kafka_records_arrow.types import TooMuchForOneArray
from kafka_records_arrow.varints import FLAGS, INT64

Vector = NDArray[Any]

_CHUNK: Final = 1 << 16
"""Rows up to which constant arrays and index vectors are kept for the next batch."""

_ALPHABET: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
_UUID_TEXT: Final = 22


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
    """Kafka's text of a uuid: 22 characters of base64 for URLs (`org.apache.kafka.common.Uuid.toString`)."""
    count = len(vector)
    groups = np.zeros((count, 6, 3), np.uint8)
    groups.reshape(count, 18)[:, :16] = np.ascontiguousarray(vector).view(np.uint8).reshape(count, 16)
    first, second, third = groups[..., 0], groups[..., 1], groups[..., 2]
    sextets = np.empty((count, 6, 4), np.uint8)
    sextets[..., 0] = first >> 2
    sextets[..., 1] = (first & 3) << 4 | second >> 4
    sextets[..., 2] = (second & 15) << 2 | third >> 6
    sextets[..., 3] = third & 63
    text = np.ascontiguousarray(_ALPHABET[sextets].reshape(count, 24)[:, :_UUID_TEXT])
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


class _Even:
    """0, 2, 4, … as an Arrow array."""

    def __init__(self) -> None:
        self._kept = self._make(_CHUNK)

    @staticmethod
    def _make(count: int) -> pa.Array:
        return pa.array(np.arange(0, 2 * count, 2, dtype=np.int32 if count < 1 << 30 else np.int64))

    def first(self, count: int) -> pa.Array:
        return self._kept.slice(0, count) if count <= _CHUNK else self._make(count)


_EVEN: Final = _Even()
_NOTHING: Final = pa.py_buffer(b"")


def _copied(buffer: pa.Buffer, starts: INT64, stops: INT64) -> tuple[pa.Buffer, pa.Buffer]:
    """Offsets and content of the bytes from `starts` to `stops`, which never go down.

    The row buffer with starts and stops in turn is a binary array of what is wanted and of what lies between, and
    taking every other element copies in C.
    """
    count = len(starts)
    if not count or not (stops != starts).any():
        return pa.py_buffer(np.zeros(count + 1, np.int32)), _NOTHING
    places = np.empty(2 * count, np.int32)
    places[0::2] = starts
    places[1::2] = stops
    both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(places), buffer], 0)
    _, offsets, content = both.take(_EVEN.first(count)).buffers()
    return offsets, content


def raw_bytes(cursor: Cursor, starts: INT64, stops: INT64, valid: FLAGS | None) -> pa.Array:
    """Binary array of spans in the rows of a cursor."""
    offsets, content = _copied(cursor.batch.buffer, *_without_dead(cursor, starts, stops))
    return pa.Array.from_buffers(pa.binary(), len(starts), [validity(valid), offsets, content])


def texts(cursor: Cursor, starts: INT64, stops: INT64, valid: FLAGS | None) -> pa.Array:
    """String array of spans in the rows of a cursor; elements that are no UTF-8 die."""
    offsets, content = _copied(cursor.batch.buffer, *_without_dead(cursor, starts, stops))
    if content.size and np.frombuffer(content, np.uint8).max() >= 0x80:
        wrong = _not_utf8(pa.Array.from_buffers(pa.binary(), len(starts), [None, offsets, content]))
        if wrong:
            cursor.fail_at(np.array(wrong))
            return texts(cursor, starts, stops, valid)
    return pa.Array.from_buffers(pa.string(), len(starts), [validity(valid), offsets, content])


def _without_dead(cursor: Cursor, starts: INT64, stops: INT64) -> tuple[INT64, INT64]:
    """Starts and stops that never go down, those of the dead included, which hold nothing."""
    if cursor.dead is None:
        return starts, stops
    stops = np.maximum.accumulate(np.where(cursor.dead, 0, stops))
    return np.where(cursor.dead, stops, starts), stops


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
    if not columns:
        return pa.Array.from_buffers(kind, count, [None], 0)
    return pa.StructArray.from_arrays(columns, fields=list(kind))


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
    """The elements of `array` at `places`; a negative place gives null."""
    missing = places < 0
    taken = array.take(pa.array(places, mask=missing if missing.any() else None))
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
