"""Builds a function that appends a value to a bytearray, from a schema and a version.

It is the counterpart of `readers`. A writer accepts structs as dicts (as returned by `decode` without classes) or as
objects with attributes. Every value is checked before anything is returned. As an error propagates, the path to the
failing value is added to it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from kafka_records_runtime.errors import (
    FieldNotInVersion,
    NullNotAllowed,
    TagClash,
    TagsNotSupported,
    TagsUnsorted,
    UnknownField,
)
from kafka_records_runtime.schema import FieldSchema, MessageSchema
from kafka_records_runtime.schema.defaults import MISSING, default_of, is_default, member_getter
from kafka_records_runtime.schema.layout import (
    UNKNOWN_TAGS,
    UVARINT,
    ArrayValue,
    FixedValue,
    SizedValue,
    StructLayout,
    StructValue,
    Value,
    message_layout,
    plan,
)
from kafka_records_runtime.wire import primitives, scalars
from kafka_records_runtime.wire.failure import WriteFailure

Writer = Callable[[bytearray, Any], None]

_LENGTHS: Final[dict[str, Callable[[bytearray, int], None]]] = {
    "int16": primitives.write_length16,
    "int32": primitives.write_length32,
    UVARINT: primitives.write_compact_length,
}
"""Writers of lengths and counts (-1 for null), by their type in the layout."""

_MARKERS: Final = {"int8": (b"\xff", b"\x01"), UVARINT: (b"\x00", b"\x01")}
"""For each type of marker: the bytes that mean null, and the bytes before a non-null struct."""


def message_writer(schema: MessageSchema, version: int) -> Writer:
    """The writer of a whole message. The message must have the version."""
    return plan(schema, ("write", version), lambda: _Builder(schema).struct(message_layout(schema, version)))


def member(schema: MessageSchema, field: FieldSchema, get: Callable[[str, object], Any], value: object) -> Any:
    """The value of a field in the struct `value`, or the field's default if `value` is a dict without the field."""
    found = get(field.name, MISSING)
    if found is not MISSING:
        return found
    if isinstance(value, dict):
        return default_of(schema, field)
    raise scalars.wrong_type(f"a struct with {field.name}", value)


def check_absent(schema: MessageSchema, field: FieldSchema, value: object) -> None:
    """Reject a value that the version cannot contain. If the field is ignorable, Kafka silently drops the value."""
    if not field.ignorable and not is_default(schema, field, value):
        raise WriteFailure(FieldNotInVersion)


def check_keys(value: object, names: frozenset[str]) -> None:
    """Reject a dict with a key that is not a member."""
    if isinstance(value, dict):
        for key in value:
            if key not in names:
                raise WriteFailure(UnknownField, str(key))


class _Builder:
    def __init__(self, schema: MessageSchema) -> None:
        self._schema = schema
        self._structs: dict[str, Writer] = {}

    def _value(self, value: Value) -> Writer:
        match value:
            case FixedValue():
                return _fixed(value.type)
            case SizedValue(type="string"):
                return _variable(_LENGTHS[value.length], _text_bytes, value.nullable)
            case SizedValue():
                return _variable(_LENGTHS[value.length], scalars.as_raw, value.nullable)
            case ArrayValue():
                return _elements(_LENGTHS[value.count], self._value(value.element), value.nullable)
            case StructValue():
                writer = self.struct(value.layout)
                return writer if value.marker is None else _optional(writer, *_MARKERS[value.marker])

    def struct(self, layout: StructLayout) -> Writer:
        """The writer of a struct. It writes the untagged members in declared order and then, in flexible versions, the
        tagged ones."""
        made = self._structs.get(layout.name)
        if made is None:
            made = self._structs[layout.name] = self._struct(layout)
        return made

    def _struct(self, layout: StructLayout) -> Writer:
        schema = self._schema
        absent = layout.absent
        untagged = tuple((member.field, self._value(member.value)) for member in layout.body)
        names = frozenset((UNKNOWN_TAGS, *(each.field.name for each in layout.fields)))
        write_tags = self._tags(layout) if layout.is_flexible else _refuse_tags

        def write(out: bytearray, value: Any) -> None:
            if value is None:
                raise WriteFailure(NullNotAllowed)
            check_keys(value, names)
            get = member_getter(value)
            field = None
            try:
                for field in absent:
                    check_absent(schema, field, member(schema, field, get, value))
                for field, writer in untagged:
                    writer(out, member(schema, field, get, value))
            except WriteFailure as failure:
                if field is not None:
                    failure.parts.append(field.name)
                raise
            write_tags(out, value, get)

        return write

    # -- tagged fields ---------------------------------------------------------------------------

    def _tags(self, layout: StructLayout) -> Callable[[bytearray, Any, Any], None]:
        schema = self._schema
        tagged = tuple((each.field, self._value(each.value)) for each in layout.fields if each.value and each.tagged)
        names = {each.field.tag: each.field.name for each in layout.fields if each.field.tag is not None}

        def write(out: bytearray, value: Any, get: Callable[[str, object], Any]) -> None:
            payloads = _unknown_payloads(get(UNKNOWN_TAGS, ()), names)
            for field, writer in tagged:
                payload = bytearray()
                try:
                    held = member(schema, field, get, value)
                    writer(payload, held)
                except WriteFailure as failure:
                    failure.parts.append(field.name)
                    raise
                if field.tag is not None and not is_default(schema, field, held):
                    payloads.append((field.tag, payload))
            payloads.sort(key=_tag_of)
            primitives.write_uvarint(out, len(payloads))
            for tag, content in payloads:
                primitives.write_uvarint(out, tag)
                primitives.write_uvarint(out, len(content))
                out += content

        return write


def _fixed(type: str) -> Writer:
    match type:
        case "bool":
            return lambda out, value: primitives.write_bool(out, scalars.as_bool(value))
        case "float64":
            return lambda out, value: primitives.write_float64(out, scalars.as_float(value))
        case "uuid":
            return _uuid
        case _:
            return _integer(type)


def _integer(type: str) -> Writer:
    pack = struct.Struct(f">{primitives.INTEGERS[type][0]}").pack

    def write(out: bytearray, value: Any) -> None:
        out += pack(scalars.as_integer(value, type))

    return write


def _uuid(out: bytearray, value: Any) -> None:
    out += scalars.as_uuid(value)


def _text_bytes(value: object) -> bytes:
    return primitives.text_bytes(scalars.as_text(value))


def _variable(
    write_length: Callable[[bytearray, int], None], content: Callable[[object], bytes], nullable: bool
) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        if value is None:
            _check_null(nullable)
            write_length(out, -1)
            return
        raw = content(value)
        write_length(out, len(raw))
        out += raw

    return write


def _elements(write_count: Callable[[bytearray, int], None], element: Writer, nullable: bool) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        if value is None:
            _check_null(nullable)
            write_count(out, -1)
            return
        items = scalars.as_items(value)
        write_count(out, len(items))
        index = 0
        try:
            for index, item in enumerate(items):  # noqa: B007  (the handler names the index)
                element(out, item)
        except WriteFailure as failure:
            failure.parts.append(f"[{index}]")
            raise

    return write


def _optional(writer: Writer, null: bytes, present: bytes) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        if value is None:
            out += null
        else:
            out += present
            writer(out, value)

    return write


def _check_null(nullable: bool) -> None:
    if not nullable:
        raise WriteFailure(NullNotAllowed)


def _refuse_tags(out: bytearray, value: Any, get: Callable[[str, object], Any]) -> None:
    if get(UNKNOWN_TAGS, ()):
        failure = WriteFailure(TagsNotSupported)
        failure.parts.append(UNKNOWN_TAGS)
        raise failure


def _tag_of(tagged: tuple[int, bytes | bytearray]) -> int:
    return tagged[0]


def _unknown_payloads(unknown: Any, names: dict[int, str]) -> list[tuple[int, bytes | bytearray]]:
    """The unknown tags of a struct. They must be ascending and must not include a tag that the struct defines."""
    payloads: list[tuple[int, bytes | bytearray]] = []
    if unknown == ():
        return payloads
    index = None
    try:
        previous = -1
        for index, pair in enumerate(scalars.as_items(unknown)):  # noqa: B007  (the handler names the index)
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise scalars.wrong_type("a pair of int and bytes", pair)
            tag = scalars.as_tag(pair[0], primitives.MAX_TAG)
            if tag in names:
                raise WriteFailure(TagClash, tag, names[tag])
            if tag <= previous:
                raise WriteFailure(TagsUnsorted, tag, previous)
            previous = tag
            payloads.append((tag, scalars.as_raw(pair[1])))
    except WriteFailure as failure:
        failure.parts.extend([UNKNOWN_TAGS] if index is None else [f"[{index}]", UNKNOWN_TAGS])
        raise
    return payloads
