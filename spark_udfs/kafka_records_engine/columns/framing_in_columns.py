"""Framing (`kafka_records_runtime.framing`) for many rows at a time: the int16 that each key or value starts with."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.columns._cursor import RowBlock
from kafka_records_engine.columns._pieces import ColumnPiece, pieces
from kafka_records_engine.numpy_types import FLAGS, INT16, INT64
from kafka_records_runtime.framing import PREFIX, message_start

PREFIX_BYTES: Final = PREFIX.size
"""The bytes before each message."""


def prefixes(piece: ColumnPiece, rows: INT64) -> tuple[INT64, INT16, INT64]:
    """Of some rows: those that have a prefix, the prefixes, and the rows that are too short for one."""
    starts, ends = piece.of(rows)
    long = ends - starts >= PREFIX_BYTES
    short = rows[:0]
    if not long.all():
        short, rows, starts = rows[~long], rows[long], starts[long]
    return rows, _read(piece, starts), short


def prefix_column(column: pa.Array) -> tuple[INT16, FLAGS]:
    """The prefix of each row of a binary column, and which rows have one. The others have 0."""
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
    """Each row cut off behind its prefix. Rows without one stay as they are, so that null and short ones are told
    apart."""
    return pc.binary_slice(column, 0, PREFIX_BYTES)


def messages(column: pa.Array) -> pa.Array:
    """The bytes of each row behind its prefix; none where a row is too short for one."""
    # Without an end, Arrow 26 refuses some columns: "Negative buffer resize".
    longest = pc.max(pc.binary_length(column)).as_py() or 0
    return pc.binary_slice(column, PREFIX_BYTES, max(longest, PREFIX_BYTES))


def begins_with(keys: pa.Array, texts: Iterable[bytes]) -> pa.BooleanArray:
    """Whether the message of each key begins with one of these strings (`message_start`), whatever its record type."""
    starts = [start for start in map(message_start, texts) if start is not None]
    found = [pc.equal(pc.binary_slice(keys, PREFIX_BYTES, PREFIX_BYTES + len(start)), start) for start in starts]
    return pc.fill_null(reduce(pc.or_, found), False) if found else pa.array(np.zeros(len(keys), np.bool_))
