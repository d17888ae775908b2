"""Annotated dumps: every byte of a message or a record, what it is, and where it breaks.

The lines come from the schema walker, so an explanation shows exactly what the decoder saw. Bytes that cannot
be explained are shown as what they are: an unknown type or version with its body, bytes left over, an error
as the last line with everything before it intact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kafka_records_runtime.errors import DecodeError, MissingRecordType, MissingValueVersion, plural
from kafka_records_runtime.errors import number as number_text
from kafka_records_runtime.framing import KEY_VERSION, PREFIX, prefix_of, record_type_of, value_version_of
from kafka_records_runtime.layout import versions_of
from kafka_records_runtime.schema import MessageSchema, RecordSchema, RetiredType, covers
from kafka_records_runtime.walker import TrailStep, walk
from kafka_records_runtime.wire import signed32

_HEX_BYTES: Final = 8
_VALUE_WIDTH: Final = 60
_PATH_WIDTH: Final = 80


class Line(NamedTuple):
    """`length` bytes at `offset`: the bytes in hex (shortened), the path indented by its depth, type and
    value.

    A line without bytes of its own (`offset` None) is a heading or, with type `error`, what ended the
    reading.
    """

    offset: int | None
    bytes: str
    path: str
    type: str
    value: str

    def text(self, path_width: int = 40) -> str:
        """The line as text; lines of the same `path_width` are aligned."""
        if self.offset is None:
            return f"{self.type}: {self.value}" if self.type else self.value
        columns = f"{self.offset:6}  {self.bytes:<25}  {self.type:<11}  {self.path:<{path_width}}  {self.value}"
        return columns.rstrip()


def explain_message(
    schema: MessageSchema, version: int, data: bytes, *, start: int = 0, lenient: bool = False
) -> Iterator[Line]:
    """Explain the message that begins at byte `start` of `data`; never raises for what is wrong with the
    bytes.

    Offsets count from the start of `data`. A version the message does not have is one line that says so and
    one with the bytes. With `lenient`, what Kafka accepts does not end the explanation.
    """
    if not covers(schema.versions, version):
        known = _versions_text(versions_of(schema))
        yield Line(None, "", "", "", f"{schema.name} has no version {number_text(version)} ({known})")
        yield from _unread(data, start, "not read")
        return
    yield Line(None, "", "", "", f"{schema.name} v{version}, {plural(len(data) - start, 'byte')}")
    end = start
    try:
        for step in walk(schema, version, data, start, lenient):
            end = max(end, step.offset + step.length)
            yield _line(step, data)
    except DecodeError as error:
        yield from _unread(data, end, "not read")
        yield Line(None, "", error.path, "error", str(error))
    else:
        yield from _unread(data, end, "left over")


def explain_record(
    records: Mapping[int, RecordSchema],
    key: bytes | None,
    value: bytes | None,
    retired: Mapping[int, RetiredType] = MappingProxyType({}),
) -> Iterator[Line]:
    """Explain a record of a topic whose record types are `records` and were `retired`: its key, then its value.

    Keys and values are read as Kafka's coordinators read them: leniently, and bytes left over are shown. A
    `value` of None is a tombstone; a `key` of None is shown as missing, and without its type the value is
    only bytes.
    """
    if key is None:
        yield Line(None, "", "", "", "no key")
    else:
        yield from explain_key(records, key, retired)
    if value is None:
        yield Line(None, "", "", "", "no value: a tombstone")
        return
    yield Line(None, "", "", "", f"value, {plural(len(value), 'byte')}")
    yield from _explain_value(None if key is None else _record(records, key), value)


def explain_key(
    records: Mapping[int, RecordSchema], key: bytes, retired: Mapping[int, RetiredType] = MappingProxyType({})
) -> Iterator[Line]:
    """Explain the key of a record alone, as `explain_record` does."""
    yield Line(None, "", "", "", f"key, {plural(len(key), 'byte')}")
    yield from _explain_key(records, retired, key)


def explain_text(lines: Iterable[Line]) -> str:
    """All lines as one text of aligned columns, each line ended by a newline."""
    held = list(lines)
    width = max((len(line.path) for line in held if line.offset is not None), default=0)
    return "".join(f"{line.text(min(width, _PATH_WIDTH))}\n" for line in held)


def _record(records: Mapping[int, RecordSchema], key: bytes) -> RecordSchema | None:
    number = prefix_of(key)
    return None if number is None else records.get(number)


def _explain_key(records: Mapping[int, RecordSchema], retired: Mapping[int, RetiredType], key: bytes) -> Iterator[Line]:
    try:
        number = record_type_of(key)
    except MissingRecordType as error:
        yield from _unread(key, 0, "not read")
        yield Line(None, "", "", "error", str(error))
        return
    record = records.get(number)
    if record is not None:
        name = record.name
    else:
        name = ", ".join(retired[number]) if number in retired else "unknown record type"
    yield Line(0, _hex(key[: PREFIX.size]), "record type", "int16", f"{number} ({name})")
    if record is None:
        yield from _unread(key, PREFIX.size, "not read")
    else:
        yield from explain_message(record.key, KEY_VERSION, key, start=PREFIX.size, lenient=True)


def _explain_value(record: RecordSchema | None, value: bytes) -> Iterator[Line]:
    try:
        version = value_version_of(value)
    except MissingValueVersion as error:
        yield from _unread(value, 0, "not read")
        yield Line(None, "", "", "error", str(error))
        return
    yield Line(0, _hex(value[: PREFIX.size]), "value version", "int16", str(version))
    if record is None:
        yield from _unread(value, PREFIX.size, "not read")
    else:
        yield from explain_message(record.value, version, value, start=PREFIX.size, lenient=True)


def _line(step: TrailStep, data: bytes) -> Line:
    raw = data[step.offset : step.offset + step.length]
    return Line(step.offset, _hex(raw), "  " * step.depth + step.path, step.type, _value(step))


def _value(step: TrailStep) -> str:
    if step.type in ("length", "count") and step.value == -1:
        return "null"
    if step.type in ("marker", "tag marker"):
        null = step.value < 0 if step.type == "marker" else signed32(step.value) <= 0
        return "null" if null else "present"
    if isinstance(step.value, bytes) and step.type != "uuid":
        return _shortened(step.value.hex(), plural(len(step.value), "byte")) or "(empty)"
    if isinstance(step.value, str) and step.type != "leniency":
        return _shortened(repr(step.value), plural(len(step.value), "character"))
    return str(step.value)


def _shortened(text: str, size: str) -> str:
    return text if len(text) <= _VALUE_WIDTH else f"{text[:_VALUE_WIDTH]}… ({size})"


def _unread(data: bytes, start: int, label: str) -> Iterator[Line]:
    rest = data[start:]
    if rest:
        yield Line(start, _hex(rest), "", "", f"{plural(len(rest), 'byte')} {label}")


def _hex(raw: bytes) -> str:
    text = raw[:_HEX_BYTES].hex(" ")
    return f"{text} …" if len(raw) > _HEX_BYTES else text


def _versions_text(versions: range) -> str:
    if not versions:
        return "it has none"
    if len(versions) == 1:
        return f"it has only version {versions[0]}"
    return f"it has {versions[0]} to {versions[-1]}"
