"""Converts declared column types to Arrow types, and milliseconds to instants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import INT64
from kafka_records_tables.tables.column import Column

_PLAIN: Final = {
    "string": pa.string(),
    "bool": pa.bool_(),
    "binary": pa.binary(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}

YEAR_1_MS: Final = -62_135_596_800_000
"""0001-01-01T00:00:00Z in milliseconds since 1970."""

YEAR_9999_END_MS: Final = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z in milliseconds since 1970."""


@cache
def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """The schema of a table. The meaning of a column is the `comment` in its field's metadata."""
    return pa.schema([pa.field(each.name, arrow_type(each.type), metadata={"comment": each.about}) for each in columns])


def arrow_type(text: str) -> pa.DataType:
    """The Arrow type for a declared type (`Column`). Raises ValueError for an invalid type."""
    if text in _PLAIN:
        return _PLAIN[text]
    match = re.fullmatch(r"(list|struct)<(.+)>", text)
    if match is None:
        raise ValueError(f"{text!r} is not a type that a column can have")
    if match[1] == "list":
        return pa.list_(pa.field("element", arrow_type(match[2])))
    fields = [part.split(":", 1) for part in _parts(match[2])]
    return pa.struct([pa.field(name.strip(), arrow_type(kind.strip())) for name, kind in fields])


def _parts(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "<") - (character == ">")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def instants(milliseconds: pa.Array) -> pa.Array:
    """Milliseconds since 1970 as instants, null outside the years 1 to 9999. Records may contain any int64, and
    programs that display instants (Python, Spark in ANSI mode) reject times outside these years."""
    values: INT64 = milliseconds.fill_null(0).to_numpy(zero_copy_only=False)
    known = (values >= YEAR_1_MS) & (values <= YEAR_9999_END_MS)
    if milliseconds.null_count:
        known &= milliseconds.is_valid().to_numpy(zero_copy_only=False)
    micros = np.where(known, values, 0) * 1000
    return pa.array(micros, pa.int64(), mask=~known).cast(_PLAIN["timestamp"])


def record_batch(schema: pa.Schema, columns: dict[str, Any], count: int) -> pa.RecordBatch:
    """A batch of rows of a table, made from its columns by name. A scalar is repeated for every row."""
    arrays = []
    for field in schema:
        column = columns[field.name]
        if isinstance(column, pa.Array):
            arrays.append(column if column.type == field.type else column.cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(column, field.type), count))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batch_of(schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Rows of a table with `log_timestamp_ms`, from which `log_timestamp` is derived. Values are given by name."""
    given = [field for field in schema if field.name != "log_timestamp"]
    columns = {field.name: pa.array([each[field.name] for each in rows], field.type) for field in given}
    columns["log_timestamp"] = instants(columns["log_timestamp_ms"])
    return record_batch(schema, columns, len(rows))
