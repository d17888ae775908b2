"""Reads a spec file into values: messages, common structs and fields.

This module contains the grammar of each attribute. `checks` checks how attributes depend on each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, cast, get_args

from kafka_records_codegen.spec.element import INT16, INT32, MESSAGE_NAME, MESSAGE_NAME_RULE, AttributeReader, Element
from kafka_records_codegen.spec.json_text import Node, leading_comment, parse
from kafka_records_codegen.spec.suggestions import camel_case, element_of, type_like
from kafka_records_codegen.spec.versions import Versions
from kafka_records_codegen.spec.violations import SpecText
from kafka_records_runtime.schema import PRIMITIVES

MessageType = Literal["request", "response", "header", "metadata", "data", "coordinator-key", "coordinator-value"]
MESSAGE_TYPES: Final[tuple[MessageType, ...]] = get_args(MessageType)
NOT_STORED: Final[frozenset[MessageType]] = frozenset(("request", "response", "header"))
"""Types of messages between clients and brokers, which no topic contains. All other messages are stored: keys, values,
metadata records, and the messages inside them."""
LISTENERS: Final = ("broker", "controller")
OLDER_LISTENERS: Final = ("zkBroker", *LISTENERS)
ENTITY_TYPES: Final = {
    "unknown": "",
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}
"""The field type that each entity type requires. `unknown` allows any type."""

_MESSAGE: Final = (
    *("type", "name", "validVersions", "flexibleVersions", "apiKey", "deprecatedVersions", "listeners"),
    *("latestVersionUnstable", "fields", "commonStructs"),
)
_STRUCT: Final = ("name", "versions", "deprecatedVersions", "fields")
_FIELD: Final = (
    *(
        "name",
        "type",
        "versions",
        "fields",
        "nullableVersions",
        "default",
        "ignorable",
        "tag",
        "taggedVersions",
    ),
    *("mapKey", "entityType", "flexibleVersions", "zeroCopy", "about"),
)
_FIELD_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_STRUCT_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class FieldType:
    """The type of a field. `base` is a primitive type or struct name, for an array that of its elements."""

    base: str
    is_array: bool

    @property
    def is_struct(self) -> bool:
        return self.base not in PRIMITIVES

    def __str__(self) -> str:
        return f"[]{self.base}" if self.is_array else self.base


@dataclass(frozen=True)
class FieldSpec(Element):
    """A field as written in the file. `flexible` is None if it depends on the message; `default` is a text."""

    name: str
    type: FieldType
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    flexible: Versions | None
    default: str
    ignorable: bool
    map_key: bool
    zero_copy: bool
    entity_type: str | None
    about: str
    fields: tuple[FieldSpec, ...]


@dataclass(frozen=True)
class StructSpec(Element):
    """A common struct as written in the file."""

    name: str
    versions: Versions
    fields: tuple[FieldSpec, ...]


@dataclass(frozen=True)
class MessageSpec(Element):
    """A message as written in its file. Without `versions`, the API is retired, and nothing is generated for it."""

    type: MessageType
    name: str
    versions: Versions
    flexible: Versions
    api_key: int | None
    listeners: tuple[str, ...]
    latest_version_unstable: bool
    fields: tuple[FieldSpec, ...]
    common_structs: tuple[StructSpec, ...]
    history: str

    @property
    def is_retired(self) -> bool:
        return self.versions.is_empty and self.is_sound("validVersions")


def read_message(source: SpecText) -> MessageSpec | None:
    """The message in `source`, which receives any violations. None if there is no JSON object."""
    node = parse(source)
    if node is None:
        return None
    if node.kind != "object":
        source.report(node.position, "", f"a spec must be one JSON object, found {node.describe()}")
        return None
    reader = _Reader(source, node, "", _MESSAGE, "a message")
    kind = reader.choice("type", MESSAGE_TYPES, required=True)
    read_field = partial(_read_field, structs=frozenset(reader.names_in("commonStructs")))
    return MessageSpec(
        type=cast(MessageType, kind or "data"),
        name=reader.name(MESSAGE_NAME, MESSAGE_NAME_RULE),
        versions=reader.valid_versions(),
        flexible=reader.versions("flexibleVersions"),
        api_key=reader.integer("apiKey", INT16),
        listeners=reader.choices("listeners", OLDER_LISTENERS if source.older_dialect else LISTENERS),
        latest_version_unstable=reader.boolean("latestVersionUnstable"),
        fields=reader.children("fields", partial(read_field, neighbours=tuple(reader.names_in("fields")))),
        common_structs=reader.children("commonStructs", partial(_read_struct, read_field=read_field)),
        history=leading_comment(source.text),
        **reader.finish("deprecatedVersions"),
    )


def _read_struct(source: SpecText, node: Node, path: str, read_field: Callable[..., FieldSpec]) -> StructSpec:
    reader = _Reader(source, node, path, _STRUCT, "a common struct")
    return StructSpec(
        name=reader.name(_STRUCT_NAME, "letters, digits and underscores, starting with an upper-case letter"),
        versions=reader.versions("versions", required="a range such as 0+"),
        fields=reader.children("fields", partial(read_field, neighbours=tuple(reader.names_in("fields")))),
        **reader.finish("deprecatedVersions"),
    )


def _read_field(
    source: SpecText, node: Node, path: str, structs: frozenset[str], neighbours: tuple[str, ...]
) -> FieldSpec:
    """Read a field. `structs` are the names of structs that its type may use; `neighbours` are the names of other
    fields."""
    reader = _Reader(source, node, path, _FIELD, "a field")
    tagged = reader.versions("taggedVersions")
    if tagged.is_empty and reader.is_sound("taggedVersions"):
        versions = reader.versions("versions", required="a range such as 0+")
    else:
        versions = reader.versions("versions", default=tagged)
    return FieldSpec(
        name=reader.name(_FIELD_NAME, "letters and digits, starting with a letter", neighbours),
        type=reader.field_type(structs),
        versions=versions,
        nullable=reader.versions("nullableVersions"),
        tag=reader.integer("tag", INT32),
        tagged=tagged,
        flexible=reader.versions("flexibleVersions") if reader.text("flexibleVersions") else None,
        default=reader.text("default"),
        ignorable=reader.boolean("ignorable"),
        map_key=reader.boolean("mapKey"),
        zero_copy=reader.boolean("zeroCopy"),
        entity_type=reader.choice("entityType", tuple(ENTITY_TYPES)),
        about=reader.text("about").strip(),
        fields=reader.children(
            "fields", partial(_read_field, structs=structs, neighbours=tuple(reader.names_in("fields")))
        ),
        **reader.finish(),
    )


class _Reader(AttributeReader):
    """Reads the attributes that only messages and fields have."""

    def valid_versions(self) -> Versions:
        """The versions of a message. A retired API has none, which the spec writes as `none`."""
        versions = self.versions("validVersions", required="a closed range such as 0-2, or none for a retired API")
        text = self.text("validVersions").strip()
        if versions.is_empty and text != "none" and self.is_sound("validVersions"):
            self.refuse(
                "validVersions", f"{text!r} is an empty range; write the lower version first, or none for a retired API"
            )
        return versions

    def field_type(self, structs: frozenset[str]) -> FieldType:
        text = self.text("type").strip()
        if not text:
            if self.is_sound("type"):
                self.refuse("type", f"is missing; it must be {_TYPE_RULE}")
            return FieldType("int32", False)
        is_array = text.startswith("[]")
        base = text.removeprefix("[]").strip()
        if is_array and not base:
            self.refuse("type", "an array needs the type of its elements, such as []int32")
        elif base.startswith("[]"):
            self.refuse("type", "arrays of arrays are not supported; use an array of structs that contain an array")
        elif base == "records" and is_array:
            self.refuse("type", "arrays of records are not supported")
        elif base not in PRIMITIVES and _STRUCT_NAME.fullmatch(base) is None:
            meant = type_like(text, structs | {camel_case(element_of(text))} if self.has("fields") else structs)
            hint = f"it is {_TYPE_RULE}" if meant is None else f"did you mean {meant}?"
            self.refuse("type", f"unknown type {text!r}; {hint}")
        return FieldType(base, is_array)


_TYPE_RULE: Final = (
    f"one of {', '.join(PRIMITIVES)}, the name of a struct (which starts with an upper-case letter), "
    "or [] and one of these for an array"
)
