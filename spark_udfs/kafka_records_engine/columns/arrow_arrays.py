"""Builds Arrow arrays from numpy vectors and other arrays, for the engine and for code that adds columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64, INTEGERS
from kafka_records_runtime.errors import KafkaRecordsError

KEPT_ROWS: Final = 1 << 16
"""Constant arrays and index vectors with at most this many rows are cached for the next batch."""


class TooMuchForOneArray(KafkaRecordsError, ValueError):
    """The text or bytes of decoded rows exceed the 2 GiB that an Arrow array can hold."""

    def __str__(self) -> str:
        return "the decoded rows hold more than 2 GiB of text or bytes in one field: decode fewer rows at a time"


# -- flags ------------------------------------------------------------------------------------------


def bitmap(flags: FLAGS) -> pa.Buffer:
    """Flags in Arrow's bit-packed form."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def validity(valid: FLAGS | None) -> pa.Buffer | None:
    """The bitmap of the elements that are not null; None if no element is null."""
    return None if valid is None else bitmap(valid)


def flags(array: pa.Array) -> FLAGS:
    """A bool array without nulls as a numpy vector."""
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


# -- arrays of vectors ------------------------------------------------------------------------------


def numbers(kind: pa.DataType, vector: INTEGERS, valid: FLAGS | None = None) -> pa.Array:
    """An integer array of any width, with null in the rows where `valid` is false."""
    content = pa.py_buffer(vector.astype(f"i{kind.bit_width // 8}"))
    bits = None if valid is None or valid.all() else bitmap(valid)
    return pa.Array.from_buffers(kind, len(vector), [bits, content])


def lists(kind: pa.DataType, first: INT64, values: pa.Array, valid: FLAGS | None) -> pa.Array:
    """A list array whose element i is `values[first[i]:first[i + 1]]`."""
    places = pa.py_buffer(first.astype(np.int32))
    return pa.Array.from_buffers(kind, len(first) - 1, [validity(valid), places], children=[values])


def structs(kind: pa.StructType, columns: list[pa.Array], count: int) -> pa.StructArray:
    """A struct array without null elements."""
    return pa.Array.from_buffers(kind, count, [None], 0, children=columns)


# -- elements of arrays -----------------------------------------------------------------------------


def joined(arrays: list[pa.Array]) -> pa.Array:
    """The concatenated arrays. Raises TooMuchForOneArray."""
    try:
        return pa.concat_arrays(arrays)
    except pa.ArrowInvalid:  # the offsets have only 32 bits
        raise TooMuchForOneArray from None


def at(array: pa.Array, places: INT64) -> pa.Array:
    """The elements of `array` at `places`, with null for negative places. Raises TooMuchForOneArray."""
    missing = places < 0
    try:
        taken = array.take(pa.array(places, mask=missing if missing.any() else None))
    except pa.ArrowInvalid:  # the offsets have only 32 bits
        raise TooMuchForOneArray from None
    return without_inner_nulls(taken)


def without_inner_nulls(array: pa.Array) -> pa.Array:
    """The same values, without nulls in members that are declared not null but belong to null structs.

    Arrow puts a null into every member of a null struct. Parquet writers reject that if the member is declared not
    null. Its bytes are zero or empty, so its bitmap can be dropped without copying.
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


# -- columns that say the same in nearly every row --------------------------------------------------


class Constant:
    """An array that repeats one value. It is cached for the next batch."""

    def __init__(self, kind: pa.DataType, value: Any) -> None:
        self._kept = without_inner_nulls(pa.array([value], kind))

    def times(self, count: int) -> pa.Array:
        """An array that repeats the value `count` times."""
        # read the attribute only once, because another thread may replace the array with a shorter one
        kept = self._kept
        if count <= len(kept):
            return kept.slice(0, count)
        longer = at(kept, np.zeros(count, np.int64))
        if count <= KEPT_ROWS:
            self._kept = longer
        return longer


def sparse(usual: Constant, others: Mapping[int, Any], count: int) -> pa.Array:
    """An array with the value `usual` in all rows except those listed in `others` with their values."""
    if not others:
        return usual.times(count)
    one = usual.times(1)
    places = np.zeros(count, np.int64)
    places[list(others)] = np.arange(1, len(others) + 1)
    return at(joined([one, pa.array(list(others.values()), one.type)]), places)


_NO_BYTES: Final = Constant(pa.binary(), None)


def bytes_of(array: pa.Array, which: FLAGS) -> pa.Array:
    """The bytes of the selected rows; null in all other rows."""
    if not which.any():
        return _NO_BYTES.times(len(array))
    if pa.types.is_binary_view(array.type):  # `take` does not support views
        array = array.cast(pa.large_binary())
    rows = np.flatnonzero(which)
    places = np.full(len(array), -1)
    places[rows] = np.arange(len(rows))
    return at(array.take(pa.array(rows)).cast(pa.binary()), places)
