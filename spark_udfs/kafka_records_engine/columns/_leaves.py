"""Builds Arrow arrays from the values in the row buffer: numbers, uuids, text and bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._cursor import ElementSet, Slices, Vector
from kafka_records_engine.columns.arrow_arrays import KEPT_ROWS, TooMuchForOneArray, bitmap, validity
from kafka_records_engine.numpy_types import FLAGS
from kafka_records_runtime.wire.primitives import MAX_INT32

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_PAIRS: Final = np.frombuffer(b"".join(bytes((high, low)) for high in _ALPHABET for low in _ALPHABET), np.uint16)
"""The two base64 characters of every 12-bit number."""

_UUID_TEXT: Final = 22
_MOST_UUIDS: Final = MAX_INT32 // _UUID_TEXT


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
    """Kafka's text form of uuids: 22 characters of base64 for URLs (`org.apache.kafka.common.Uuid.toString`).

    Raises TooMuchForOneArray.
    """
    count = len(vector)
    if count > _MOST_UUIDS:
        raise TooMuchForOneArray
    halves = np.ascontiguousarray(vector).view(">u8").reshape(count, 2)
    high, low = halves[:, 0].astype(np.uint64), halves[:, 1].astype(np.uint64)
    # Twelve bits become two characters: five pairs from the upper half, one across both halves, four from the lower
    # half. The last eight bits also become two characters.
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
"""The numpy type for the bytes of each spec type."""

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
"""For each spec type, the function that builds an array from a vector read with WIRE_WIDTHS."""


# -- bytes and text ---------------------------------------------------------------------------------


class _Odd:
    """The odd numbers 1, 3, 5, … as an Arrow array."""

    def __init__(self) -> None:
        self._kept = self._make(KEPT_ROWS)

    @staticmethod
    def _make(count: int) -> pa.Array:
        return pa.array(np.arange(1, 2 * count, 2, dtype=np.int32 if count < 1 << 30 else np.int64))

    def first(self, count: int) -> pa.Array:
        return self._kept.slice(0, count) if count <= KEPT_ROWS else self._make(count)


_ODD: Final = _Odd()
_NOTHING: Final = pa.py_buffer(b"")


def _copied(elements: ElementSet, slices: Slices) -> tuple[pa.Buffer, pa.Buffer]:
    """Offsets and content of a binary array with the slice of each element; empty for dead elements.

    With alternating starts and stops as offsets, the row buffer becomes a binary array in which every second element is
    a slice. The other elements are the bytes between slices. Their lengths may be negative, but `take` uses only the
    slices, and copies them in C.
    """
    count, buffer = len(elements), elements.block.buffer
    starts, stops, order = slices
    if elements.dead is not None:
        starts, stops = (np.where(elements.dead, 0, each) for each in slices.by_element())
        order = None
    total = int(stops.sum(dtype=np.int64) - starts.sum(dtype=np.int64))
    if not total:
        return pa.py_buffer(np.zeros(count + 1, np.int32)), _NOTHING
    places = np.empty(2 * count + 2, np.int32)
    places[0] = 0
    places[1:-1:2] = starts
    places[2::2] = stops
    # Arrow allocates memory based on the mean length of all elements, so the last offset must be realistic.
    places[-1] = min(buffer.size, 2 * total + total // count + 1)
    both = pa.Array.from_buffers(pa.binary(), 2 * count + 1, [None, pa.py_buffer(places), buffer], 0)
    _, offsets, content = both.take(_ODD.first(count) if order is None else pa.array(2 * order + 1)).buffers()
    return offsets, content


def items(elements: ElementSet, slices: Slices, size: int) -> Vector:
    """The slices of elements, concatenated and split into items of `size` bytes."""
    return np.frombuffer(_copied(elements, slices)[1], f"V{size}")


def raw_bytes(elements: ElementSet, slices: Slices, valid: FLAGS | None) -> pa.Array:
    """A binary array with the slices of elements."""
    offsets, content = _copied(elements, slices)
    return pa.Array.from_buffers(pa.binary(), len(elements), [validity(valid), offsets, content])


def texts(elements: ElementSet, slices: Slices, valid: FLAGS | None) -> pa.Array:
    """A string array with the slices of elements. Elements whose bytes are not UTF-8 become dead."""
    offsets, content = _copied(elements, slices)
    if content.size and np.frombuffer(content, np.uint8).max() >= 0x80:
        wrong = _not_utf8(pa.Array.from_buffers(pa.binary(), len(elements), [None, offsets, content]))
        if wrong:
            elements.fail_at(np.array(wrong))
            return texts(elements, slices, valid)
    return pa.Array.from_buffers(pa.string(), len(elements), [validity(valid), offsets, content])


_FEW: Final = 8


def _not_utf8(raw: pa.Array, first: int = 0) -> list[int]:
    """The elements of a binary array that are not UTF-8. It repeatedly halves an array that Arrow rejects."""
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        if len(raw) > _FEW:
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
