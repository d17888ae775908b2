"""Decodes the records of a topic into columns: keys and values of many rows, with any mix of record types.

The rules are those of `kafka_records_runtime.records.reading.read_record`, with one exception that tables need: if only
the value of a record cannot be decoded, the key is still returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafka_records_engine.columns._arrow_types import record_arrow_type
from kafka_records_engine.columns._assembly import Columns, decode_rows, refuse_bytes_behind, split
from kafka_records_engine.columns._pieces import ColumnPiece, numbered, pieces
from kafka_records_engine.columns.arrow_arrays import joined as concatenated
from kafka_records_engine.columns.arrow_arrays import structs, validity, without_inner_nulls
from kafka_records_engine.columns.framing_in_columns import (
    PREFIX_BYTES,
    FrameNumbers,
    api_keys,
    behind,
    frame_versions,
    prefixes,
)
from kafka_records_engine.numpy_types import FLAGS, INT16, INT64
from kafka_records_runtime.errors import DecodeError, FramingError
from kafka_records_runtime.records.framing import (
    KEY_VERSION,
    METADATA,
    framing_of,
    start_frame,
    unframed_key,
    unframed_value,
    unknown_api_key,
)
from kafka_records_runtime.schema import RecordSchema


@dataclass
class RecordColumns:
    """The decoded columns of the given records; vectors and arrays have an element per row.

    `record_type` is valid only if `has_type` is true, and `value_version` only if `has_version` is. `is_known` says
    whether the type has a schema. `records` has a column `struct<key, value>` for each type with a schema that occurs.
    It is null in rows of other types and if the key cannot be decoded. (Metadata records have `struct<value>`, which is
    null if the value cannot be decoded.) `key_left` and `value_left` count the bytes left after key and value. The
    other attributes are as in `Columns`.
    """

    record_type: INT16
    has_type: FLAGS
    is_known: FLAGS
    value_version: INT16
    has_version: FLAGS
    key_bytes_left: INT64
    value_bytes_left: INT64
    has_unknown_tags: FLAGS
    records: dict[int, pa.StructArray] = field(default_factory=dict)
    errors: dict[int, DecodeError | FramingError] = field(default_factory=dict)
    leniencies: dict[int, list[str]] = field(default_factory=dict)


def decode_record_columns(
    schemas: Mapping[int, RecordSchema],
    keys: pa.Array,
    values: pa.Array,
    is_record: Any = None,
    *,
    unknown_tags: bool = False,
) -> RecordColumns:
    """Decode keys and values as leniently as Kafka does.

    Parameters
    ----------
    schemas
        The records by type: `RECORDS` of a generated `schemas.<folder>` module.
    keys, values
        Arrays of the same length, of any layout that `decode_column` accepts. A null value is a tombstone. Metadata
        records have null keys and no null values.
    is_record
        Flags for rows that are records, in any form that numpy can convert to an array. Other rows, such as control
        records, are ignored and are empty in every column. By default, all rows are records.
    unknown_tags
        Keep tagged fields that the schemas do not define, as `unknown_tagged_fields`.

    Returns
    -------
    RecordColumns
        Undecodable bytes do not raise: `errors` says what is wrong in each row.

    Raises
    ------
    TooMuchForOneArray
        The text or bytes of one field exceed 2 GiB. Decode fewer rows at a time.
    TypeError, ValueError
        A column is not binary, or the columns differ in length.
    """
    count = len(keys)
    if len(values) != count:
        raise ValueError(f"{count} keys but {len(values)} values")
    looked_at = np.ones(count, np.bool_) if is_record is None else np.asarray(is_record, np.bool_)
    if len(looked_at) != count:
        raise ValueError(f"{count} keys but {len(looked_at)} flags in is_record")
    key_piece, value_piece = _whole(keys), _whole(values)
    if key_piece is None or value_piece is None:  # the column has more bytes than one piece can hold
        half = count // 2
        return _joined(
            schemas,
            decode_record_columns(
                schemas, keys.slice(0, half), values.slice(0, half), looked_at[:half], unknown_tags=unknown_tags
            ),
            decode_record_columns(
                schemas, keys.slice(half), values.slice(half), looked_at[half:], unknown_tags=unknown_tags
            ),
            unknown_tags,
        )
    kind = _MetadataReading if framing_of(schemas) == METADATA else _RecordReading
    return kind(schemas, key_piece, value_piece, unknown_tags).run(looked_at)


def _whole(column: pa.Array) -> ColumnPiece | None:
    """A column as one piece; None if it needs several pieces."""
    found = list(pieces(column))
    if not found:
        nothing = np.zeros(0, np.int64)
        return ColumnPiece(pa.py_buffer(b""), np.zeros(0, np.uint8), nothing, nothing, None, 0)
    return found[0] if len(found) == 1 else None


class _RecordReading:
    def __init__(
        self, schemas: Mapping[int, RecordSchema], keys: ColumnPiece, values: ColumnPiece, unknown_tags: bool
    ) -> None:
        self._schemas = schemas
        self._keys = keys
        self._values = values
        self._unknown_tags = unknown_tags
        count = len(keys)
        self._out = RecordColumns(
            record_type=np.zeros(count, np.int16),
            has_type=np.zeros(count, np.bool_),
            is_known=np.zeros(count, np.bool_),
            value_version=np.zeros(count, np.int16),
            has_version=np.zeros(count, np.bool_),
            key_bytes_left=np.zeros(count, np.int64),
            value_bytes_left=np.zeros(count, np.int64),
            has_unknown_tags=np.zeros(count, np.bool_),
        )

    def run(self, looked_at: FLAGS) -> RecordColumns:
        out = self._out
        has_key = looked_at if self._keys.valid is None else looked_at & self._keys.valid
        for row in np.flatnonzero(looked_at & ~has_key).tolist():
            out.errors[row] = unframed_key(None)
        present = numbered(len(has_key)) if has_key.all() else np.flatnonzero(has_key)
        rows, types, short = prefixes(self._keys, present)
        for row in short.tolist():
            out.errors[row] = unframed_key(int(self._keys.ends[row] - self._keys.starts[row]))
        _put(out.record_type, rows, types)
        _put(out.has_type, rows, True)
        if len(types) and types.min() != types.max():
            # Handle all such rows at once rather than type by type: hostile rows may contain thousands of types.
            known = np.isin(types, list(self._schemas))
            rows, types = rows[known], types[known]
        for number, chosen in split(rows, types):
            if number in self._schemas:
                self._record(self._schemas[number], chosen)
        return out

    def _record(self, schema: RecordSchema, rows: INT64) -> None:
        out = self._out
        is_all = len(rows) == len(out.is_known)
        _put(out.is_known, rows, True)
        keys = decode_rows(schema.key, self._keys, rows, KEY_VERSION, PREFIX_BYTES, self._unknown_tags)
        self._note(keys)
        out.key_bytes_left = keys.bytes_left if is_all else out.key_bytes_left + keys.bytes_left
        if keys.errors:
            rows = rows[~np.isin(rows, list(keys.errors))]
        with_value = rows if self._values.valid is None else rows[self._values.valid[rows]]
        with_value, versions, short = prefixes(self._values, with_value)
        for row in short.tolist():
            out.errors[row] = unframed_value(int(self._values.ends[row] - self._values.starts[row]))
        _put(out.value_version, with_value, versions)
        _put(out.has_version, with_value, True)
        values = decode_rows(schema.value, self._values, with_value, versions, PREFIX_BYTES, self._unknown_tags)
        self._note(values)
        out.value_bytes_left = values.bytes_left if is_all else out.value_bytes_left + values.bytes_left
        kind = record_arrow_type(schema, self._unknown_tags)
        out.records[schema.type] = _structs(kind, [keys.values, values.values], rows)

    def _note(self, columns: Columns) -> None:
        out = self._out
        out.errors |= columns.errors
        for row, names in columns.leniencies.items():
            out.leniencies[row] = out.leniencies.get(row, []) + names
        out.has_unknown_tags |= columns.has_unknown_tags


class _MetadataReading(_RecordReading):
    """Reads records that have a metadata frame."""

    def run(self, looked_at: FLAGS) -> RecordColumns:
        out = self._out
        rows = np.flatnonzero(looked_at)
        is_odd = np.ones(len(looked_at), np.bool_) if self._keys.valid is None else self._keys.valid.copy()
        if self._values.valid is not None:
            is_odd |= ~self._values.valid
        for row in rows[is_odd[rows]].tolist():
            self._refuse(row)
        found = api_keys(self._values, rows[~is_odd[rows]])
        out.errors |= found.errors
        rows, types = found.rows, found.numbers
        _put(out.record_type, rows, types)
        _put(out.has_type, rows, True)
        known = np.isin(types, list(self._schemas))
        for row in rows[~known].tolist():
            out.errors[row] = unknown_api_key(self._values.row(row))
        found = frame_versions(self._values, FrameNumbers(rows[known], types[known], found.ends[known]))
        out.errors |= found.errors
        _put(out.is_known, rows[known], True)
        _put(out.value_version, found.rows, found.numbers)
        _put(out.has_version, found.rows, True)
        bodies = behind(self._values, found)
        of_rows = out.record_type[found.rows]
        for number, chosen in split(found.rows, of_rows):
            self._messages(self._schemas[number], bodies, chosen, found.numbers[of_rows == number])
        return out

    def _refuse(self, row: int) -> None:
        """Note the error of a record that has a key or no value. Metadata records have no key, and always a value."""
        valid = self._keys.valid
        key = self._keys.row(row) if valid is None or valid[row] else None
        try:
            start_frame(key, None)
        except FramingError as error:
            self._out.errors[row] = error

    def _messages(self, schema: RecordSchema, bodies: ColumnPiece, rows: INT64, versions: INT64) -> None:
        out = self._out
        values = decode_rows(schema.value, bodies, rows, versions, 0, self._unknown_tags)
        refuse_bytes_behind(schema.value, bodies, rows, versions, values)
        self._note(values)
        if values.errors:
            rows = rows[~np.isin(rows, list(values.errors))]
        kind = record_arrow_type(schema, self._unknown_tags)
        out.records[schema.type] = _structs(kind, [values.values], rows)


def _put(vector: NDArray[Any], rows: INT64, values: Any) -> None:
    """`vector[rows] = values`, without indexing if `rows` are all rows."""
    if len(rows) == len(vector):
        vector[:] = values
    else:
        vector[rows] = values


def _structs(kind: pa.StructType, messages: list[pa.StructArray], rows: INT64) -> pa.StructArray:
    """A struct of key and value in `rows`; null in all other rows."""
    count = len(messages[0])
    if len(rows) == count:
        return structs(kind, messages, count)
    valid = np.zeros(count, np.bool_)
    valid[rows] = True
    return pa.Array.from_buffers(kind, count, [validity(valid)], children=messages)


def _joined(
    schemas: Mapping[int, RecordSchema], first: RecordColumns, second: RecordColumns, unknown_tags: bool
) -> RecordColumns:
    shift = len(first.record_type)

    def both(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(first, name), getattr(second, name)])

    joined = RecordColumns(
        record_type=both("record_type"),
        has_type=both("has_type"),
        is_known=both("is_known"),
        value_version=both("value_version"),
        has_version=both("has_version"),
        key_bytes_left=both("key_bytes_left"),
        value_bytes_left=both("value_bytes_left"),
        has_unknown_tags=both("has_unknown_tags"),
    )
    for number in first.records.keys() | second.records.keys():
        kind = record_arrow_type(schemas[number], unknown_tags)
        joined.records[number] = concatenated(
            [
                part.records.get(number, without_inner_nulls(pa.nulls(len(part.record_type), kind)))
                for part in (first, second)
            ]
        )
    joined.errors = first.errors | {shift + row: error for row, error in second.errors.items()}
    joined.leniencies = first.leniencies | {shift + row: names for row, names in second.leniencies.items()}
    return joined
