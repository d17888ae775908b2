"""Hypothesis strategies for messages of generated classes, from only their schemas."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import FieldSchema, MessageSchema, covers

_LIMITS = {"int8": (1, True), "int16": (2, True), "int32": (4, True), "int64": (8, True)} | {
    "uint16": (2, False),
    "uint32": (4, False),
}


def _primitive(name: str) -> st.SearchStrategy[Any]:
    if name in _LIMITS:
        size, signed = _LIMITS[name]
        top = 2 ** (8 * size - signed) - 1
        return st.integers(-top - 1 if signed else 0, top) | st.sampled_from([0, top])
    if name == "bool":
        return st.booleans()
    if name == "float64":
        return st.floats(allow_nan=False)
    if name == "uuid":
        return st.binary(min_size=16, max_size=16).map(Uuid)
    if name == "string":
        return st.text(max_size=20) | st.integers(120, 140).map(lambda size: "x" * size)
    return st.binary(max_size=20) | st.integers(120, 140).map(bytes)


@cache
def messages(cls: Any, version: int) -> st.SearchStrategy[Any]:
    """Messages of a generated class with values for every field that `version` has."""
    schema: MessageSchema = cls.CODEC.schema
    return _structs(schema, cls.CODEC.classes, schema.root.name, version)


def _structs(schema: MessageSchema, classes: Any, name: str, version: int) -> st.SearchStrategy[Any]:
    members = {
        field.name: _members(schema, classes, field, version)
        for field in schema.struct(name).fields
        if covers(field.versions, version)
    }
    if schema.is_flexible(version):
        known = max((field.tag for field in schema.struct(name).fields if field.tag is not None), default=-1)
        members["unknown_tagged_fields"] = st.just(()) | st.dictionaries(
            st.integers(known + 1, 300), st.binary(max_size=9), max_size=3
        ).map(lambda tags: tuple(sorted(tags.items())))
    return st.builds(classes[name], **members)


def _members(schema: MessageSchema, classes: Any, field: FieldSchema, version: int) -> st.SearchStrategy[Any]:
    one = _structs(schema, classes, field.base, version) if field.is_struct else _primitive(field.base)
    values = st.lists(one, max_size=3).map(tuple) if field.is_array else one
    return values | st.none() if covers(field.nullable, version) else values
