"""The four forms of a message, and its schema, as trees of one kind, so that they can be compared.

Each function reads one form with its own library, without our code.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql import types as spark

from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import MessageSchema

UNKNOWN_TAGS: Final = "unknown_tagged_fields"

TABLE: Final[Mapping[str, Mapping[str, str]]] = {
    spec: dict(zip(("arrow", "spark", "avro", "python"), row, strict=True))
    for spec, row in {
        "bool": ("bool", "BooleanType()", "boolean", "bool"),
        "int8": ("int8", "ByteType()", "int", "int"),
        "int16": ("int16", "ShortType()", "int", "int"),
        "uint16": ("int32", "IntegerType()", "int", "int"),
        "int32": ("int32", "IntegerType()", "int", "int"),
        "uint32": ("int64", "LongType()", "long", "int"),
        "int64": ("int64", "LongType()", "long", "int"),
        "float64": ("double", "DoubleType()", "double", "float"),
        "uuid": ("string", "StringType()", "string", "Uuid"),
        "string": ("string", "StringType()", "string", "str"),
        "bytes": ("binary", "BinaryType()", "bytes", "bytes"),
        "records": ("binary", "BinaryType()", "bytes", "bytes"),
    }.items()
}
"""By type in a spec, its name in each language. This is a second copy, which is not taken from the code."""


@dataclass(frozen=True)
class Leaf:
    """A type without parts, as its own library prints it."""

    name: str


@dataclass(frozen=True)
class Array:
    element: Node
    null_elements: bool


@dataclass(frozen=True)
class Member:
    name: str
    nullable: bool
    node: Node


@dataclass(frozen=True)
class Struct:
    members: tuple[Member, ...]


Node = Leaf | Array | Struct


# ---- one function per spelling


def of_schema(message: MessageSchema, tags: bool) -> Node:
    """The reference for the other forms. With `tags`, structs of a message with flexible versions also keep unknown
    ones."""
    pair = Struct((Member("tag", False, Leaf("int32")), Member("data", False, Leaf("bytes"))))
    kept = Member(UNKNOWN_TAGS, False, Array(pair, False))

    def struct(name: str) -> Struct:
        (found,) = (each for each in message.structs if each.name == name)
        members = [
            Member(each.name, each.nullable is not None or each.default is None, field(each.type))
            for each in found.fields
        ]
        return Struct((*members, kept) if tags and message.flexible else tuple(members))

    def field(spelled: str) -> Node:
        if spelled.startswith("[]"):
            return Array(field(spelled[2:]), False)
        return Leaf(spelled) if spelled in TABLE else struct(spelled)

    return struct(message.name)


def of_arrow(type: pa.DataType) -> Node:
    if pa.types.is_struct(type):
        fields = (type.field(index) for index in range(type.num_fields))
        return Struct(tuple(Member(each.name, each.nullable, of_arrow(each.type)) for each in fields))
    if pa.types.is_list(type):
        return Array(of_arrow(type.value_type), type.value_field.nullable)
    return Leaf(str(type))


def of_spark(type: spark.DataType) -> Node:
    if isinstance(type, spark.StructType):
        return Struct(tuple(Member(each.name, each.nullable, of_spark(each.dataType)) for each in type.fields))
    if isinstance(type, spark.ArrayType):
        return Array(of_spark(type.elementType), type.containsNull)
    return Leaf(repr(type))


def of_avro(schema: Any) -> Node:
    """A schema as JSON. A name stands for the type that was defined under it further up in the text."""
    return _Avro().node(schema)


class _Avro:
    def __init__(self) -> None:
        self._defined: dict[str, Node] = {}

    def node(self, schema: Any) -> Node:
        if isinstance(schema, str):
            return self._defined.get(schema, Leaf(schema))
        if schema["type"] == "array":
            nullable, element = self._optional(schema["items"])
            return Array(element, nullable)
        assert schema["type"] == "record", schema
        members = tuple(Member(each["name"], *self._optional(each["type"])) for each in schema["fields"])
        assert schema["name"] not in self._defined
        self._defined[schema["name"]] = Struct(members)
        return self._defined[schema["name"]]

    def _optional(self, schema: Any) -> tuple[bool, Node]:
        if not isinstance(schema, list):
            return False, self.node(schema)
        (one,) = (each for each in schema if each != "null")
        assert len(schema) == 2, schema
        return True, self.node(one)


def of_class(annotation: Any) -> Node:
    """A generated class, or the annotation of one of its members. Unknown tagged fields are pairs there."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        hints = typing.get_type_hints(annotation)
        names = annotation.__struct_fields__
        return Struct(tuple(Member(name, *_optional(hints[name])) for name in names))
    if typing.get_origin(annotation) is tuple:
        element, *rest = typing.get_args(annotation)
        if rest == [...]:
            nullable, node = _optional(element)
            return Array(node, nullable)
        tag, data = (Leaf(each.__name__) for each in (element, *rest))
        return Struct((Member("tag", False, tag), Member("data", False, data)))
    assert annotation in (bool, int, float, str, bytes, Uuid), annotation
    return Leaf(annotation.__name__)


def _optional(annotation: Any) -> tuple[bool, Node]:
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return False, of_class(annotation)
    (one,) = (each for each in typing.get_args(annotation) if each is not type(None))
    assert len(typing.get_args(annotation)) == 2, annotation
    return True, of_class(one)


# ---- comparing


def without_tags(node: Node) -> Node:
    """The tree without unknown tagged fields, for the forms that always have them."""
    match node:
        case Struct(members):
            kept = (each for each in members if each.name != UNKNOWN_TAGS)
            return Struct(tuple(Member(each.name, each.nullable, without_tags(each.node)) for each in kept))
        case Array(element, null_elements):
            return Array(without_tags(element), null_elements)
        case _:
            return node


def differences(schema: Node, spelling: str, found: Node, path: str = "") -> Iterator[str]:
    """The differences between a form and the one that follows from the schema with TABLE; `spelling` names a column of
    it."""
    where = path or "the message"
    match schema, found:
        case Leaf(spec), Leaf(name):
            if name != TABLE[spec][spelling]:
                yield f"{where}: {spec} is {name}, not {TABLE[spec][spelling]}"
        case Array(element, null_elements), Array(other, other_nulls):
            if null_elements != other_nulls:
                yield f"{where}[]: {'may' if other_nulls else 'may not'} be null"
            yield from differences(element, spelling, other, f"{path}[]")
        case Struct(members), Struct(others):
            names, other_names = [each.name for each in members], [each.name for each in others]
            if names != other_names:
                yield f"{where}: has {', '.join(other_names)}, not {', '.join(names)}"
                return
            for one, other_one in zip(members, others, strict=True):
                inner = f"{path}.{one.name}" if path else one.name
                if one.nullable != other_one.nullable:
                    yield f"{inner}: {'may' if other_one.nullable else 'may not'} be null"
                yield from differences(one.node, spelling, other_one.node, inner)
        case _:
            yield f"{where}: is {type(found).__name__}, not {type(schema).__name__}"
