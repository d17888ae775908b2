"""Names of generated functions, and the types in their signatures."""

from __future__ import annotations

from typing import Final

from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.model.messages import Field, Message
from kafka_records_runtime.schema import FieldSchema
from kafka_records_runtime.text.casing import snake_case

OWN_NAMES: Final = frozenset(
    [
        "append",
        "count",
        "data",
        "end",
        "items",
        "k",
        "last",
        "m",
        "n",
        "pack",
        "parts",
        "pos",
        "raw",
        "rest",
        "size",
        "tag",
        "tags",
        "unknown",
        "unpack",
        "value",
    ]
)
"""The variables of generated functions in addition to those for fields."""

PYTHON_TYPES: Final = {
    "bool": "bool",
    "int8": "int",
    "int16": "int",
    "uint16": "int",
    "int32": "int",
    "uint32": "int",
    "int64": "int",
    "float64": "float",
    "uuid": "Uuid",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
}


def local(field: FieldSchema) -> str:
    """The local variable for `field` in a generated function."""
    return f"{field.name}_" if field.name in OWN_NAMES else field.name


def function(verb: str, layout: Layout, kind: str = "") -> str:
    """The name of the function for a `verb` (read or write) and a layout: `_read_member_metadata_array_v3`."""
    suffix = f"_{kind}" if kind else ""
    return f"_{verb}_{snake_case(layout.struct.python_name)}{suffix}_v{layout.version}"


def element_type(message: Message, field: Field) -> str:
    if field.is_struct:
        return message.struct(field.base).python_name
    return PYTHON_TYPES[field.base]


def annotation(message: Message, field: Field) -> str:
    """The type of the attribute."""
    text = element_type(message, field)
    if field.is_array:
        text = f"tuple[{text}, ...]"
    return f"{text} | None" if field.can_be_null else text


def parameter(message: Message, field: Field) -> str:
    """The type of the constructor argument for the attribute. For a uuid, the standard library's `uuid.UUID` is also
    allowed."""
    text = annotation(message, field)
    return text if field.base != "uuid" else text.replace("Uuid", "Uuid | _UUID")
