"""From rows of bytes to columns: vectors first, the schema walker for the rows that vectors refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._arrow_types import arrow_type
from kafka_records_engine.columns._cursor import Batch, Cursor
from kafka_records_engine.columns._pieces import MOST_BYTES, Spans, pieces
from kafka_records_engine.columns._plans import message_plan
from kafka_records_engine.columns.arrow_arrays import at, flags, joined, without_inner_nulls
from kafka_records_engine.columns.walker_values import Plain, holds_unknown_tags, plain_values
from kafka_records_engine.numpy_types import FLAGS, INT16, INT64, INTEGERS
from kafka_records_runtime import walker
from kafka_records_runtime.errors import DecodeError, FramingError, MissingValueVersion, UnsupportedVersion
from kafka_records_runtime.layout import versions_of
from kafka_records_runtime.schema import MessageSchema

BLOCK: Final = 32 << 20
"""Bytes of rows that are decoded together, which bounds what notes of their elements take."""

PREFIX: Final = 2
"""Bytes of the int16 that stands before a message: the version, or the type of the record."""


@dataclass
class Columns:
    """A decoded column, with an element per row.

    `values` is null where the row is null or could not be decoded. `errors` says by row what is wrong with those, and
    `leniencies` what a strict reader would have refused before that, or in rows that were decoded. `bytes_left` counts
    the bytes behind a message; `has_unknown_tags` says that a row had tagged fields which the schema does not define,
    at any depth.
    """

    values: pa.StructArray
    bytes_left: INT64
    has_unknown_tags: FLAGS
    errors: dict[int, DecodeError | FramingError] = field(default_factory=dict)
    leniencies: dict[int, list[str]] = field(default_factory=dict)


def decode_column(message: MessageSchema, data: Any, version: Any = None, *, unknown_tags: bool = False) -> Columns:
    """Decode a column of encoded messages as leniently as Kafka reads.

    Parameters
    ----------
    message
        Schema, from a generated `schemas.<folder>` module.
    data
        Array or chunked array: binary, large_binary, binary_view, fixed_size_binary, the string types, or null.
    version
        One int for all rows, or an integer array with one for each (null: the row counts as null). By default an int16
        version stands before each message, as in record values.
    unknown_tags
        Keep tagged fields that the schema does not define, as `unknown_tagged_fields` (see `arrow_type`).

    Returns
    -------
    Columns
        Nothing that stands in the bytes raises, with one exception.

    Raises
    ------
    TooMuchForOneArray
        The text or bytes of one field pass 2 GiB: decode a chunked array chunk by chunk then.
    TypeError, ValueError
        For a column that is not binary, for versions that are no integers or not one for each row, and for what is no
        schema.

    Examples
    --------
    >>> from kafka_records.schemas.consumer_offsets import OFFSET_COMMIT_VALUE
    >>> decode_column(OFFSET_COMMIT_VALUE, pa.array([bytes.fromhex("0001" "000000000000002a" "0000" "0000018f" * 5)]))
    """
    if not isinstance(message, MessageSchema):
        raise TypeError(f"the schema of a message is needed, such as those in kafka_records.schemas, not {message!r}")
    version = _versions(version, len(data))
    found: list[Columns] = []
    first = 0
    for spans in pieces(data):
        found.append(_decode_piece(message, spans, _part(version, first, len(spans)), unknown_tags))
        first += len(spans)
    return _joined(found, arrow_type(message, unknown_tags))


def _versions(version: Any, count: int) -> Any:
    """None, an int, or an integer array with a version for each row."""
    if version is None or isinstance(version, int | np.integer):
        return version if version is None else int(version)
    given = version.combine_chunks() if isinstance(version, pa.ChunkedArray) else version
    given = given if isinstance(given, pa.Array) else pa.array(given)
    if len(given) != count:
        raise ValueError(f"{count} rows and {len(given)} versions")
    if given.type == pa.uint64() or not (pa.types.is_integer(given.type) or pa.types.is_null(given.type)):
        raise TypeError(f"versions are integers with a sign, not {given.type}")
    return given


def _part(version: Any, first: int, count: int) -> Any:
    if version is None or isinstance(version, int):
        return version
    return version.slice(first, count)


def _decode_piece(message: MessageSchema, spans: Spans, version: Any, unknown_tags: bool) -> Columns:
    rows = spans.present()
    if version is None:
        return _decode_behind_int16(message, spans, _as_versions, MissingValueVersion, unknown_tags)
    if isinstance(version, int):
        return decode_rows(message, spans, rows, version, 0, unknown_tags)
    rows = rows[flags(version.is_valid())[rows]]
    versions = version.cast(pa.int64()).fill_null(0).to_numpy()[rows]
    return decode_rows(message, spans, rows, versions, 0, unknown_tags)


Choose = Callable[[INT64, INT16], tuple[INT64, INTEGERS]]
"""From rows and the int16 that each starts with to those of the rows that are decoded, and their versions."""


def _as_versions(rows: INT64, numbers: INT16) -> tuple[INT64, INTEGERS]:
    return rows, numbers


def decode_behind_int16(
    message: MessageSchema,
    data: Any,
    choose: Choose,
    too_short: Callable[[int], FramingError],
    *,
    unknown_tags: bool = False,
) -> Iterator[Columns]:
    """Decode what follows an int16 that stands in every row, where `choose` says what that number means.

    `data` is as in `decode_column`; each Columns is for one piece of it. `too_short` makes the error of a row of no
    more than one byte out of its size.
    """
    for spans in pieces(data):
        yield _decode_behind_int16(message, spans, choose, too_short, unknown_tags)


def _decode_behind_int16(
    message: MessageSchema,
    spans: Spans,
    choose: Choose,
    too_short: Callable[[int], FramingError],
    unknown_tags: bool,
) -> Columns:
    rows, numbers, short = prefixes(spans, spans.present())
    columns = decode_rows(message, spans, *choose(rows, numbers), PREFIX, unknown_tags)
    for row in short.tolist():
        columns.errors[row] = too_short(int(spans.ends[row] - spans.starts[row]))
    return columns


def prefixes(spans: Spans, rows: INT64) -> tuple[INT64, INT16, INT64]:
    """The rows that start with an int16, those numbers, and the rows that are too short for one."""
    starts, ends = spans.of(rows)
    long = ends - starts >= PREFIX
    short = rows[:0]
    if not long.all():
        short, rows, starts = rows[~long], rows[long], starts[long]
    batch = Batch(spans.buffer, spans.data, 0)
    return rows, batch.at(">i2", starts).astype(np.int16), short


def decode_rows(
    message: MessageSchema, spans: Spans, rows: INT64, versions: int | INTEGERS, skip: int, unknown_tags: bool
) -> Columns:
    """Decode some `rows` (in order) at their `versions`, `skip` bytes into each; all others are null."""
    out = _Assembly(message, unknown_tags, len(spans))
    if isinstance(versions, int):
        versions = np.full(min(len(rows), 1), versions)  # one for all is as good as one for each
    lowest, highest = message.versions or (0, -1)
    if len(versions) and (versions.min() < lowest or versions.max() > highest):
        versions = np.broadcast_to(versions, len(rows))
        known = (versions >= lowest) & (versions <= highest)
        # Not one version after another: hostile rows may have thousands.
        for row, version in zip(rows[~known].tolist(), versions[~known].tolist(), strict=True):
            out.errors[row] = UnsupportedVersion(message.name, version, versions_of(message))
        rows, versions = rows[known], versions[known]
    for version, chosen in split(rows, versions):
        out.add(spans, chosen, version, skip)
    return out.columns()


def split(rows: INT64, numbers: INTEGERS) -> Iterator[tuple[int, INT64]]:
    """Rows by a number that each of them has, or that is one for all."""
    if not len(numbers):
        return
    if numbers.min() == numbers.max():
        yield int(numbers[0]), rows
        return
    for number in np.unique(numbers).tolist():
        yield number, rows[numbers == number]


@dataclass(frozen=True, slots=True)
class _Part:
    """Some rows (in order) that were decoded together, with an element per row."""

    rows: INT64
    values: pa.StructArray
    left: INT64
    has_unknown: FLAGS


@dataclass(frozen=True, slots=True)
class _Walked:
    """One row that only the schema walker could read."""

    row: int
    value: Any
    left: int
    has_unknown: bool


class _Assembly:
    """Puts rows that were decoded in groups back in order."""

    def __init__(self, message: MessageSchema, unknown_tags: bool, count: int) -> None:
        self._message = message
        self._unknown_tags = unknown_tags
        self._count = count
        self._parts: list[_Part] = []
        self._walked: list[_Walked] = []
        self._plain: Plain | None = None
        self.errors: dict[int, DecodeError | FramingError] = {}
        self._leniencies: dict[int, list[str]] = {}

    def add(self, spans: Spans, rows: INT64, version: int, skip: int) -> None:
        """Decode `rows`, block by block."""
        if spans.last <= BLOCK:
            self._add(spans, rows, version, skip)
            return
        starts, ends = spans.of(rows)
        behind = np.cumsum(ends - starts)
        first = 0
        while first < len(rows):
            reached = int(behind[first - 1]) if first else 0
            last = max(int(np.searchsorted(behind, reached + BLOCK, side="right")), first + 1)
            self._add(spans, rows[first:last], version, skip)
            first = last

    def _add(self, spans: Spans, rows: INT64, version: int, skip: int) -> None:
        starts, ends = spans.of(rows)
        batch = Batch(spans.buffer, spans.data, len(rows))
        cursor = Cursor(batch, starts + skip, ends)
        if spans.last > MOST_BYTES:
            cursor.fail_where(ends - starts > MOST_BYTES)  # places are kept in 32 bits
        values = message_plan(self._message, version, self._unknown_tags).read(cursor)
        part = _Part(rows, values, ends - cursor.pos, batch.unknown_tags)
        if batch.failed.any():
            for row in rows[batch.failed].tolist():
                self._walk(spans, row, version, skip)
            kept = np.flatnonzero(~batch.failed)
            part = _Part(rows[kept], at(values, kept), part.left[kept], part.has_unknown[kept])
        self._parts.append(part)

    def _walk(self, spans: Spans, row: int, version: int, skip: int) -> None:
        leniencies: list[str] = []
        body = spans.row(row)[skip:]
        try:
            value, used = walker.decode(
                self._message, body, version, lenient=True, allow_trailing=True, leniencies=leniencies
            )
        except DecodeError as error:
            self.errors[row] = error
        else:
            if self._plain is None:
                self._plain = plain_values(self._message, self._unknown_tags)
            self._walked.append(_Walked(row, self._plain(value), len(body) - used, holds_unknown_tags(value)))
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


def _together(walked: list[_Walked], kind: pa.StructType) -> _Part:
    return _Part(
        np.array([each.row for each in walked], np.int64),
        without_inner_nulls(pa.array([each.value for each in walked], kind)),
        np.array([each.left for each in walked], np.int64),
        np.array([each.has_unknown for each in walked], np.bool_),
    )


def _joined(found: list[Columns], kind: pa.StructType) -> Columns:
    if len(found) == 1:
        return found[0]
    if not found:
        return Columns(pa.array([], kind), np.zeros(0, np.int64), np.zeros(0, np.bool_))
    columns = Columns(
        joined([each.values for each in found]),
        np.concatenate([each.bytes_left for each in found]),
        np.concatenate([each.has_unknown_tags for each in found]),
    )
    first = 0
    for each in found:
        columns.errors |= {first + row: error for row, error in each.errors.items()}
        columns.leniencies |= {first + row: names for row, names in each.leniencies.items()}
        first += len(each.values)
    return columns
