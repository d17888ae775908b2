"""The default values of fields and structs, and a check for whether Kafka's classes consider a value the default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kafka_records_runtime.kafka.uuids import Uuid, standard_uuid_bytes
from kafka_records_runtime.schema import EMPTY_STRUCT, FieldSchema, MessageSchema, StructSchema
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS

MISSING: Final = object()


def default_of(schema: MessageSchema, field: FieldSchema, classes: Mapping[str, Any] | None = None) -> Any:
    """The default value of a field. For a struct, it is a new dict, or an object of its type in `classes`."""
    if field.default is EMPTY_STRUCT:
        return default_struct(schema, field.base, classes)
    return field.default


def default_struct(schema: MessageSchema, name: str, classes: Mapping[str, Any] | None = None) -> Any:
    """A struct in which every member has its default. If `name` is the name of the message, it is the body of the
    message."""
    values = {field.name: default_of(schema, field, classes) for field in schema.struct(name).fields}
    if schema.flexible is not None:
        values[UNKNOWN_TAGS] = ()
    return values if classes is None else classes[name](**values)


def member_getter(value: object) -> Callable[[str, object], Any]:
    """A function `get(name, fallback)` for a struct that is a dict or an object with attributes."""
    return value.get if isinstance(value, dict) else partial(getattr, value)


def is_default(schema: MessageSchema, field: FieldSchema, value: object) -> bool:
    """Whether Kafka's generated class would consider `value` the default of `field`.

    Arrays and bytes are the default if they are empty. Numbers are compared with `!=` (a NaN is never the default).
    Structs are compared member by member, including unknown tags. The default of a bool must be a bool.
    """
    default = field.default
    if value is None or default is None:
        return value is default
    if default is EMPTY_STRUCT:
        return _is_default_struct(schema, schema.struct(field.base), value)
    if field.is_array:
        return isinstance(value, tuple | list) and not value
    if isinstance(default, bool):
        return value is default
    if isinstance(default, Uuid):
        return (standard_uuid_bytes(value) or value) == default
    return bool(value == default)


def _is_default_struct(schema: MessageSchema, struct: StructSchema, value: object) -> bool:
    get = member_getter(value)
    if get(UNKNOWN_TAGS, ()):
        return False
    fallback = MISSING if not isinstance(value, dict) else None
    for field in struct.fields:
        member = get(field.name, MISSING)
        if member is MISSING and fallback is None:
            continue
        if not is_default(schema, field, member):
            return False
    return True
