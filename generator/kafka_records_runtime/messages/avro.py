"""Avro support: the schemas next to generated modules, and messages as values of these schemas.

This module does not read or write Avro's own format. Use `fastavro` for that, with these schemas and values.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, TypeVar, cast, overload

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.kafka.uuids import Uuid, uuid_text
from kafka_records_runtime.schema import FieldSchema, MessageSchema
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS
from kafka_records_runtime.wire.failure import join_path

T = TypeVar("T")


class AvroError(KafkaRecordsError, ValueError):
    """A value is not the expected message. `detail` ends a sentence that starts with `path`."""

    def __init__(self, message_name: str, path: str, detail: str) -> None:
        super().__init__(message_name, path, detail)
        self.message_name = message_name
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.message_name}: {self.path or 'the message'} {self.detail}"


def read_schema(module: str, name: str | None = None) -> dict[str, Any]:
    """The schema in the file next to `module`. With `name`, only the type with that name (a record's key or value).

    Each of these types is complete, because a key and its value share no types. The file is parsed at each call, and
    may be inside a zip file. The package is located but not imported, because importing it needs msgspec.
    """
    package, _, stem = module.rpartition(".")
    found: Any = find_spec(package)
    (folder,) = found.submodule_search_locations
    schema: dict[str, Any] = json.loads(found.loader.get_data(os.path.join(folder, f"{stem}.avsc")))
    if name is None or schema["name"] == name:
        return schema
    (message,) = (field["type"][1] for field in schema["fields"] if field["type"][1]["name"] == name)
    return {"type": "record", "name": name, "namespace": schema["namespace"], **message}


def to_avro(message: Any) -> Any:
    """A message of a generated class as a value of its Avro schema. None, the value of a tombstone, remains None.

    A struct becomes a dict of all its members, an array becomes a list, and a uuid becomes Kafka's 22 characters. The
    unknown tagged fields of a message with flexible versions become a list of `{"tag": …, "data": …}`. Raises TypeError
    for anything that is not a message.
    """
    if message is None:
        return None
    try:
        schema = type(message).CODEC.schema
    except AttributeError:
        raise TypeError(f"a message must be of a generated class, not {type(message).__name__}") from None
    return _value_of_struct(schema, schema.root.name, message)


@overload
def from_avro(cls: type[T], value: Mapping[str, Any]) -> T: ...


@overload
def from_avro(cls: type[T], value: None) -> None: ...


@overload
def from_avro(cls: type[T], value: Mapping[str, Any] | None) -> T | None: ...


def from_avro(cls: type[T], value: Mapping[str, Any] | None) -> T | None:
    """The reverse of `to_avro`: the message of class `cls` from a value as returned by `fastavro`.

    Missing members get their defaults. Raises AvroError for a value of another form. Numbers and texts are not checked;
    `encode` checks them for a version.
    """
    if value is None:
        return None
    codec = cast(Any, cls).CODEC
    try:
        return cast(T, _Reader(codec.schema, codec.classes).struct(codec.schema.root.name, value))
    except _Misfit as misfit:
        raise AvroError(codec.schema.name, join_path(reversed(misfit.parts)), misfit.detail) from None


def _value_of_struct(schema: MessageSchema, name: str, struct: Any) -> dict[str, Any]:
    value = {
        field.name: _value_of_field(schema, field, getattr(struct, field.name)) for field in schema.struct(name).fields
    }
    if schema.flexible is not None:
        value[UNKNOWN_TAGS] = [{"tag": tag, "data": data} for tag, data in struct.unknown_tagged_fields]
    return value


def _value_of_field(schema: MessageSchema, field: FieldSchema, held: Any) -> Any:
    if held is None:
        return None
    if field.is_struct:
        if field.is_array:
            return [_value_of_struct(schema, field.base, item) for item in held]
        return _value_of_struct(schema, field.base, held)
    if field.base == "uuid":
        return [uuid_text(item) for item in held] if field.is_array else uuid_text(held)
    return list(held) if field.is_array else held


class _Misfit(Exception):
    """A value does not fit its type. Each enclosing level adds its part of the path to the error."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        self.parts: list[str] = []


class _Reader:
    def __init__(self, schema: MessageSchema, classes: Mapping[str, Any]) -> None:
        self._schema = schema
        self._classes = classes

    def struct(self, name: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _Misfit(f"must be a dict, found {type(value).__name__}")
        fields = {field.name: field for field in self._schema.struct(name).fields}
        members: dict[str, Any] = {}
        for key, held in value.items():
            if key in fields:
                members[key] = _at(key, self._field, fields[key], held)
            elif key == UNKNOWN_TAGS and self._schema.flexible is not None:
                members[key] = _at(key, _tag_pairs, held)
            else:
                raise _Misfit(f"has the key {key!r}, which is not a field")
        return self._classes[name](**members)

    def _field(self, field: FieldSchema, value: Any) -> Any:
        if value is None:
            return None
        return self._one(field, value) if not field.is_array else _items(value, lambda item: self._one(field, item))

    def _one(self, field: FieldSchema, value: Any) -> Any:
        if field.is_struct:
            return self.struct(field.base, value)
        if field.base == "uuid":
            return _uuid(value)
        if isinstance(value, str) and field.base in ("bytes", "records"):
            # This default is in Avro's own notation, which fastavro does not convert to bytes (fastavro issue 869).
            return _bytes(value)
        return value


def _at(part: str, read: Callable[..., Any], *values: Any) -> Any:
    try:
        return read(*values)
    except _Misfit as misfit:
        misfit.parts.append(part)
        raise


def _items(values: Any, read: Callable[[Any], Any]) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple):
        raise _Misfit(f"must be a list, found {type(values).__name__}")
    return tuple(_at(f"[{index}]", read, item) for index, item in enumerate(values))


def _uuid(value: Any) -> Uuid:
    try:
        return Uuid.from_string(value)
    except (TypeError, ValueError):
        raise _Misfit(f"must be a uuid, written as 22 characters of URL-safe base64, found {value!r}") from None


def _bytes(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise _Misfit(f"must be bytes, found {text!r}") from None


def _tag_pairs(value: Any) -> tuple[Any, ...]:
    return _items(value, _tag_pair)


def _tag_pair(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, Mapping) or value.keys() != {"tag", "data"}:
        raise _Misfit(f"must be a dict with tag and data, found {value!r}")
    return value["tag"], value["data"]
