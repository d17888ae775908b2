"""Generates Avro schemas: a JSON file next to every codec module, with the same types.

The full name of a type is that of the Python class: `kafka_records.consumer_offsets.offset_commit.OffsetCommitValue`.
So full names are unique in a package, and any number of these files can be combined into one schema. The file of a
record also contains a type with the record's name and the fields `key` and `value`.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from kafka_records_codegen.model.messages import Field, Folder, Message, Model, Struct
from kafka_records_codegen.model.naming import free_name
from kafka_records_codegen.model.units import Unit, units
from kafka_records_codegen.text.page import Package, one_line, origin
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import EMPTY_STRUCT

Json = dict[str, Any]

AVRO_TYPES: Final = {
    "bool": "boolean",
    "int8": "int",
    "int16": "int",
    "uint16": "int",
    "int32": "int",
    "uint32": "long",
    "int64": "long",
    "float64": "double",
    "uuid": "string",
    "string": "string",
    "bytes": "bytes",
    "records": "bytes",
}
"""The Avro type for each spec type. A uuid is Kafka's 22-character text, not Avro's logical type, which has a different
text form."""

_UNKNOWN_TAGS: Final = "unknown_tagged_fields"
_UNSAYABLE: Final = object()
"""Marks a default that JSON cannot express: NaN or an infinite number."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.]")


def generate(model: Model, package: Package) -> dict[str, str]:
    """All Avro schemas, by path below the package."""
    files = {}
    for folder in model.folders:
        for unit in units(folder):
            path = f"{folder.path}/{unit.name}.avsc" if folder.path else f"{unit.name}.avsc"
            files[path] = json.dumps(_schema(folder, unit, package), indent=2, allow_nan=False) + "\n"
    return files


def _schema(folder: Folder, unit: Unit, package: Package) -> Json:
    types = _Types(unit)
    namespace = _NOT_IN_NAMES.sub(lambda match: f"_u{ord(match.group()):x}", package.module(folder.path, unit.name))
    made = types.message(unit.messages[0]) if len(unit.messages) == 1 else types.record(*unit.messages)
    head = {
        # This member comes first, so that the start of the file shows how it was generated.
        "generated": origin(package, [message.source for message in unit.messages]),
        "type": "record",
        "name": made["name"],
        "namespace": namespace,
    }
    return head | made


class _Types:
    """The types in one file. Each is written out at its first use, and referred to by name after that."""

    def __init__(self, unit: Unit) -> None:
        self._title = unit.title
        classes = {struct.python_name for message in unit.messages for struct in message.structs}
        self._record = unit.record.python_name if unit.record else ""
        self._unknown = free_name("UnknownTaggedField", classes | {self._record})
        self._written: set[str] = set()

    def record(self, key: Message, value: Message) -> Json:
        """The type of a record. A missing key or value is null, and so is an unreadable one in decoded columns."""
        members = [
            {
                "name": name,
                "doc": doc,
                "type": ["null", self.message(message)],
                "default": None,
            }
            for name, doc, message in (
                ("key", "The record's key.", key),
                ("value", "The record's value; null for a tombstone.", value),
            )
        ]
        return {"type": "record", "name": self._record, "doc": self._title, "fields": members}

    def message(self, message: Message) -> Json:
        made = self._struct(message, message.root)
        assert isinstance(made, dict)
        return made

    def _struct(self, message: Message, struct: Struct) -> Json | str:
        if struct.python_name in self._written:
            return struct.python_name
        self._written.add(struct.python_name)
        fields = [self._field(message, field) for field in struct.fields]
        if message.flexible:
            fields.append(self._unknown_tags())
        return {"type": "record", "name": struct.python_name, "doc": _purpose(message, struct), "fields": fields}

    def _field(self, message: Message, field: Field) -> Json:
        one = self._struct(message, message.struct(field.base)) if field.is_struct else AVRO_TYPES[field.base]
        kind: Any = {"type": "array", "items": one} if field.is_array else one
        if field.default is None:
            kind = ["null", kind]
        elif field.nullable:
            # In Avro, a default must have the first type of the union.
            kind = [kind, "null"]
        made = {"name": field.python_name, "doc": _about(field), "type": kind}
        default = _default(message, field)
        return made if default is _UNSAYABLE else made | {"default": default}

    def _unknown_tags(self) -> Json:
        one: Json | str = self._unknown
        if self._unknown not in self._written:
            self._written.add(self._unknown)
            one = {
                "type": "record",
                "name": self._unknown,
                "doc": "A tagged field that this build has no name for.",
                "fields": [
                    {"name": "tag", "doc": "Number of the field.", "type": "int"},
                    {"name": "data", "doc": "Content of the field as it was on the wire.", "type": "bytes"},
                ],
            }
        return {
            "name": _UNKNOWN_TAGS,
            "doc": "Tagged fields that this build has no name for, in wire order, if they were kept.",
            "type": {"type": "array", "items": one},
            "default": [],
        }


def _purpose(message: Message, struct: Struct) -> str:
    if struct is not message.root:
        return f"{struct.name} of {message.name}."
    word = "Version" if len(message.versions) == 1 else "Versions"
    return _text(f"{message.history or f'{message.name}.'}\n\n{word} {message.versions}.")


def _about(field: Field) -> str:
    """A field's description in the spec, followed by its name, type and versions in Kafka."""
    tag = "" if field.tag is None else f", tag {field.tag}"
    kafka = f"{field.name}: {field.type}, versions {field.spec_versions}{tag}"
    about = one_line(field.about)
    return _text(f"{about} ({kafka})" if about else kafka)


def _text(text: str) -> str:
    """`text` without lone surrogates, which some JSON readers reject."""
    return text.strip().encode("utf-8", "backslashreplace").decode("utf-8")


def _default(message: Message, field: Field) -> object:
    """The default of a field in JSON, or _UNSAYABLE if JSON cannot express it."""
    value = field.default
    if value is EMPTY_STRUCT:
        return _struct_default(message, message.struct(field.base))
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, tuple):
        return []
    if isinstance(value, float) and not math.isfinite(value):
        return _UNSAYABLE
    return value


def _struct_default(message: Message, struct: Struct) -> object:
    members = {field.python_name: _default(message, field) for field in struct.fields}
    if message.flexible:
        members[_UNKNOWN_TAGS] = []
    return _UNSAYABLE if _UNSAYABLE in members.values() else members
