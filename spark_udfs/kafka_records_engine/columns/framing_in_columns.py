"""Parses framing (`kafka_records_runtime.records.framing`) for many rows at a time: the int16 at the start of each key
or value, and the frames of metadata records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.columns._cursor import Cursor, RowBlock
from kafka_records_engine.columns._pieces import ColumnPiece, pieces
from kafka_records_engine.columns.arrow_arrays import flags
from kafka_records_engine.numpy_types import FLAGS, INT16, INT64
from kafka_records_runtime.errors import FramingError
from kafka_records_runtime.records.framing import (
    FRAME_VERSION,
    METADATA,
    MOST_IN_FRAME,
    PREFIX,
    Framing,
    end_frame,
    message_start,
    start_frame,
)

PREFIX_BYTES: Final = PREFIX.size
"""The number of bytes before each message."""


def prefixes(piece: ColumnPiece, rows: INT64) -> tuple[INT64, INT16, INT64]:
    """Find which of the given rows have a prefix. Returns these rows, their prefixes, and the rows that are too short
    for a prefix."""
    starts, ends = piece.of(rows)
    long = ends - starts >= PREFIX_BYTES
    short = rows[:0]
    if not long.all():
        short, rows, starts = rows[~long], rows[long], starts[long]
    return rows, _read(piece, starts), short


def prefix_column(column: pa.Array) -> tuple[INT16, FLAGS]:
    """The prefix of each row of a binary column (0 for rows without one), and flags for the rows that have one."""
    found = [_of_all_rows(piece) for piece in pieces(column)]
    if len(found) == 1:
        return found[0]
    nothing = np.zeros(0, np.int16), np.zeros(0, np.bool_)
    numbers, has_prefix = zip(nothing, *found, strict=True)
    return np.concatenate(numbers), np.concatenate(has_prefix)


def _of_all_rows(piece: ColumnPiece) -> tuple[INT16, FLAGS]:
    starts = piece.starts
    long = piece.ends - starts >= PREFIX_BYTES
    if piece.valid is not None:
        long &= piece.valid
    if long.all():
        return _read(piece, starts), long
    numbers = _read(piece, np.where(long, starts, 0))
    numbers[~long] = 0
    return numbers, long


def _read(piece: ColumnPiece, starts: INT64) -> INT16:
    return RowBlock(piece.buffer, piece.data, 0).at(PREFIX.format, starts).astype(np.int16)


def prefix_bytes(column: pa.Array) -> pa.Array:
    """The prefix of each row as bytes.

    Rows that are too short and null rows stay unchanged, so they can be told apart.
    """
    return pc.binary_slice(column, 0, PREFIX_BYTES)


def messages(column: pa.Array) -> pa.Array:
    """The bytes of each row after its prefix; empty if the row is too short for one."""
    # Without an explicit end, Arrow 26 rejects some columns: "Negative buffer resize".
    longest = pc.max(pc.binary_length(column)).as_py() or 0
    return pc.binary_slice(column, PREFIX_BYTES, max(longest, PREFIX_BYTES))


# -- the frames of metadata records ------------------------------------------------------------------------------------


@dataclass
class FrameNumbers:
    """A number from the frames of given rows: `rows`, in order, their `numbers`, and the position after each (`ends`).

    `errors` says why the other requested rows have no number.
    """

    rows: INT64
    numbers: INT64
    ends: INT64
    errors: dict[int, FramingError] = field(default_factory=dict)


def api_keys(piece: ColumnPiece, rows: INT64) -> FrameNumbers:
    """The api keys of the given values, none of which is null."""
    starts, ends = piece.of(rows)
    cursor = Cursor(RowBlock(piece.buffer, piece.data, len(rows)), starts, ends)
    is_known = cursor.uvarints() == FRAME_VERSION
    return _numbers(cursor, rows, is_known, lambda row: start_frame(None, piece.row(row)))


def frame_versions(piece: ColumnPiece, found: FrameNumbers) -> FrameNumbers:
    """The versions that follow the api keys in `found`."""
    rows = found.rows
    cursor = Cursor(RowBlock(piece.buffer, piece.data, len(rows)), found.ends, piece.ends[rows])
    starts = dict(zip(rows.tolist(), (found.ends - piece.starts[rows]).tolist(), strict=True))
    return _numbers(cursor, rows, np.ones(len(rows), np.bool_), lambda row: end_frame(piece.row(row), starts[row]))


def _numbers(cursor: Cursor, rows: INT64, is_good: FLAGS, read: Callable[[int], tuple[int, int]]) -> FrameNumbers:
    """The next number in each row. `read` returns the error for a row without one."""
    numbers = cursor.uvarints()
    is_good = is_good & ~cursor.block.failed & (numbers <= MOST_IN_FRAME)
    if is_good.all():
        return FrameNumbers(rows, numbers, cursor.pos)
    errors = {}
    for row in rows[~is_good].tolist():
        try:
            read(row)
        except FramingError as error:
            errors[row] = error
    return FrameNumbers(rows[is_good], numbers[is_good], cursor.pos[is_good], errors)


def behind(piece: ColumnPiece, found: FrameNumbers) -> ColumnPiece:
    """The same piece, except that each row in `found` begins after the number that was read."""
    starts = piece.starts.copy()
    starts[found.rows] = found.ends
    return replace(piece, starts=starts)


def type_column(framing: Framing, keys: pa.Array, values: pa.Array) -> tuple[INT16, FLAGS]:
    """The record type of each row (0 for rows without one), and flags for the rows that have one."""
    if framing != METADATA:
        return prefix_column(keys)
    types = frame_numbers(keys, values)[0]
    return types.fill_null(0).to_numpy(), flags(types.is_valid())


def api_key_column(keys: pa.Array, values: pa.Array) -> INT16:
    """The api key of each row; -1 if it cannot be read or the row has a key."""
    numbers = np.full(len(keys), -1, np.int16)
    first = 0
    for piece in pieces(values):
        found = api_keys(piece, piece.present())
        numbers[first + found.rows] = found.numbers
        first += len(piece)
    if keys.null_count < len(keys):
        numbers[flags(keys.is_valid())] = -1
    return numbers


def frame_numbers(keys: pa.Array, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The api key and the version of each row; null if they cannot be read or the row has a key."""
    count = len(keys)
    numbers, lacks = np.zeros((2, count), np.int16), np.ones((2, count), np.bool_)
    first = 0
    for piece in pieces(values):
        types = api_keys(piece, piece.present())
        for place, found in enumerate((types, frame_versions(piece, types))):
            numbers[place, first + found.rows] = found.numbers
            lacks[place, first + found.rows] = False
        first += len(piece)
    lacks |= flags(keys.is_valid())
    types_array, versions = (pa.array(numbers[place], mask=lacks[place]) for place in (0, 1))
    return types_array, versions


def begins_with(keys: pa.Array, texts: Iterable[bytes]) -> pa.BooleanArray:
    """Flags for keys whose message begins with one of these strings (`message_start`), for any record type."""
    of_length: defaultdict[int, list[bytes]] = defaultdict(list)
    for start in map(message_start, texts):
        if start is not None:
            of_length[len(start)].append(start)
    found = [
        pc.is_in(pc.binary_slice(keys, PREFIX_BYTES, PREFIX_BYTES + length), pa.array(starts, keys.type))
        for length, starts in of_length.items()
    ]
    return pc.fill_null(reduce(pc.or_, found), False) if found else pa.array(np.zeros(len(keys), np.bool_))
