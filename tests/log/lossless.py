"""Writes columns to files and reads them again, and converts columns to bytes."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.wire import walker


def through_avro(column: pa.StructArray, schema: Any) -> pa.StructArray:
    """A column written as an Avro container file with a generated schema, null rows too, and read from it."""
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(["null", schema]), column.to_pylist(), strict_allow_default=True)
    file.seek(0)
    return pa.array(list(fastavro.reader(file)), column.type)


def through_parquet(column: pa.StructArray, schema: Any = None) -> pa.StructArray:
    """A column written as a Parquet file and read from it, whose type must be the one it had."""
    file = io.BytesIO()
    pq.write_table(pa.table({"column": column}), file)
    file.seek(0)
    (read,) = pq.read_table(file).columns
    assert read.type == column.type
    return pa.concat_arrays(read.chunks) if read.num_chunks else pa.array([], column.type)


def encoded(message: MessageSchema, column: pa.StructArray, versions: Iterable[int]) -> list[bytes | None]:
    """The bytes of every row, None for null."""
    rows = zip(column.to_pylist(), versions, strict=True)
    return [
        None if row is None else walker.encode(message, _struct(message, message.root.name, row), version)
        for row, version in rows
    ]


def _struct(message: MessageSchema, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """A struct in the form that the walker accepts: uuids as such, unknown tagged fields as pairs."""
    types = {field.name: field.type for field in message.struct(name).fields}
    out = {}
    for key, value in row.items():
        if key == "unknown_tagged_fields":
            out[key] = tuple((pair["tag"], pair["data"]) for pair in value)
        else:
            out[key] = _value(message, types[key], value)
    return out


def _value(message: MessageSchema, type: str, value: Any) -> Any:
    if value is None:
        return None
    if type.startswith("[]"):
        return [_value(message, type[2:], item) for item in value]
    if type == "uuid":
        return Uuid.from_string(value)
    return _struct(message, type, value) if isinstance(value, dict) else value
