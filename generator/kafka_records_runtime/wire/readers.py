"""Builds a function that reads a message, from the message's schema and a version.

Readers are built once per schema and version, and cached. The reader of a field is a closure over everything that
depends on the version, so reading a message costs one call per field without further lookups. Readers built with
`recording` also record a step for everything they read, which is the only difference between `walk` and `decode`.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from kafka_records_runtime.errors import (
    CountTooLarge,
    DuplicateTag,
    InvalidMarker,
    InvalidTag,
    TagOrder,
    TagSizeMismatch,
    UnexpectedNull,
)
from kafka_records_runtime.schema import EMPTY_STRUCT, MessageSchema
from kafka_records_runtime.schema.defaults import default_of
from kafka_records_runtime.schema.layout import (
    UNKNOWN_TAGS,
    UVARINT,
    ArrayValue,
    FixedValue,
    SizedValue,
    StructLayout,
    StructValue,
    TagsLayout,
    Value,
    message_layout,
    plan,
)
from kafka_records_runtime.wire import primitives
from kafka_records_runtime.wire.failure import ReadFailure
from kafka_records_runtime.wire.leniency import Leniency
from kafka_records_runtime.wire.primitives import ByteCursor
from kafka_records_runtime.wire.recording import Reader, counting, named, noted, numbered
from kafka_records_runtime.wire.trail import TAG_SECTION

_FIXED: Final[dict[str, Reader[Any]]] = {
    "bool": primitives.read_bool,
    "int8": primitives.read_int8,
    "int16": primitives.read_int16,
    "uint16": primitives.read_uint16,
    "int32": primitives.read_int32,
    "uint32": primitives.read_uint32,
    "int64": primitives.read_int64,
    "float64": primitives.read_float64,
    "uuid": primitives.read_uuid,
}

_LENGTHS: Final[dict[str, Reader[int]]] = {
    "int16": primitives.read_length16,
    "int32": primitives.read_length32,
    UVARINT: primitives.read_compact_length,
}
"""Readers of lengths and counts (-1 for null), by their type in the layout."""

_MARKERS: Final[dict[str, tuple[Reader[int], str, int]]] = {
    "int8": (primitives.read_int8, "marker", -1),
    UVARINT: (primitives.read_uvarint, "tag marker", 0),
}
"""For each type of marker before a nullable struct: its reader, its name in steps, and its value for null."""

_SMALLEST_TAG: Final = 2
"""The size in bytes of a tagged field with an empty payload: its tag and its size field."""


def message_reader(schema: MessageSchema, version: int, *, recording: bool = False) -> Reader[Any]:
    """The reader of a whole message. The message must have the version."""
    kind = "walk" if recording else "read"
    return plan(schema, (kind, version), lambda: _Builder(schema, recording).struct(message_layout(schema, version)))


class _Builder:
    def __init__(self, schema: MessageSchema, recording: bool) -> None:
        self._schema = schema
        self._recording = recording
        self._structs: dict[str, Reader[Any]] = {}

    # -- leaves ----------------------------------------------------------------------------------

    def _note(self, reader: Reader[Any], type: str) -> Reader[Any]:
        return noted(reader, type) if self._recording else reader

    def _name(self, reader: Reader[Any], name: str) -> Reader[Any]:
        return named(reader, name) if self._recording else reader

    def _value(self, value: Value) -> Reader[Any]:
        match value:
            case FixedValue():
                return self._note(_FIXED[value.type], value.type)
            case SizedValue():
                return self._sized(value)
            case ArrayValue():
                return self._array(value)
            case StructValue():
                return self._nested(value)

    def _sized(self, value: SizedValue) -> Reader[Any]:
        recording = self._recording
        length = self._note(_LENGTHS[value.length], "length")
        content: Any = primitives.read_text if value.type == "string" else primitives.read_raw
        nullable = value.nullable

        def read(cursor: ByteCursor) -> Any:
            start = cursor.pos
            size = length(cursor)
            if size < 0:
                return _null(start, nullable)
            if recording:
                return noted(lambda cursor: content(cursor, size), value.type)(cursor)
            return content(cursor, size)

        return read

    # -- arrays ----------------------------------------------------------------------------------

    def _array(self, value: ArrayValue) -> Reader[Any]:
        smallest = value.element.smallest
        count = self._note(_LENGTHS[value.count], "count")
        if isinstance(value.element, FixedValue) and value.element.type in primitives.INTEGERS and not self._recording:
            return _integers(count, primitives.INTEGERS[value.element.type][0], smallest, value.nullable)
        element = self._value(value.element)
        if self._recording:
            return counting(_elements(count, numbered(element), smallest, value.nullable))
        return _elements(count, element, smallest, value.nullable)

    # -- structs ---------------------------------------------------------------------------------

    def _nested(self, value: StructValue) -> Reader[Any]:
        reader = self.struct(value.layout)
        if value.marker is None:
            return reader
        read_marker, name, null = _MARKERS[value.marker]
        return _optional(self._note(read_marker, name), reader, null)

    def struct(self, layout: StructLayout) -> Reader[Any]:
        """The reader of a struct. It reads the untagged members and then, in flexible versions, the tagged ones."""
        made = self._structs.get(layout.name)
        if made is None:
            made = self._structs[layout.name] = self._struct(layout)
        return made

    def _struct(self, layout: StructLayout) -> Reader[Any]:
        schema, name = self._schema, layout.name
        blank, fresh = _defaults(schema, name)
        untagged = tuple(
            (member.field.name, self._name(self._value(member.value), member.field.name)) for member in layout.body
        )
        tags = None if layout.tags is None else self._tags(layout.tags)

        def read(cursor: ByteCursor) -> Any:
            values = blank.copy()
            classes = cursor.classes
            for field in fresh:
                values[field.name] = default_of(schema, field, classes)
            member = ""
            try:
                for member, reader in untagged:
                    values[member] = reader(cursor)
            except ReadFailure as failure:
                failure.parts.append(member)
                raise
            if tags is not None:
                tags(cursor, values)
            return values if classes is None else classes[name](**values)

        return read

    # -- tagged fields ---------------------------------------------------------------------------

    def _tags(self, section: TagsLayout) -> Any:
        known = {
            member.field.tag: (member.field.name, self._name(self._value(member.value), member.field.name))
            for member in section.known
        }
        elsewhere = {field.tag: field.name for field in section.misplaced}
        read_count = self._name(self._note(primitives.read_uvarint, "tag count"), TAG_SECTION)
        read_tag = self._name(self._note(primitives.read_uvarint, "tag"), TAG_SECTION)
        read_size = self._name(self._note(primitives.read_uvarint, "tag size"), TAG_SECTION)
        recording = self._recording

        def read_unknown(cursor: ByteCursor, tag: int, size: int) -> bytes:
            if not recording:
                return primitives.read_raw(cursor, size)
            reader = noted(lambda cursor: primitives.read_raw(cursor, size), "unknown tag")
            return named(named(reader, f"[{tag}]"), TAG_SECTION)(cursor)

        def read(cursor: ByteCursor, values: dict[str, Any]) -> None:
            if not recording and cursor.pos < cursor.end and cursor.data[cursor.pos] == 0:
                cursor.pos += 1
                return
            path = TAG_SECTION
            try:
                unknown = []
                order = _TagSequence()
                for _ in range(_tag_count(cursor, read_count)):
                    path = TAG_SECTION
                    start = cursor.pos
                    tag = read_tag(cursor)
                    if tag in elsewhere:
                        raise ReadFailure(InvalidTag, start, tag, f"but {elsewhere[tag]} is not tagged in this version")
                    order.check(cursor, start, tag)
                    size_at = cursor.pos
                    size = read_size(cursor)
                    payload_at = cursor.pos
                    if tag in known:
                        path, reader = known[tag]
                        values[path] = reader(cursor)
                        used = cursor.pos - payload_at
                        if used != size:
                            cursor.concede(Leniency.TAG_SIZE, TagSizeMismatch, size_at, tag, size, used)
                    else:
                        path = f"{TAG_SECTION}[{tag}]"
                        number = _tag_number(cursor, start, tag)
                        unknown.append((number, read_unknown(cursor, number, size)))
                if unknown:
                    values[UNKNOWN_TAGS] = tuple(unknown)
            except ReadFailure as failure:
                failure.parts.append(path)
                raise

        return read


def _defaults(schema: MessageSchema, name: str) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """The members of a struct with their defaults, and the fields whose default must be created each time."""
    fields = schema.struct(name).fields
    blank = {field.name: None if field.default is EMPTY_STRUCT else field.default for field in fields}
    if schema.flexible is not None:
        blank[UNKNOWN_TAGS] = ()
    return blank, tuple(field for field in fields if field.default is EMPTY_STRUCT)


def _null(start: int, nullable: bool) -> None:
    if not nullable:
        raise ReadFailure(UnexpectedNull, start)


def _check_count(cursor: ByteCursor, start: int, count: int, smallest: int) -> None:
    left = cursor.end - cursor.pos
    if smallest:
        limit = left // smallest
    else:
        limit = min(left, cursor.spare)
        cursor.spare -= count
    if count > limit:
        raise ReadFailure(CountTooLarge, start, count, limit)


def _elements(count: Reader[int], element: Reader[Any], smallest: int, nullable: bool) -> Reader[Any]:
    def read(cursor: ByteCursor) -> Any:
        start = cursor.pos
        number = count(cursor)
        if number < 0:
            return _null(start, nullable)
        _check_count(cursor, start, number, smallest)
        items: list[Any] = []
        try:
            for _ in range(number):
                items.append(element(cursor))
        except ReadFailure as failure:
            failure.parts.append(f"[{len(items)}]")
            raise
        return tuple(items)

    return read


def _integers(count: Reader[int], code: str, size: int, nullable: bool) -> Reader[Any]:
    """Like `_elements`, for integers. One call reads all of them, because nothing can fail after the count has been
    checked."""

    def read(cursor: ByteCursor) -> Any:
        start = cursor.pos
        number = count(cursor)
        if number < 0:
            return _null(start, nullable)
        _check_count(cursor, start, number, size)
        pos = cursor.pos
        cursor.pos = pos + number * size
        return struct.unpack_from(f">{number}{code}", cursor.data, pos)

    return read


def _optional(marker: Reader[int], reader: Reader[Any], null: int) -> Reader[Any]:
    """The reader of a nullable struct: a marker (int8 -1 or 1; in a tag, uvarint 0 or 1) followed, unless null, by the
    struct."""

    def read(cursor: ByteCursor) -> Any:
        start = cursor.pos
        mark = primitives.signed32(marker(cursor))
        if mark not in (null, 1):
            cursor.concede(Leniency.STRUCT_MARKER, InvalidMarker, start, mark, null)
        return None if mark <= null else reader(cursor)

    return read


class _TagSequence:
    """Checks the order of the tags in one section."""

    __slots__ = ("_highest", "_seen")

    def __init__(self) -> None:
        self._highest = -1
        self._seen: set[int] = set()

    def check(self, cursor: ByteCursor, start: int, tag: int) -> None:
        if tag > self._highest:
            self._highest = tag
        elif tag in self._seen:
            cursor.concede(Leniency.REPEATED_TAG, DuplicateTag, start, tag)
        else:
            cursor.concede(Leniency.TAG_ORDER, TagOrder, start, tag, self._highest)
        self._seen.add(tag)


def _tag_count(cursor: ByteCursor, read_count: Reader[int]) -> int:
    start = cursor.pos
    count = read_count(cursor)
    limit = (cursor.end - cursor.pos) // _SMALLEST_TAG
    if count > primitives.MAX_INT32:
        cursor.concede(Leniency.TAG_COUNT, CountTooLarge, start, count, limit)
        return 0
    if count > limit:
        raise ReadFailure(CountTooLarge, start, count, limit)
    return count


def _tag_number(cursor: ByteCursor, start: int, tag: int) -> int:
    """The number of an unknown tag, as a Java int."""
    if tag > primitives.MAX_TAG:
        fault = f"but the largest that can be written is {primitives.MAX_TAG}"
        cursor.concede(Leniency.TAG_NUMBER, InvalidTag, start, tag, fault)
    return primitives.signed32(tag)
