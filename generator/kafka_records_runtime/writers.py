"""Writers: from a schema and a version to a function that appends a value to a bytearray.

The mirror of `readers`. A writer takes structs as dicts (`decode` without classes makes them) or as objects
with attributes; it checks every value before anything is returned, and a failure collects its path on the way
up.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kafka_records_runtime import scalars, wire
from kafka_records_runtime.errors import (
    FieldNotInVersion,
    NullNotAllowed,
    TagClash,
    TagsNotSupported,
    TagsUnsorted,
    UnknownField,
)
from kafka_records_runtime.failure import WriteFailure
from kafka_records_runtime.layout import (
    MISSING,
    UNKNOWN_TAGS,
    FieldLayout,
    default_of,
    is_default,
    layouts,
    member_getter,
    plan,
)
from kafka_records_runtime.schema import MessageSchema

Writer = Callable[[bytearray, Any], None]


def message_writer(schema: MessageSchema, version: int) -> Writer:
    """The writer of a whole message. The version must be one the message has."""
    return plan(schema, ("write", version), lambda: _Builder(schema, version).struct(schema.root.name))


def member(schema: MessageSchema, layout: FieldLayout, get: Callable[[str, object], Any], value: object) -> Any:
    """A field of the struct `value`: what it holds, or the default when a dict leaves it out."""
    found = get(layout.field.name, MISSING)
    if found is not MISSING:
        return found
    if isinstance(value, dict):
        return default_of(schema, layout.field)
    raise scalars.wrong_type(f"a struct with {layout.field.name}", value)


def check_absent(schema: MessageSchema, layout: FieldLayout, value: object) -> None:
    """Refuse a value that the version cannot carry, unless the field is ignorable (Kafka drops it then)."""
    if not layout.field.ignorable and not is_default(schema, layout.field, value):
        raise WriteFailure(FieldNotInVersion)


def check_keys(value: object, names: frozenset[str]) -> None:
    """Refuse a dict with a key that is no member."""
    if isinstance(value, dict):
        for key in value:
            if key not in names:
                raise WriteFailure(UnknownField, str(key))


class _Builder:
    def __init__(self, schema: MessageSchema, version: int) -> None:
        self._schema = schema
        self._version = version
        self._flexible = schema.is_flexible(version)

    def _primitive(self, base: str, compact: bool, nullable: bool) -> Writer:
        if base in wire.INTEGERS:
            return _integer(base)
        match base:
            case "bool":
                return lambda out, value: wire.write_bool(out, scalars.as_bool(value))
            case "float64":
                return lambda out, value: wire.write_float64(out, scalars.as_float(value))
            case "uuid":
                return _uuid
            case "string":
                write_length = wire.write_compact_length if compact else wire.write_length16
                return _variable(write_length, lambda value: wire.text_bytes(scalars.as_text(value)), nullable)
            case _:
                write_length = wire.write_compact_length if compact else wire.write_length32
                return _variable(write_length, scalars.as_raw, nullable)

    def _field(self, layout: FieldLayout) -> Writer:
        field = layout.field
        if field.is_array:
            if field.is_struct:
                element = self.struct(field.base)
            else:
                element = self._primitive(field.base, layout.compact, nullable=False)
            write_count = wire.write_compact_length if layout.compact else wire.write_length32
            return _elements(write_count, element, layout.nullable)
        if not field.is_struct:
            return self._primitive(field.base, layout.compact, layout.nullable)
        writer = self.struct(field.base)
        if not layout.nullable:
            return writer
        null, present = (b"\x00", b"\x01") if layout.tagged else (b"\xff", b"\x01")
        return _optional(writer, null, present)

    def struct(self, name: str) -> Writer:
        """The writer of a struct: untagged members in declared order, then, in flexible versions, the tagged
        ones."""
        schema = self._schema
        fields = layouts(schema.struct(name), self._version)
        absent = tuple(layout for layout in fields if not layout.present)
        untagged = tuple((layout, self._field(layout)) for layout in fields if layout.present and not layout.tagged)
        names = frozenset((UNKNOWN_TAGS, *(layout.field.name for layout in fields)))
        write_tags = self._tags(fields) if self._flexible else _refuse_tags

        def write(out: bytearray, value: Any) -> None:
            if value is None:
                raise WriteFailure(NullNotAllowed)
            check_keys(value, names)
            get = member_getter(value)
            layout = None
            try:
                for layout in absent:
                    check_absent(schema, layout, member(schema, layout, get, value))
                for layout, writer in untagged:
                    writer(out, member(schema, layout, get, value))
            except WriteFailure as failure:
                if layout is not None:
                    failure.parts.append(layout.field.name)
                raise
            write_tags(out, value, get)

        return write

    # -- tagged fields ---------------------------------------------------------------------------

    def _tags(self, fields: tuple[FieldLayout, ...]) -> Callable[[bytearray, Any, Any], None]:
        schema = self._schema
        tagged = tuple((layout, self._field(layout)) for layout in fields if layout.tagged)
        names = {layout.field.tag: layout.field.name for layout in fields if layout.field.tag is not None}

        def write(out: bytearray, value: Any, get: Callable[[str, object], Any]) -> None:
            payloads = _unknown_payloads(get(UNKNOWN_TAGS, ()), names)
            for layout, writer in tagged:
                field = layout.field
                payload = bytearray()
                try:
                    held = member(schema, layout, get, value)
                    writer(payload, held)
                except WriteFailure as failure:
                    failure.parts.append(field.name)
                    raise
                if field.tag is not None and not is_default(schema, field, held):
                    payloads.append((field.tag, payload))
            payloads.sort(key=_tag_of)
            wire.write_uvarint(out, len(payloads))
            for tag, content in payloads:
                wire.write_uvarint(out, tag)
                wire.write_uvarint(out, len(content))
                out += content

        return write


def _integer(type: str) -> Writer:
    pack = struct.Struct(f">{wire.INTEGERS[type][0]}").pack

    def write(out: bytearray, value: Any) -> None:
        out += pack(scalars.as_integer(value, type))

    return write


def _uuid(out: bytearray, value: Any) -> None:
    out += scalars.as_uuid(value)


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
    """The unknown tags of a struct, checked: ascending, none of them a tag the struct defines."""
    payloads: list[tuple[int, bytes | bytearray]] = []
    if unknown == ():
        return payloads
    index = None
    try:
        previous = -1
        for index, pair in enumerate(scalars.as_items(unknown)):  # noqa: B007  (the handler names the index)
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise scalars.wrong_type("a pair of int and bytes", pair)
            tag = scalars.as_tag(pair[0], wire.MAX_TAG)
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
