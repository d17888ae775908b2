"""From schemas to column types, of Spark and of Arrow, and from decoded values to what such columns take.

One table says what a primitive becomes; whatever is not in it is refused by name. Fields are nullable where their spec
says so; the column of a message as a whole always is, because a row that could not be decoded has none. Times stay
int64 milliseconds, and a uuid is its 22-character text, so that it joins with what Kafka's tools print.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa
from pyspark.sql import types as spark

from kafka_records_runtime.schema import FieldSchema, MessageSchema, RecordSchema, StructSchema
from kafka_records_runtime.spark_names import SPARK_TYPES
from kafka_records_spark.errors import UnsupportedType

T = TypeVar("T")
Plain = Callable[[Any], Any]

_ARROW_TYPES: Final[Mapping[str, pa.DataType]] = {
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

COLUMN_TYPES: Final[Mapping[str, tuple[spark.DataType, pa.DataType]]] = {
    name: (getattr(spark, SPARK_TYPES[name])(), arrow) for name, arrow in _ARROW_TYPES.items()
}
"""Spec type → (Spark type, Arrow type)."""

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def column_name(name: str) -> str:
    """The column of a record or message: `OffsetCommit` gives `offset_commit`."""
    return _HUMP.sub("_", name).lower()


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """The Spark side of an Arrow schema made of the types in COLUMN_TYPES, structs, lists and maps."""
    return spark.StructType([spark.StructField(field.name, _spark_of(field.type)) for field in schema])


def _spark_of(arrow: pa.DataType) -> spark.DataType:
    if pa.types.is_struct(arrow):
        return spark_schema(pa.schema(arrow))
    if pa.types.is_list(arrow):
        return spark.ArrayType(_spark_of(arrow.value_type))
    if pa.types.is_map(arrow):
        return spark.MapType(_spark_of(arrow.key_type), _spark_of(arrow.item_type))
    return next(one for one, other in COLUMN_TYPES.values() if other == arrow)


@dataclass(frozen=True)
class _Target(Generic[T]):
    """How one of the two type systems, or the conversion of values, is put together."""

    primitive: Callable[[str], T]
    array: Callable[[T], T]
    struct: Callable[[list[tuple[FieldSchema, T]]], T]


def _build(message: MessageSchema, target: _Target[T]) -> T:
    def of_struct(struct: StructSchema, path: str, above: tuple[str, ...]) -> T:
        if struct.name in above:
            raise UnsupportedType(message.name, path, f"holds {struct.name}, which holds itself")
        inner = (*above, struct.name)
        prefix = f"{path}." if path else ""
        return target.struct([(field, of_field(field, prefix + field.name, inner)) for field in struct.fields])

    def of_field(field: FieldSchema, path: str, above: tuple[str, ...]) -> T:
        if not field.is_struct:
            item = target.primitive(field.base)
        else:
            try:
                struct = message.struct(field.base)
            except KeyError:
                raise UnsupportedType(
                    message.name, path, f"has the type {field.base}, which has no column type"
                ) from None
            item = of_struct(struct, path, above)
        return target.array(item) if field.is_array else item

    return of_struct(message.root, "", ())


def is_nullable(field: FieldSchema) -> bool:
    """Whether a decoded value can be null: in some version, or because the versions without the field say null."""
    return field.nullable is not None or field.default is None


_SPARK: Final[_Target[spark.DataType]] = _Target(
    primitive=lambda name: COLUMN_TYPES[name][0],
    array=lambda item: spark.ArrayType(item, containsNull=False),
    struct=lambda fields: spark.StructType(
        [spark.StructField(field.name, item, is_nullable(field)) for field, item in fields]
    ),
)

_ARROW: Final[_Target[pa.DataType]] = _Target(
    primitive=lambda name: COLUMN_TYPES[name][1],
    array=lambda item: pa.list_(pa.field("element", item)),
    struct=lambda fields: pa.struct([pa.field(field.name, item) for field, item in fields]),
)


def spark_type(message: MessageSchema) -> spark.StructType:
    """The struct column of `message`: every field of every version, in the order of the spec.

    Raises UnsupportedType for a field that no column can hold.

    >>> from kafka_records.schemas.consumer_offsets import OFFSET_COMMIT_KEY
    >>> spark_type(OFFSET_COMMIT_KEY).simpleString()
    'struct<group:string,topic:string,partition:int>'
    """
    built = _build(message, _SPARK)
    assert isinstance(built, spark.StructType)
    return built


def arrow_type(message: MessageSchema) -> pa.StructType:
    """The Arrow side of `spark_type`."""
    return _build(message, _ARROW)


def record_spark_type(record: RecordSchema) -> spark.StructType:
    """The column of a record: `struct<key: …, value: …>`."""
    return spark.StructType(
        [
            spark.StructField("key", spark_type(record.key)),
            spark.StructField("value", spark_type(record.value)),
        ]
    )


def record_arrow_type(record: RecordSchema) -> pa.StructType:
    """The Arrow side of `record_spark_type`."""
    return pa.struct([("key", arrow_type(record.key)), ("value", arrow_type(record.value))])


def _plain_array(item: Plain | None) -> Plain | None:
    if item is None:
        return None
    return lambda values: None if values is None else [item(value) for value in values]


def _plain_struct(fields: list[tuple[FieldSchema, Plain | None]]) -> Plain | None:
    changed = [(field.name, plain) for field, plain in fields if plain is not None]
    if not changed:
        return None

    def convert(value: Any) -> Any:
        if value is None:
            return None
        copy = dict(value)
        for name, plain in changed:
            copy[name] = plain(copy[name])
        return copy

    return convert


_PLAIN: Final[_Target[Plain | None]] = _Target(
    primitive=lambda name: str if name == "uuid" else None,
    array=_plain_array,
    struct=_plain_struct,
)


def plain_values(message: MessageSchema) -> Plain:
    """A function from a decoded value of `message` (a tree of dicts, `walker.decode`) to one that columns take.

    Uuids become text; a message without any is handed through as it is.
    """
    return _build(message, _PLAIN) or _unchanged


def _unchanged(value: Any) -> Any:
    return value
