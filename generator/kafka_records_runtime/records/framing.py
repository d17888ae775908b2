"""Framing: the bytes before the messages in a record, which contain the type and the version.

`COORDINATOR`: the key is an int16 record type and a message, and the value is an int16 version and a message. The int16
is the *prefix* of a key or value. The rules are those of Kafka's `CoordinatorRecordSerde`: it always reads the key in
version 0, checks whether the type has the version of the value, and ignores bytes after a message. Kafka's readers
discard a record of an unknown type or version; here, the decoded record keeps its bytes (`records`).

`METADATA`: there is no key. The value is a *frame* and a message. The frame consists of a frame version, an api key
(which is the record type) and the version of the message, each an unsigned varint. The rules are those of
`MetadataRecordSerde`: it rejects any other frame version, an unknown api key and bytes after the message. (It cuts
numbers above 2147483647 to their last 16 bits; here, every number above 32767 is rejected.)

This module defines both framings: their bytes, how to split them off and write them, and the errors for records without
them. Two modules do the same for many rows at a time, with the width and byte order defined here:
`kafka_records_engine.columns.framing_in_columns` for Arrow columns, `kafka_records_engine.spark.framing_in_jvm` for
Spark expressions. Tests compare them with the functions here.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, cast

from kafka_records_runtime.errors import (
    DecodeError,
    FramingError,
    InvalidFrameNumber,
    MissingRecordType,
    MissingValueVersion,
    NullKey,
    NullValue,
    TrailingBytes,
    TruncatedFrame,
    UnexpectedKey,
    UnknownApiKey,
    UnknownFrameVersion,
)
from kafka_records_runtime.kafka.framing_names import COORDINATOR as COORDINATOR
from kafka_records_runtime.kafka.framing_names import METADATA as METADATA
from kafka_records_runtime.kafka.framing_names import Framing as Framing
from kafka_records_runtime.wire.string_limit import MAX_STRING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_records_runtime.schema import MessageSchema, RecordSchema


def framing_of(records: Mapping[int, RecordSchema]) -> Framing:
    """The framing of a topic's records, which is the same for all of them."""
    return next((record.framing for record in records.values()), COORDINATOR)


PREFIX: Final = Struct(">h")
"""The prefix of a message: the record type of a key, or the version of a value. NumPy also accepts `PREFIX.format`."""

KEY_VERSION: Final = 0
"""The version of every record key."""


# -- the prefix --------------------------------------------------------------------------------------------------------


def prefix_of(data: bytes | None) -> int | None:
    """The int16 at the start of a key or value; None if the key or value is null or too short."""
    return None if data is None or len(data) < PREFIX.size else cast(int, PREFIX.unpack_from(data)[0])


def record_type_of(key: bytes) -> int:
    """The record type at the start of a key. Raises MissingRecordType if the key is too short."""
    if len(key) < PREFIX.size:
        raise unframed_key(len(key))
    return cast(int, PREFIX.unpack_from(key)[0])


def value_version_of(value: bytes) -> int:
    """The version at the start of a value. Raises MissingValueVersion if the value is too short."""
    if len(value) < PREFIX.size:
        raise unframed_value(len(value))
    return cast(int, PREFIX.unpack_from(value)[0])


def split_key(key: bytes | None) -> tuple[int, bytes]:
    """The record type of a key, and the message after it. Raises NullKey or MissingRecordType."""
    if key is None:
        raise unframed_key(None)
    return record_type_of(key), key[PREFIX.size :]


def split_value(value: bytes) -> tuple[int, bytes]:
    """The version of a value, and the message after it. Raises MissingValueVersion."""
    return value_version_of(value), value[PREFIX.size :]


def framed(number: int, message: bytes) -> bytes:
    """The bytes of a key (its record type followed by the message) or a value (its version followed by the message)."""
    return PREFIX.pack(number) + message


def unframed_key(length: int | None) -> FramingError:
    """The error for a key of `length` bytes, too few for a record type; None means a null key."""
    return NullKey() if length is None else MissingRecordType(length)


def unframed_value(length: int) -> FramingError:
    """The error for a value of `length` bytes, too few for a version."""
    return MissingValueVersion(length)


def newer_as_highest(message: MessageSchema, version: int) -> int:
    """The version in which to read a message whose readers treat newer versions as the highest version that they know.

    Kafka does this if newer versions only add fields at the end (`ConsumerProtocol.deserializeSubscription`). The
    values of coordinator records are not read this way.
    """
    return min(version, -1 if message.versions is None else message.versions[1])


def message_start(text: bytes) -> bytes | None:
    """The first bytes of every key message that begins with the string `text`; None if `text` is too long for a string.

    Keys have version 0, so a string's length is an int16 unless the key is flexible.
    """
    return framed(len(text), text) if len(text) <= MAX_STRING else None


# -- the frame of a metadata record ------------------------------------------------------------------------------------

FRAME_VERSION: Final = 1
"""The frame version that Kafka writes. A preview in 2.8 used version 0."""

MOST_IN_FRAME: Final = 32767
"""The highest api key or version in a frame."""

_LONGEST_VARINT: Final = 5


def start_frame(key: bytes | None, value: bytes | None) -> tuple[int, int]:
    """The api key of a metadata record, and the position of the version after it. Raises a FramingError."""
    if key is not None:
        raise UnexpectedKey(len(key))
    if value is None:
        raise NullValue
    frame_version, at = _frame_number(value, 0, "frame version")
    if frame_version != FRAME_VERSION:
        raise UnknownFrameVersion(frame_version)
    return _frame_number(value, at, "api key")


def end_frame(value: bytes, at: int) -> tuple[int, int]:
    """The version of a message, which is at byte `at` of the value, and the position where the message begins.

    Raises a FramingError.
    """
    return _frame_number(value, at, "version")


def numbers_of_frame(value: bytes | None) -> tuple[int | None, int | None]:
    """The api key and the version in a value; None for an unreadable number."""
    try:
        api_key, at = start_frame(None, value)
    except FramingError:
        return None, None
    try:
        return api_key, end_frame(cast(bytes, value), at)[0]
    except FramingError:
        return api_key, None


def unknown_api_key(value: bytes) -> UnknownApiKey:
    """The error for a value with an api key that no record of its topic has."""
    return UnknownApiKey(start_frame(None, value)[0], api_key_at(value))


def api_key_at(value: bytes) -> int:
    """The byte of a value where its api key begins. Raises a FramingError."""
    return _frame_number(value, 0, "frame version")[1]


def in_frame(api_key: int, version: int, message: bytes) -> bytes:
    """The value of a metadata record: its frame followed by the message."""
    return b"".join((*map(_varint, (FRAME_VERSION, api_key, version)), message))


def frame_start(api_key: int) -> bytes:
    """The first bytes of every value with this api key, as Kafka writes it."""
    return _varint(FRAME_VERSION) + _varint(api_key)


def bytes_behind(message: MessageSchema, version: int, used: int, left: int) -> DecodeError:
    """The error for `left` bytes after a message of `used` bytes, in records that must not have trailing bytes."""
    from kafka_records_runtime.wire.failure import ReadFailure

    return ReadFailure(TrailingBytes, used, left).located(message, version)


def _frame_number(value: bytes, at: int, part: str) -> tuple[int, int]:
    """The number at byte `at` of a frame, and the position of the next one."""
    found = 0
    for index, byte in enumerate(value[at : at + _LONGEST_VARINT]):
        found |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if found > MOST_IN_FRAME:
                raise InvalidFrameNumber(part, at, f"is {found}, more than the limit of {MOST_IN_FRAME}")
            return found, at + index + 1
    if len(value) < at + _LONGEST_VARINT:
        raise TruncatedFrame(part, at, len(value))
    raise InvalidFrameNumber(part, at, f"has more than {_LONGEST_VARINT} bytes")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# -- records -----------------------------------------------------------------------------------------------------------


class SchemaRecordType:
    """Reads records as plain values (`walker.decode`), with schemas only."""

    def __init__(self, schema: RecordSchema) -> None:
        from kafka_records_runtime.wire import walker

        self.schema = schema
        self.name = schema.name
        self.value_name = schema.value.name
        self.value_schema = schema.value
        lowest, highest = schema.value.versions or (0, -1)
        self.value_versions = range(lowest, highest + 1)
        self._decode = walker.decode

    def read_key(self, body: bytes, leniencies: list[str]) -> tuple[Any, int]:
        return self._read(self.schema.key, body, KEY_VERSION, leniencies)

    def read_value(self, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]:
        return self._read(self.schema.value, body, version, leniencies)

    def _read(self, schema: Any, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]:
        return self._decode(schema, body, version, lenient=True, allow_trailing=True, leniencies=leniencies)
