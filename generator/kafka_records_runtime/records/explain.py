"""Explains the bytes of a message or a record one by one, and shows where they are invalid.

The lines come from the schema walker, so an explanation shows exactly what the decoder saw. Undecodable bytes are shown
too: the body of an unknown type or version, and bytes left over. An error is shown on the last line, after everything
that was decoded before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kafka_records_runtime.errors import (
    DecodeError,
    EncodeError,
    FramingError,
    MissingRecordType,
    MissingValueVersion,
    UnexpectedKey,
    UnsupportedVersion,
    plural,
)
from kafka_records_runtime.errors import number as number_text
from kafka_records_runtime.kafka.config_names import REDACTED
from kafka_records_runtime.kafka.secrets import MAY_HOLD_SECRETS, secret_fields
from kafka_records_runtime.messages.json_form import to_json
from kafka_records_runtime.records.framing import (
    FRAME_VERSION,
    KEY_VERSION,
    METADATA,
    PREFIX,
    api_key_at,
    bytes_behind,
    end_frame,
    framing_of,
    prefix_of,
    record_type_of,
    start_frame,
    unknown_api_key,
    value_version_of,
)
from kafka_records_runtime.schema import MessageSchema, RecordSchema, RetiredType, covers
from kafka_records_runtime.schema.layout import versions_of
from kafka_records_runtime.text.casing import snake_case
from kafka_records_runtime.wire.primitives import signed32
from kafka_records_runtime.wire.walker import TrailStep, decode, walk

_HEX_BYTES: Final = 8
_VALUE_WIDTH: Final = 60
_PATH_WIDTH: Final = 80


class Line(NamedTuple):
    """One line of an explanation: the `length` bytes at `offset` in hex (shortened), the path indented by its depth,
    type and value.

    `offset` is counted from the first byte of the item named in the heading above or, for a message in a key or value,
    from the byte after the int16. Offsets in errors are counted in the same way.

    A line without bytes (`offset` is None) is a heading or, if its type is `error`, the error that ended reading.
    """

    offset: int | None
    bytes: str
    path: str
    type: str
    value: str

    def text(self, path_width: int = 40) -> str:
        """The line as text. Lines with the same `path_width` are aligned."""
        if self.offset is None:
            return f"{self.type}: {self.value}" if self.type else self.value
        columns = f"{self.offset:6}  {self.bytes:<25}  {self.type:<11}  {self.path:<{path_width}}  {self.value}"
        return columns.rstrip()


def explain_message(
    schema: MessageSchema, version: int, data: bytes, *, lenient: bool = False, show_secrets: bool = False
) -> Iterator[Line]:
    """Explain the message `data`. Invalid bytes never raise an error.

    A version that the message does not have ends the explanation like any error. With `lenient`, bytes that Kafka
    accepts do not end it. The bytes and values of secret fields (`secrets`) are hidden unless `show_secrets` is set.
    """
    lines = _explain_message(schema, version, data, lenient=lenient, allows_rest=True)
    yield from lines if show_secrets else _hidden(lines, schema, version, data)


def _hidden(lines: Iterable[Line], schema: MessageSchema, version: int, data: bytes) -> Iterator[Line]:
    """The lines of a message without its secrets and without unread bytes."""
    if schema.name not in MAY_HOLD_SECRETS:
        yield from lines
        return
    try:
        decoded, _ = decode(schema, data, version, lenient=True, allow_trailing=True)
        value = to_json(schema, decoded, version, lossy=True)
        hidden = {snake_case(name) for name in secret_fields(schema.name, value)}
    except (DecodeError, UnsupportedVersion, EncodeError):
        hidden = {field.name for field in schema.root.fields}
    for line in lines:
        name = re.split(r"[.\[]", line.path.strip(), maxsplit=1)[0]
        is_unread = line.offset is not None and not line.path and not line.type
        if line.offset is not None and (name in hidden or is_unread):
            yield line._replace(bytes="", value=line.value if is_unread else REDACTED)
        elif line.type == "error" and name in hidden:
            yield line._replace(value=f"{schema.name}: {name} cannot be decoded")
        else:
            yield line


def _explain_message(
    schema: MessageSchema, version: int, data: bytes, *, lenient: bool, allows_rest: bool
) -> Iterator[Line]:
    yield Line(None, "", "", "", f"{schema.name} v{number_text(version)}, {plural(len(data), 'byte')}")
    if not covers(schema.versions, version):
        yield from _unread(data, 0, "not read")
        yield Line(None, "", "", "error", str(UnsupportedVersion(schema.name, version, versions_of(schema))))
        return
    end = 0
    try:
        for step in walk(schema, version, data, lenient=lenient):
            end = max(end, step.offset + step.length)
            yield _line(step, data)
    except DecodeError as error:
        yield from _unread(data, end, "not read")
        yield Line(None, "", error.path, "error", str(error))
    else:
        yield from _unread(data, end, "left over")
        if end < len(data) and not allows_rest:
            yield Line(None, "", "", "error", str(bytes_behind(schema, version, end, len(data) - end)))


def explain_record(
    records: Mapping[int, RecordSchema],
    key: bytes | None,
    value: bytes | None,
    retired: Mapping[int, RetiredType] = MappingProxyType({}),
    *,
    show_secrets: bool = False,
) -> Iterator[Line]:
    """Explain a record: its key, then its value. `records` and `retired` are the current and former types of its topic.

    Keys and values are read leniently, as by Kafka's coordinators, and bytes left over are shown. If `value` is None,
    the record is a tombstone. If `key` is None, it is shown as missing, and the value is shown only as bytes because
    its type is unknown. In metadata framing, the value contains the type, and there are neither keys nor tombstones.
    Secrets are hidden as in `explain_message`.
    """
    if framing_of(records) == METADATA:
        yield from _explain_metadata(records, retired, key, value, show_secrets)
        return
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
    """Explain only the key of a record, like `explain_record`."""
    yield Line(None, "", "", "", f"key, {plural(len(key), 'byte')}")
    if framing_of(records) == METADATA:
        yield from _unread(key, 0, "not read")
        yield Line(None, "", "", "error", str(UnexpectedKey(len(key))))
        return
    yield from _explain_key(records, retired, key)


def explain_text(lines: Iterable[Line]) -> str:
    """All lines as a single string with aligned columns. Each line ends with a newline."""
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
    name = _type_name(record, retired.get(number), "unknown record type")
    yield Line(0, _hex(key[: PREFIX.size]), "record type", "int16", f"{number} ({name})")
    if record is None:
        yield from _unread(key, PREFIX.size, "not read")
    else:
        yield from explain_message(record.key, KEY_VERSION, key[PREFIX.size :], lenient=True)


def _type_name(record: RecordSchema | None, retired: RetiredType | None, unknown: str) -> str:
    if record is not None:
        return record.name
    return unknown if retired is None else ", ".join(retired)


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
        yield from explain_message(record.value, version, value[PREFIX.size :], lenient=True)


def _explain_metadata(
    records: Mapping[int, RecordSchema],
    retired: Mapping[int, RetiredType],
    key: bytes | None,
    value: bytes | None,
    show_secrets: bool,
) -> Iterator[Line]:
    if key is not None:
        yield from explain_key(records, key)
    if value is None:
        yield Line(None, "", "", "", "no value")
    else:
        yield Line(None, "", "", "", f"value, {plural(len(value), 'byte')}")
    read = 0
    try:
        number, at = start_frame(None, value)
        assert value is not None
        read, key_at = at, api_key_at(value)
        record = records.get(number)
        name = _type_name(record, retired.get(number), "unknown api key")
        yield Line(0, _hex(value[:key_at]), "frame version", "uvarint", str(FRAME_VERSION))
        yield Line(key_at, _hex(value[key_at:at]), "api key", "uvarint", f"{number} ({name})")
        if record is None:
            raise unknown_api_key(value)
        version, read = end_frame(value, at)
        yield Line(at, _hex(value[at:read]), "value version", "uvarint", str(version))
    except FramingError as error:
        # The meaning of these bytes is unknown, so they may be a secret.
        rest = _unread(value or b"", read, "not read")
        yield from rest if show_secrets else (line._replace(bytes="") for line in rest)
        yield Line(None, "", "", "error", str(error))
        return
    lines = _explain_message(record.value, version, value[read:], lenient=True, allows_rest=False)
    yield from lines if show_secrets else _hidden(lines, record.value, version, value[read:])


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
