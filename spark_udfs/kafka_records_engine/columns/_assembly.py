"""Decodes rows of one or more versions into one column: first with vector code, then with the schema walker for rows
that the vector code rejects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._arrow_types import arrow_type
from kafka_records_engine.columns._cursor import Cursor, RowBlock
from kafka_records_engine.columns._pieces import MOST_BYTES, ColumnPiece
from kafka_records_engine.columns._plans import message_plan
from kafka_records_engine.columns.arrow_arrays import at, joined, without_inner_nulls
from kafka_records_engine.columns.walker_values import ToPlain, holds_unknown_tags, plain_values
from kafka_records_engine.numpy_types import FLAGS, INT64, INTEGERS
from kafka_records_runtime.errors import DecodeError, FramingError, UnsupportedVersion
from kafka_records_runtime.records.framing import bytes_behind
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.schema.layout import versions_of
from kafka_records_runtime.wire import walker

BLOCK: Final = 32 << 20
"""The number of bytes of rows to decode together. It limits the memory for notes about their elements."""


@dataclass
class Columns:
    """A decoded column, with an element per row.

    - `values`: null if the row is null or cannot be decoded.
    - `errors`: for each row that cannot be decoded, why.
    - `leniencies`: for each row, what Kafka accepts but a strict reader would reject (only up to the error if there is
      one).
    - `bytes_left`: the number of bytes after the message.
    - `has_unknown_tags`: whether the row has tagged fields, at any depth, that the schema does not define.
    """

    values: pa.StructArray
    bytes_left: INT64
    has_unknown_tags: FLAGS
    errors: dict[int, DecodeError | FramingError] = field(default_factory=dict)
    leniencies: dict[int, list[str]] = field(default_factory=dict)


def decode_rows(
    message: MessageSchema, piece: ColumnPiece, rows: INT64, versions: int | INTEGERS, skip: int, unknown_tags: bool
) -> Columns:
    """Decode some rows of a piece, each in its own version, after skipping the first `skip` bytes of each. All other
    rows become null.

    `rows` must be in order. `versions` is one number per row, or one number for all.
    """
    out = RowAssembly(message, unknown_tags, len(piece))
    if isinstance(versions, int):
        versions = np.full(min(len(rows), 1), versions)  # `split` also accepts one number for all rows
    lowest, highest = message.versions or (0, -1)
    if len(versions) and (versions.min() < lowest or versions.max() > highest):
        versions = np.broadcast_to(versions, len(rows))
        known = (versions >= lowest) & (versions <= highest)
        # Handle all such rows at once rather than version by version: hostile rows may contain thousands of versions.
        for row, version in zip(rows[~known].tolist(), versions[~known].tolist(), strict=True):
            out.errors[row] = UnsupportedVersion(message.name, version, versions_of(message))
        rows, versions = rows[known], versions[known]
    for version, chosen in split(rows, versions):
        out.add(piece, chosen, version, skip)
    return out.columns()


def refuse_bytes_behind(message: MessageSchema, piece: ColumnPiece, rows: INT64, versions: INT64, out: Columns) -> None:
    """Turn rows with bytes after their messages into errors.

    `piece` begins with the messages; `versions` contains one number for each of the decoded `rows`.
    """
    longer = out.bytes_left[rows] != 0
    if not longer.any():
        return
    places = np.arange(len(piece))
    for row, version in zip(rows[longer].tolist(), versions[longer].tolist(), strict=True):
        left = int(out.bytes_left[row])
        used = int(piece.ends[row] - piece.starts[row]) - left
        out.errors[row] = bytes_behind(message, version, used, left)
        places[row] = -1
    out.bytes_left = np.zeros(len(piece), np.int64)
    out.has_unknown_tags = out.has_unknown_tags & (places >= 0)
    out.values = at(out.values, places)


def split(rows: INT64, numbers: INTEGERS) -> Iterator[tuple[int, INT64]]:
    """Group rows by number. `numbers` is one number per row, or one number for all."""
    if not len(numbers):
        return
    if numbers.min() == numbers.max():
        yield int(numbers[0]), rows
        return
    for number in np.unique(numbers).tolist():
        yield number, rows[numbers == number]


@dataclass(frozen=True, slots=True)
class _DecodedRows:
    """Rows that were decoded together, in order. The vectors and the array have an element per row."""

    rows: INT64
    values: pa.StructArray
    left: INT64
    has_unknown: FLAGS


@dataclass(frozen=True, slots=True)
class _WalkedRow:
    """A row that only the schema walker could read."""

    row: int
    value: Any
    left: int
    has_unknown: bool


class RowAssembly:
    """Decodes the rows of a piece group by group, and restores their order."""

    def __init__(self, message: MessageSchema, unknown_tags: bool, count: int) -> None:
        self._message = message
        self._unknown_tags = unknown_tags
        self._count = count
        self._parts: list[_DecodedRows] = []
        self._walked: list[_WalkedRow] = []
        self._plain: ToPlain | None = None
        self.errors: dict[int, DecodeError | FramingError] = {}
        self._leniencies: dict[int, list[str]] = {}

    def add(self, piece: ColumnPiece, rows: INT64, version: int, skip: int) -> None:
        """Decode rows of one version, block by block."""
        if piece.last <= BLOCK:
            self._add(piece, rows, version, skip)
            return
        starts, ends = piece.of(rows)
        behind = np.cumsum(ends - starts)
        first = 0
        while first < len(rows):
            reached = int(behind[first - 1]) if first else 0
            last = max(int(np.searchsorted(behind, reached + BLOCK, side="right")), first + 1)
            self._add(piece, rows[first:last], version, skip)
            first = last

    def _add(self, piece: ColumnPiece, rows: INT64, version: int, skip: int) -> None:
        starts, ends = piece.of(rows)
        block = RowBlock(piece.buffer, piece.data, len(rows))
        cursor = Cursor(block, starts + skip, ends)
        if piece.last > MOST_BYTES:
            cursor.fail_where(ends - starts > MOST_BYTES)  # notes keep positions in 32 bits
        values = message_plan(self._message, version, self._unknown_tags).read(cursor)
        part = _DecodedRows(rows, values, ends - cursor.pos, block.unknown_tags)
        if block.failed.any():
            for row in rows[block.failed].tolist():
                self._walk(piece, row, version, skip)
            kept = np.flatnonzero(~block.failed)
            part = _DecodedRows(rows[kept], at(values, kept), part.left[kept], part.has_unknown[kept])
        self._parts.append(part)

    def _walk(self, piece: ColumnPiece, row: int, version: int, skip: int) -> None:
        leniencies: list[str] = []
        body = piece.row(row)[skip:]
        try:
            value, used = walker.decode(
                self._message, body, version, lenient=True, allow_trailing=True, leniencies=leniencies
            )
        except DecodeError as error:
            self.errors[row] = error
            _forget_frames(error)
        else:
            if self._plain is None:
                self._plain = plain_values(self._message, self._unknown_tags)
            self._walked.append(_WalkedRow(row, self._plain(value), len(body) - used, holds_unknown_tags(value)))
        if leniencies:
            self._leniencies[row] = leniencies

    def columns(self) -> Columns:
        if len(self._parts) == 1 and len(self._parts[0].rows) == self._count:
            part = self._parts[0]
            return Columns(part.values, part.left, part.has_unknown)
        kind = arrow_type(self._message, self._unknown_tags)
        if self._walked:
            self._parts.append(_together(self._walked, kind))
        left, has_unknown = np.zeros(self._count, np.int64), np.zeros(self._count, np.bool_)
        for part in self._parts:
            left[part.rows] = part.left
            has_unknown[part.rows] = part.has_unknown
        return Columns(self._values(kind), left, has_unknown, self.errors, self._leniencies)

    def _values(self, kind: pa.StructType) -> pa.StructArray:
        if not self._parts:
            return without_inner_nulls(pa.nulls(self._count, kind))
        rows = np.concatenate([part.rows for part in self._parts])
        whole = joined([part.values for part in self._parts])
        if len(rows) == self._count and (rows[:-1] < rows[1:]).all():
            return whole
        places = np.full(self._count, -1)
        places[rows] = np.arange(len(rows))
        return at(whole, places)


def _together(walked: list[_WalkedRow], kind: pa.StructType) -> _DecodedRows:
    return _DecodedRows(
        np.array([each.row for each in walked], np.int64),
        without_inner_nulls(pa.array([each.value for each in walked], kind)),
        np.array([each.left for each in walked], np.int64),
        np.array([each.has_unknown for each in walked], np.bool_),
    )


def _forget_frames(error: BaseException | None) -> None:
    """The frames' variables would keep all columns of these rows alive until the next garbage collection."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__
