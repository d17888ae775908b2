"""Replaces secrets in decoded struct columns, and refuses to encode the replacement
(`kafka_records_runtime.kafka.secrets`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.columns import RecordColumns
from kafka_records_engine.columns.arrow_arrays import flags, validity, without_inner_nulls
from kafka_records_engine.numpy_types import FLAGS
from kafka_records_engine.spark.errors import RedactedValue
from kafka_records_runtime.kafka import secrets
from kafka_records_runtime.kafka.config_names import REDACTED
from kafka_records_runtime.schema import MessageSchema, RecordSchema
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS

REDACTED_BYTES: Final = REDACTED.encode()
"""The replacement for bytes that are or may be secret."""

_VALUE: Final = "value"


def may_hold_secrets(message: MessageSchema) -> bool:
    """Whether a message has fields that may be secrets."""
    return secrets.may_hold_secrets(message.name, (field.name for field in message.root.fields))


def without_secrets(message: MessageSchema, values: pa.StructArray) -> pa.StructArray:
    """The decoded values of a message, with `(redacted)` in place of each secret. A value with a secret also loses its
    unknown tagged fields."""
    if not may_hold_secrets(message) or values.null_count == len(values):
        return values
    names = [field.name for field in values.type]
    columns = dict(zip(names, values.flatten(), strict=True))
    hidden = secrets.secret_columns(message.name) or {_VALUE}
    is_hidden = flags(values.is_valid())
    if not secrets.secret_columns(message.name):
        is_hidden = is_hidden & _are_secret(columns) & flags(columns[_VALUE].is_valid())
    if not is_hidden.any():
        return values
    mask = pa.array(is_hidden)
    for name in hidden & columns.keys():
        column = columns[name]
        text = REDACTED_BYTES if pa.types.is_binary(column.type) else REDACTED
        columns[name] = pc.if_else(mask, pa.scalar(text, column.type), column)
    if UNKNOWN_TAGS in columns:
        column = columns[UNKNOWN_TAGS]
        columns[UNKNOWN_TAGS] = pc.if_else(mask, pa.scalar([], column.type), column)
    made = [columns[name] for name in names]
    made = [
        each.cast(item.type) if each.type != item.type else each for each, item in zip(made, values.type, strict=True)
    ]
    return without_inner_nulls(pa.StructArray.from_arrays(made, fields=list(values.type), mask=values.is_null()))


def _are_secret(columns: Mapping[str, pa.Array]) -> FLAGS:
    """Flags for configs that are secrets."""
    rows = zip(columns["resource_type"].to_pylist(), columns["name"].to_pylist(), strict=True)
    return np.array([kind is not None and secrets.is_secret_config(kind, name) for kind, name in rows], np.bool_)


def hides_secrets(schemas: Mapping[int, RecordSchema], show_secrets: bool) -> bool:
    """Whether decoding a topic with these records may require hiding secrets."""
    return not show_secrets and any(may_hold_secrets(schema.value) for schema in schemas.values())


def hide_secrets(schemas: Mapping[int, RecordSchema], found: RecordColumns) -> None:
    """Replace the secrets in decoded records."""
    for number, records in found.records.items():
        message = schemas[number].value
        if may_hold_secrets(message):
            names = [field.name for field in records.type]
            parts = [records.field(name) for name in names]
            place = names.index(_VALUE)
            parts[place] = without_secrets(message, parts[place])
            bits = None if records.null_count == 0 else validity(flags(records.is_valid()))
            found.records[number] = pa.Array.from_buffers(records.type, len(records), [bits], children=parts)


def without_secret_bytes(
    schemas: Mapping[int, RecordSchema], found: RecordColumns, values: pa.BinaryArray
) -> pa.BinaryArray:
    """The bytes of values, with `(redacted)` in place of values that may contain a secret, for example all values of an
    unknown type."""
    secret = [number for number, schema in schemas.items() if may_hold_secrets(schema.value)]
    may_be = ~found.is_known | np.isin(found.record_type, secret)
    mask = pc.and_(pa.array(may_be), values.is_valid())
    return pc.if_else(mask, pa.scalar(REDACTED_BYTES, pa.binary()), values)


def refuse_redacted(message: MessageSchema, version: int, value: Mapping[str, Any]) -> None:
    """Raise RedactedValue if the value contains `(redacted)` in place of a secret."""
    always = secrets.secret_columns(message.name)
    for name in always or {_VALUE}:
        if value.get(name) in (REDACTED, REDACTED_BYTES) and (always or _is_secret(value)):
            raise RedactedValue(message.name, version, name)


def _is_secret(value: Mapping[str, Any]) -> bool:
    kind, name = value.get("resource_type"), value.get("name")
    return isinstance(kind, int) and isinstance(name, str) and secrets.is_secret_config(kind, name)
