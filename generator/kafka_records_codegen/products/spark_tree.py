"""Shows the Spark columns of a message in the form of `DataFrame.printSchema`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka_records_codegen.model.messages import Field, Message, Struct
from kafka_records_runtime.text.spark_names import SPARK_TYPES

_NAMES: Final = {
    "BooleanType": "boolean",
    "ByteType": "byte",
    "ShortType": "short",
    "IntegerType": "integer",
    "LongType": "long",
    "DoubleType": "double",
    "StringType": "string",
    "BinaryType": "binary",
}


def tree(message: Message) -> str:
    """The columns in wire order, one line each. Nested ones are indented further."""
    return "\n".join(["root", *_struct(message, message.root, " |-- ")])


def _struct(message: Message, struct: Struct, stem: str) -> Iterator[str]:
    for field in struct.fields:
        null = str(field.can_be_null).lower()
        if field.is_array:
            yield f"{stem}{field.python_name}: array (nullable = {null})"
            inner = f" |   {stem}"
            yield f"{inner}element: {_name(field)} (containsNull = false)"
        else:
            inner = stem
            yield f"{stem}{field.python_name}: {_name(field)} (nullable = {null})"
        if field.is_struct:
            yield from _struct(message, message.struct(field.base), f" |   {inner}")


def _name(field: Field) -> str:
    return "struct" if field.is_struct else _NAMES[SPARK_TYPES[field.base]]
