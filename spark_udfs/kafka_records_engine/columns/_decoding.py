"""Decodes a binary column of one message. Each row may have an int16 before the message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._arrow_types import arrow_type
from kafka_records_engine.columns._assembly import Columns, decode_rows, refuse_bytes_behind
from kafka_records_engine.columns._pieces import ColumnPiece, pieces
from kafka_records_engine.columns.arrow_arrays import flags, joined
from kafka_records_engine.columns.framing_in_columns import (
    PREFIX_BYTES,
    FrameNumbers,
    api_keys,
    behind,
    frame_versions,
    prefixes,
)
from kafka_records_engine.numpy_types import INT16, INT64, INTEGERS
from kafka_records_runtime.errors import FramingError
from kafka_records_runtime.records.framing import unframed_value
from kafka_records_runtime.schema import MessageSchema


def decode_column(message: MessageSchema, data: Any, version: Any = None, *, unknown_tags: bool = False) -> Columns:
    """Decode a column of encoded messages as leniently as Kafka does.

    Parameters
    ----------
    message
        Schema, from a generated `schemas.<folder>` module.
    data
        Array or chunked array: binary, large_binary, binary_view, fixed_size_binary, the string types, or null.
    version
        One int for all rows, or an integer array with one for each row (a row with a null version counts as null). By
        default, each message follows an int16 with its version, as in record values.
    unknown_tags
        Keep tagged fields that the schema does not define, as `unknown_tagged_fields` (see `arrow_type`).

    Returns
    -------
    Columns
        Undecodable bytes do not raise: their rows are null and have an error.

    Raises
    ------
    TooMuchForOneArray
        The text or bytes of one field exceed 2 GiB. Decode fewer rows at a time, for example chunk by chunk.
    TypeError, ValueError
        `data` is not a binary column, `version` is not an integer per row, or `message` is not a schema.

    Examples
    --------
    >>> from kafka_records.schemas.consumer_offsets import OFFSET_COMMIT_VALUE
    >>> decode_column(OFFSET_COMMIT_VALUE, pa.array([bytes.fromhex("0001" "000000000000002a" "0000" "0000018f" * 5)]))
    """
    if not isinstance(message, MessageSchema):
        raise TypeError(f"expected the schema of a message, such as those in kafka_records.schemas, not {message!r}")
    version = _versions(version, len(data))
    found: list[Columns] = []
    first = 0
    for piece in pieces(data):
        found.append(_decode_piece(message, piece, _part(version, first, len(piece)), unknown_tags))
        first += len(piece)
    return _joined(found, arrow_type(message, unknown_tags))


def _versions(version: Any, count: int) -> Any:
    """None, an int, or an integer array with a version for each row."""
    if version is None or isinstance(version, int | np.integer):
        return version if version is None else int(version)
    given = version.combine_chunks() if isinstance(version, pa.ChunkedArray) else version
    given = given if isinstance(given, pa.Array) else pa.array(given)
    if len(given) != count:
        raise ValueError(f"{count} rows but {len(given)} versions")
    if given.type == pa.uint64() or not (pa.types.is_integer(given.type) or pa.types.is_null(given.type)):
        raise TypeError(f"versions must be signed integers, not {given.type}")
    return given


def _part(version: Any, first: int, count: int) -> Any:
    if version is None or isinstance(version, int):
        return version
    return version.slice(first, count)


def _decode_piece(message: MessageSchema, piece: ColumnPiece, version: Any, unknown_tags: bool) -> Columns:
    if version is None:
        return _decode_behind_int16(message, piece, _as_versions, unframed_value, unknown_tags)
    rows = piece.present()
    if isinstance(version, int):
        return decode_rows(message, piece, rows, version, 0, unknown_tags)
    rows = rows[flags(version.is_valid())[rows]]
    versions = version.cast(pa.int64()).fill_null(0).to_numpy()[rows]
    return decode_rows(message, piece, rows, versions, 0, unknown_tags)


Choose = Callable[[INT64, INT16], tuple[INT64, INTEGERS]]
"""A function of rows and of the int16 in each. It returns the rows to decode and the version of each."""


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
    """Decode the message after the int16 that every row starts with. `choose` selects the rows and their versions.

    `data` is as in `decode_column`. Yields one Columns per chunk, and several for a chunk of more than 2 GiB.
    `too_short` creates the error for a row without an int16, from the size of the row.
    """
    for piece in pieces(data):
        yield _decode_behind_int16(message, piece, choose, too_short, unknown_tags)


def _decode_behind_int16(
    message: MessageSchema,
    piece: ColumnPiece,
    choose: Choose,
    too_short: Callable[[int], FramingError],
    unknown_tags: bool,
) -> Columns:
    rows, numbers, short = prefixes(piece, piece.present())
    columns = decode_rows(message, piece, *choose(rows, numbers), PREFIX_BYTES, unknown_tags)
    for row in short.tolist():
        columns.errors[row] = too_short(int(piece.ends[row] - piece.starts[row]))
    return columns


def decode_framed(message: MessageSchema, data: Any, api_key: int, *, unknown_tags: bool = False) -> Iterator[Columns]:
    """Decode the values of metadata records of one type. Values of other types are null without an error.

    `data` is as in `decode_column`. Yields one Columns per chunk, and several for a chunk of more than 2 GiB.
    """
    for piece in pieces(data):
        found = api_keys(piece, piece.present())
        errors = found.errors
        own = found.numbers == api_key
        found = frame_versions(piece, FrameNumbers(found.rows[own], found.numbers[own], found.ends[own]))
        bodies = behind(piece, found)
        columns = decode_rows(message, bodies, found.rows, found.numbers, 0, unknown_tags)
        refuse_bytes_behind(message, bodies, found.rows, found.numbers, columns)
        columns.errors |= errors | found.errors
        yield columns


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
