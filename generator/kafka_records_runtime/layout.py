"""What a schema means in one version: which fields are there, how they lie, how small they can be, what is
default.

Nothing here touches bytes. The readers, the writers and the JSON conversion ask these questions once per
(schema, version) and keep what they build from the answers in `plans`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from kafka_records_runtime.errors import UnsupportedVersion
from kafka_records_runtime.schema import EMPTY_STRUCT, FieldSchema, MessageSchema, StructSchema, covers
from kafka_records_runtime.wire import FIXED_SIZES

UNKNOWN_TAGS: Final = "unknown_tagged_fields"
"""The member of a struct that keeps tags its schema does not define: a tuple of (tag, bytes), in wire
order."""

MISSING: Final = object()

P = TypeVar("P")


@dataclass(frozen=True)
class FieldLayout:
    """A field of a struct in one version. `present` is false for a field the version does not have."""

    field: FieldSchema
    present: bool
    tagged: bool
    nullable: bool
    compact: bool


def versions_of(schema: MessageSchema) -> range:
    """The versions of a message."""
    return range(0) if schema.versions is None else range(schema.versions[0], schema.versions[1] + 1)


def check_version(schema: MessageSchema, version: int) -> None:
    """Raise UnsupportedVersion unless the message has `version`, TypeError unless that is an int."""
    if not isinstance(version, int):
        raise TypeError(f"a version is an int, not {type(version).__name__}")
    if not covers(schema.versions, version):
        raise UnsupportedVersion(schema.name, version, versions_of(schema))


def plan(schema: MessageSchema, key: tuple[str, int], build: Callable[[], P]) -> P:
    """What `build` gives, built once per schema and `key`."""
    made = schema.plans.get(key)
    if made is None:
        made = schema.plans[key] = build()
    return made  # type: ignore[return-value]


def layouts(struct: StructSchema, version: int) -> tuple[FieldLayout, ...]:
    """The fields of `struct` in declared order, tagged ones among them."""
    return tuple(_layout(field, version) for field in struct.fields)


def _layout(field: FieldSchema, version: int) -> FieldLayout:
    tagged = field.tag is not None and covers(field.tagged, version)
    return FieldLayout(
        field=field,
        present=covers(field.versions, version),
        tagged=tagged,
        nullable=covers(field.nullable, version),
        compact=tagged or covers(field.flexible, version),
    )


# -- sizes ---------------------------------------------------------------------------------------


def smallest_element(schema: MessageSchema, layout: FieldLayout, version: int) -> int:
    """The fewest bytes an element of an array can take."""
    return _smallest(schema, layout.field.base, layout.compact, version)


def _smallest(schema: MessageSchema, base: str, compact: bool, version: int) -> int:
    if base in FIXED_SIZES:
        return FIXED_SIZES[base]
    if base == "string":
        return 1 if compact else 2
    if base in ("bytes", "records"):
        return 1 if compact else 4
    return _smallest_struct(schema, schema.struct(base), version)


def _smallest_struct(schema: MessageSchema, struct: StructSchema, version: int) -> int:
    size = 1 if schema.is_flexible(version) else 0
    for layout in layouts(struct, version):
        if not layout.present or layout.tagged:
            continue
        if layout.field.is_array:
            size += 1 if layout.compact else 4
        elif layout.field.is_struct and layout.nullable:
            size += 1
        else:
            size += _smallest(schema, layout.field.base, layout.compact, version)
    return size


# -- defaults ------------------------------------------------------------------------------------


def default_of(schema: MessageSchema, field: FieldSchema, classes: Mapping[str, Any] | None = None) -> Any:
    """The default value of a field; a struct comes as a new dict, or as the type `classes` has for it."""
    if field.default is EMPTY_STRUCT:
        return default_struct(schema, field.base, classes)
    return field.default


def default_struct(schema: MessageSchema, name: str, classes: Mapping[str, Any] | None = None) -> Any:
    """A struct, or with the message's own name its body, with every member at its default."""
    values = {field.name: default_of(schema, field, classes) for field in schema.struct(name).fields}
    if schema.flexible is not None:
        values[UNKNOWN_TAGS] = ()
    return values if classes is None else classes[name](**values)


def member_getter(value: object) -> Callable[[str, object], Any]:
    """`get(name, fallback)` for a struct that is a dict or an object with attributes."""
    return value.get if isinstance(value, dict) else partial(getattr, value)


def is_default(schema: MessageSchema, field: FieldSchema, value: object) -> bool:
    """Whether Kafka's generated class would call `value` the default of `field`.

    Arrays and bytes compare by being empty, numbers by `!=` (a NaN is never the default), structs by equality
    of every member, unknown tags included. Only a bool is the default of a bool.
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
