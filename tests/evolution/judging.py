"""Judges a change by bytes and Avro files: random messages of one state are read in the other."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from random import Random
from types import SimpleNamespace
from typing import Any

import fastavro

from kafka_records_codegen.model.messages import Message, Model
from kafka_records_codegen.products import avro
from kafka_records_codegen.text.page import Package
from kafka_records_runtime.errors import DecodeError
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema.layout import (
    ArrayValue,
    FieldLayout,
    StructLayout,
    StructValue,
    Value,
    message_layout,
)
from kafka_records_runtime.wire import walker
from tools.random_messages import random_message

Values = dict[str, Any]


def messages_of(message: Message, version: int, count: int) -> Iterator[Values]:
    """Random messages of a version, and the default message, as dicts of all members."""
    classes = {struct.name: dict for struct in message.structs}
    cls = SimpleNamespace(CODEC=SimpleNamespace(schema=message.schema, classes=classes))
    random = Random(f"{message.name} {version}")
    for number in range(count):
        made = random_message(cls, version, random, plain=True) if number else {}
        data = walker.encode(message.schema, made, version)
        yield walker.decode(message.schema, data, version)[0]


def survives(written: Message, read: Message, version: int, read_version: int, values: Values) -> bool:
    """Whether a message of `written` is read by `read` as the same values, as far as both have fields of the same name
    in these versions."""
    data = walker.encode(written.schema, values, version)
    try:
        found, _ = walker.decode(read.schema, data, read_version)
    except DecodeError:
        return False
    layouts = message_layout(written.schema, version), message_layout(read.schema, read_version)
    return _structs_agree(*layouts, values, found)


def has_unknown_tags(values: Any) -> bool:
    """Whether there were tags that the reader does not know."""
    if isinstance(values, Mapping):
        return bool(values.get("unknown_tagged_fields")) or any(map(has_unknown_tags, values.values()))
    return isinstance(values, tuple) and any(map(has_unknown_tags, values))


def read_by(read: Message, read_version: int, written: Message, version: int, values: Values) -> Values:
    data = walker.encode(written.schema, values, version)
    return walker.decode(read.schema, data, read_version)[0]  # type: ignore[no-any-return]


def _structs_agree(written: StructLayout, read: StructLayout, ours: Values, theirs: Values) -> bool:
    known = {each.field.name: each for each in read.fields if each.value is not None}
    # A tag identifies the same field under any name, also if it is left out.
    tags: dict[int | None, FieldLayout] = {
        each.field.tag: each for each in known.values() if each.field.tag is not None
    }
    pairs = ((each, known.get(each.field.name) or tags.get(each.field.tag)) for each in written.fields)
    return all(
        _agree(each.value, other.value, ours[each.field.name], theirs[other.field.name])
        for each, other in pairs
        if each.value is not None and other is not None and other.value is not None
    )


def _agree(written: Value, read: Value, ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(written, ArrayValue) and isinstance(read, ArrayValue):
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(_agree(written.element, read.element, *pair) for pair in pairs)
    if isinstance(written, StructValue) and isinstance(read, StructValue):
        return _structs_agree(written.layout, read.layout, ours, theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


# ---- Avro


def avro_schemas(model: Model) -> Mapping[str, Any]:
    """The Avro schema of every message by its name, from the generated package."""
    found: dict[str, Any] = {}
    for text in avro.generate(model, Package("acme", None)).values():
        schema = json.loads(text)
        inner = [field["type"][1] for field in schema["fields"] if isinstance(field["type"], list)]
        records = [each for each in inner if isinstance(each, dict) and each.get("type") == "record"]
        if [field["name"] for field in schema["fields"]] == ["key", "value"] and len(records) == 2:
            for record in records:
                found[record["name"]] = {"namespace": schema["namespace"], **record}
        else:
            found[schema["name"]] = schema
    return found


def avro_resolves(written: Any, read: Any, values: Values) -> bool:
    """Whether fastavro can read with the schema `read` what it wrote with `written`."""
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(written), _as_avro(values))
    file.seek(0)
    try:
        fastavro.schemaless_reader(file, fastavro.parse_schema(written), fastavro.parse_schema(read))
    except (fastavro.read.SchemaResolutionError, UnicodeDecodeError):
        return False
    return True


def _as_avro(value: Any) -> Any:
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, Mapping):
        return {
            name: _tags(each) if name == "unknown_tagged_fields" else _as_avro(each) for name, each in value.items()
        }
    if isinstance(value, tuple):
        return [_as_avro(each) for each in value]
    return value


def _tags(tags: tuple[tuple[int, bytes], ...]) -> list[dict[str, Any]]:
    return [{"tag": tag, "data": data} for tag, data in tags]
