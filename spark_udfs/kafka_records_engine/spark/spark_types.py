"""Converts schemas to Spark's column types, as `kafka_records_engine.columns.arrow_type` does for Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import pyarrow as pa
from pyspark.sql import types as spark

from kafka_records_engine.columns import ARROW_TYPES, UNKNOWN_TAGS_TYPE
from kafka_records_engine.columns.type_mapping import TypeMapping, mapped
from kafka_records_runtime.schema import MessageSchema, RecordSchema
from kafka_records_runtime.text.spark_names import SPARK_TYPES

_TYPES: Final[dict[str, spark.DataType]] = {name: getattr(spark, SPARK_TYPES[name])() for name in ARROW_TYPES}
_BY_ARROW_TYPE: Final[dict[pa.DataType, spark.DataType]] = {
    **{arrow: _TYPES[name] for name, arrow in ARROW_TYPES.items()},
    pa.timestamp("us", tz="UTC"): spark.TimestampType(),
}


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """The Spark schema for an Arrow schema with the types in ARROW_TYPES, instants in UTC, structs, lists and maps.

    The `comment` in a field's metadata becomes the comment of the column, which DESCRIBE shows.
    """
    return spark.StructType([_field(field) for field in schema])


def _field(field: pa.Field) -> spark.StructField:
    about = (field.metadata or {}).get(b"comment")
    metadata = None if about is None else {"comment": about.decode()}
    return spark.StructField(field.name, _of(field.type), field.nullable, metadata)


def _of(arrow: pa.DataType) -> spark.DataType:
    if pa.types.is_struct(arrow):
        return spark_schema(pa.schema(arrow))
    if pa.types.is_list(arrow):
        return spark.ArrayType(_of(arrow.value_type), arrow.value_field.nullable)
    if pa.types.is_map(arrow):
        return spark.MapType(_of(arrow.key_type), _of(arrow.item_type))
    return _BY_ARROW_TYPE[arrow]


def _mapping(tags: spark.DataType | None) -> TypeMapping[spark.DataType]:
    return TypeMapping(
        primitive=lambda name: _TYPES[name],
        array=lambda item: spark.ArrayType(item, containsNull=False),
        struct=lambda fields: spark.StructType([spark.StructField(*_field) for _field in _reordered(fields)]),
        tags=tags,
    )


def _reordered(fields: list[tuple[str, bool, spark.DataType]]) -> list[tuple[str, spark.DataType, bool]]:
    return [(name, item, nullable) for name, nullable, item in fields]


_PLAIN: Final = _mapping(None)
_WITH_TAGS: Final = _mapping(_of(UNKNOWN_TAGS_TYPE))


def spark_type(message: MessageSchema, unknown_tags: bool = False) -> spark.StructType:
    """The struct column of `message`: every field of every version, in the order of the spec.

    With `unknown_tags` every struct of a message that has flexible versions ends in `unknown_tagged_fields`, an array
    of `struct<tag int, data binary>`. Raises UnsupportedType for a field that no column can hold.

    >>> from kafka_records.schemas.consumer_offsets import OFFSET_COMMIT_KEY
    >>> spark_type(OFFSET_COMMIT_KEY).simpleString()
    'struct<group:string,topic:string,partition:int>'
    """
    return cast(spark.StructType, mapped(message, _WITH_TAGS if unknown_tags else _PLAIN))


def commented(kind: spark.StructType, abouts: Mapping[str, str], path: str = "") -> spark.StructType:
    """The same struct, with a comment from `abouts` for each field, by path (`members.member_id`)."""
    return spark.StructType([_commented(field, abouts, f"{path}{field.name}") for field in kind.fields])


def _commented(field: spark.StructField, abouts: Mapping[str, str], path: str) -> spark.StructField:
    kind = field.dataType
    if isinstance(kind, spark.StructType):
        kind = commented(kind, abouts, f"{path}.")
    elif isinstance(kind, spark.ArrayType) and isinstance(kind.elementType, spark.StructType):
        kind = spark.ArrayType(commented(kind.elementType, abouts, f"{path}."), kind.containsNull)
    metadata = {"comment": abouts[path]} if path in abouts else None
    return spark.StructField(field.name, kind, field.nullable, metadata)


def record_spark_type(
    record: RecordSchema, unknown_tags: bool = False, abouts: Mapping[str, Mapping[str, str]] | None = None
) -> spark.StructType:
    """The type of the column for a record: `struct<key: …, value: …>`, or `struct<value: …>` for a metadata record.

    `abouts` contains the comments of fields, by message and path.
    """
    fields = []
    for name, message in (("key", record.key_or_none), ("value", record.value)):
        if message is None:
            continue
        kind = spark_type(message, unknown_tags)
        if abouts is not None:
            kind = commented(kind, abouts.get(message.name, {}))
        fields.append(spark.StructField(name, kind))
    return spark.StructType(fields)
