"""Converts every Arrow layout of a binary column to one form: a buffer with the start and end of every row.

The bytes are copied only if a layout has no common buffer (`binary_view`) or no offsets (`fixed_size_binary`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafka_records_engine.columns.arrow_arrays import flags
from kafka_records_engine.numpy_types import FLAGS, INT64

_SLACK: Final = 256
"""A piece keeps this many bytes after the last row, if the column has them, so that an item that begins in the last row
and ends after it can be read like any other."""

MOST_BYTES: Final = 2**31 - 1 - _SLACK
"""The maximum size of one piece, given 32-bit offsets."""


_NUMBERS: Final = np.arange(1 << 16)
_NUMBERS.flags.writeable = False


def numbered(count: int) -> INT64:
    """The numbers 0, 1, 2, …; the array must not be modified."""
    return _NUMBERS[:count] if count <= len(_NUMBERS) else np.arange(count)


@dataclass(frozen=True, slots=True)
class ColumnPiece:
    """Rows of a column in `buffer`: row i is `data[starts[i]:ends[i]]`, or null if `valid[i]` is false.

    `valid` is None if no row is null. The last row ends at `last`; other bytes may follow it.
    """

    buffer: pa.Buffer
    data: NDArray[np.uint8]
    starts: INT64
    ends: INT64
    valid: FLAGS | None
    last: int

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, rows: INT64) -> tuple[INT64, INT64]:
        """Starts and ends of the given rows, which must be in order."""
        if len(rows) == len(self.starts):
            return self.starts, self.ends
        return self.starts[rows], self.ends[rows]

    def present(self) -> INT64:
        """The rows that are not null."""
        return numbered(len(self)) if self.valid is None else np.flatnonzero(self.valid)

    def row(self, index: int) -> bytes:
        """The bytes of a row."""
        return self.data[self.starts[index] : self.ends[index]].tobytes()


def pieces(column: Any) -> Iterator[ColumnPiece]:
    """The rows of a binary column (array or chunked array) as pieces, in order.

    Accepts binary, large_binary, binary_view, fixed_size_binary, null and the string types with the same layouts,
    sliced or not, and raises TypeError for anything else. A piece is a chunk, or part of a chunk that has more than
    MOST_BYTES.
    """
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        raise TypeError(f"a column of encoded messages must be an Arrow array, not {type(column).__name__}")
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for chunk in chunks:
        yield from _pieces(chunk)


def _pieces(array: pa.Array) -> Iterator[ColumnPiece]:
    kind = array.type
    if pa.types.is_binary_view(kind) or pa.types.is_string_view(kind) or pa.types.is_fixed_size_binary(kind):
        array = _in_one_buffer(array)
        kind = array.type
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        width: np.dtype[Any] = np.dtype(np.int32)
    elif pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        width = np.dtype(np.int64)
    elif pa.types.is_null(kind):
        yield from _pieces(array.cast(pa.binary()))
        return
    else:
        raise TypeError(f"a column of encoded messages must be binary, not {kind}")
    count = len(array)
    if not count:
        return
    _, places, content = array.buffers()
    offsets = np.frombuffer(places, width, count + 1, array.offset * width.itemsize).astype(np.int64)
    valid = flags(array.is_valid()) if array.null_count else None
    buffer = pa.py_buffer(b"") if content is None else content
    for first, last in _ranges(offsets):
        yield _piece(buffer, offsets[first : last + 1], None if valid is None else valid[first:last])


def _in_one_buffer(array: pa.Array) -> pa.Array:
    try:
        return array.cast(pa.large_binary())
    except pa.ArrowNotImplementedError:  # the oldest supported pyarrow cannot cast views
        return pa.array(array.to_pylist(), pa.large_binary())


def _ranges(offsets: INT64) -> Iterator[tuple[int, int]]:
    """Ranges of rows (the first one, and the one after the last) with at most MOST_BYTES. A larger row has its own
    range."""
    first, count = 0, len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + MOST_BYTES, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        first = last


def _piece(buffer: pa.Buffer, offsets: INT64, valid: FLAGS | None) -> ColumnPiece:
    base, stop = int(offsets[0]), int(offsets[-1])
    part = buffer.slice(base, min(stop + _SLACK, buffer.size) - base)
    places = offsets - base if base else offsets
    return ColumnPiece(part, np.frombuffer(part, np.uint8), places[:-1], places[1:], valid, stop - base)
