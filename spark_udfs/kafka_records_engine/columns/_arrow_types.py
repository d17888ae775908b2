"""Converts schemas to Arrow types.

ARROW_TYPES contains the Arrow type of each primitive type; an error names a type that it lacks. Times stay int64
milliseconds, an unsigned number becomes the next wider signed type (Spark has no unsigned types), and a uuid becomes
Kafka's 22-character text, which can be joined with the output of Kafka's tools. A field is nullable if its spec says
so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import pyarrow as pa

from kafka_records_engine.columns.type_mapping import TypeMapping, mapped
from kafka_records_runtime.schema import MessageSchema, RecordSchema
from kafka_records_runtime.schema.layout import plan

ARROW_TYPES: Final[Mapping[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "uint32": pa.int64(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "uuid": pa.string(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "records": pa.binary(),
}
"""For each spec type, the Arrow type."""

UNKNOWN_TAGS_TYPE: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("tag", pa.int32(), nullable=False), pa.field("data", pa.binary(), nullable=False)]),
        nullable=False,
    )
)
"""The type of the column with tagged fields that a schema does not define, in wire order."""


def _struct(fields: list[tuple[str, bool, pa.DataType]]) -> pa.DataType:
    return pa.struct([pa.field(name, item, nullable) for name, nullable, item in fields])


def _mapping(tags: pa.DataType | None) -> TypeMapping[pa.DataType]:
    return TypeMapping(
        primitive=lambda name: ARROW_TYPES[name],
        array=lambda item: pa.list_(pa.field("element", item, nullable=False)),
        struct=_struct,
        tags=tags,
    )


_WITHOUT_TAGS: Final = _mapping(None)
_WITH_TAGS: Final = _mapping(UNKNOWN_TAGS_TYPE)


def arrow_type(message: MessageSchema, unknown_tags: bool = False) -> pa.StructType:
    """The struct type for `message`: every field of every version, in the order of the spec.

    With `unknown_tags` every struct of a message that has flexible versions ends in `unknown_tagged_fields`
    (UNKNOWN_TAGS_TYPE). Raises UnsupportedType for a field that no column can hold.
    """
    key = "Arrow type with unknown tags" if unknown_tags else "Arrow type"
    mapping = _WITH_TAGS if unknown_tags else _WITHOUT_TAGS
    return plan(message, (key, 0), lambda: cast(pa.StructType, mapped(message, mapping)))


def record_arrow_type(record: RecordSchema, unknown_tags: bool = False) -> pa.StructType:
    """The type of the column for a record: `struct<key: …, value: …>`. Key or value is null if it is missing or
    unreadable.

    A metadata record has no key: `struct<value: …>`.
    """
    messages = {"key": record.key_or_none, "value": record.value}
    return pa.struct([(name, arrow_type(each, unknown_tags)) for name, each in messages.items() if each is not None])
