"""Kafka's wire primitives: the bytes of each type.

Everything is big-endian. A `read_x` function reads from a `ByteCursor` and moves it; a `write_x` function appends to a
bytearray. Both raise failures without a path (`failure`), which the walker completes. Readers never move the cursor
past the end of the input, and never allocate memory before comparing a length with the number of bytes left.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from kafka_records_runtime.errors import (
    BufferUnderflow,
    DecodeError,
    InvalidText,
    InvalidUtf8,
    InvalidVarint,
    NegativeLength,
    StringTooLong,
    TextTooLong,
    ValueOutOfRange,
)
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.text.java_text import decode_replacing
from kafka_records_runtime.wire.failure import ReadFailure, WriteFailure
from kafka_records_runtime.wire.leniency import Leniency
from kafka_records_runtime.wire.string_limit import MAX_STRING as MAX_STRING
from kafka_records_runtime.wire.trail import Trail

MAX_INT32: Final = 2**31 - 1

MAX_TAG: Final = MAX_INT32 - 1
"""The highest tag that Kafka's writer accepts (`RawTaggedFieldWriter` reserves 2147483647 for itself)."""

INTEGERS: Final[Mapping[str, tuple[str, int, int]]] = {
    "int8": ("b", -(2**7), 2**7 - 1),
    "int16": ("h", -(2**15), 2**15 - 1),
    "uint16": ("H", 0, 2**16 - 1),
    "int32": ("i", -(2**31), MAX_INT32),
    "uint32": ("I", 0, 2**32 - 1),
    "int64": ("q", -(2**63), 2**63 - 1),
}
"""Integer types: their `struct` code, and their lowest and highest value."""


class ByteCursor:
    """A position in immutable bytes.

    A cursor is strict unless `lenient` is set. A lenient cursor accepts everything that Kafka accepts, and appends the
    name of each leniency to `leniencies`. `classes` maps structs to types; without it, structs become dicts. `spare` is
    the number of elements without bytes that may still be read. The limit applies to the whole input, because each
    array on its own may have as many such elements as there are bytes left.
    """

    __slots__ = ("classes", "data", "end", "leniencies", "lenient", "pos", "spare", "trail")

    def __init__(
        self,
        data: bytes,
        pos: int = 0,
        *,
        lenient: bool = False,
        leniencies: list[str] | None = None,
        classes: Mapping[str, Any] | None = None,
        trail: Trail | None = None,
    ) -> None:
        self.data = data
        self.pos = pos
        self.end = len(data)
        self.lenient = lenient
        self.leniencies = leniencies
        self.classes = classes
        self.spare = self.end - pos
        self.trail = trail

    def underflow(self, needed: int, start: int | None = None) -> ReadFailure:
        """The error for a value that needs `needed` bytes, more than are left."""
        at = self.pos if start is None else start
        return ReadFailure(BufferUnderflow, at, needed, self.end - at)

    def concede(self, leniency: Leniency, error: type[DecodeError], offset: int, *details: object) -> None:
        """Raise `error` if the cursor is strict. Otherwise, record `leniency`, and the reader continues as Kafka
        does."""
        if not self.lenient:
            raise ReadFailure(error, offset, *details)
        if self.leniencies is not None:
            self.leniencies.append(leniency)
        if self.trail is not None:
            self.trail.add(offset, 0, "leniency", leniency)


# -- reading ---------------------------------------------------------------------------------------

_int8 = struct.Struct(">b").unpack_from
_int16 = struct.Struct(">h").unpack_from
_uint16 = struct.Struct(">H").unpack_from
_int32 = struct.Struct(">i").unpack_from
_uint32 = struct.Struct(">I").unpack_from
_int64 = struct.Struct(">q").unpack_from
_float64 = struct.Struct(">d").unpack_from
_new_uuid = bytes.__new__


def read_bool(cursor: ByteCursor) -> bool:
    """Read a bool: one byte, true unless zero."""
    pos = cursor.pos
    if pos >= cursor.end:
        raise cursor.underflow(1)
    cursor.pos = pos + 1
    return cursor.data[pos] != 0


def read_int8(cursor: ByteCursor) -> int:
    """Read one byte, two's complement."""
    pos = cursor.pos
    if pos >= cursor.end:
        raise cursor.underflow(1)
    cursor.pos = pos + 1
    return _int8(cursor.data, pos)[0]  # type: ignore[no-any-return]


def read_int16(cursor: ByteCursor) -> int:
    """Read two bytes, two's complement."""
    pos = cursor.pos
    if pos + 2 > cursor.end:
        raise cursor.underflow(2)
    cursor.pos = pos + 2
    return _int16(cursor.data, pos)[0]  # type: ignore[no-any-return]


def read_uint16(cursor: ByteCursor) -> int:
    """Read two bytes, unsigned."""
    pos = cursor.pos
    if pos + 2 > cursor.end:
        raise cursor.underflow(2)
    cursor.pos = pos + 2
    return _uint16(cursor.data, pos)[0]  # type: ignore[no-any-return]


def read_int32(cursor: ByteCursor) -> int:
    """Read four bytes, two's complement."""
    pos = cursor.pos
    if pos + 4 > cursor.end:
        raise cursor.underflow(4)
    cursor.pos = pos + 4
    return _int32(cursor.data, pos)[0]  # type: ignore[no-any-return]


def read_uint32(cursor: ByteCursor) -> int:
    """Read four bytes, unsigned."""
    pos = cursor.pos
    if pos + 4 > cursor.end:
        raise cursor.underflow(4)
    cursor.pos = pos + 4
    return _uint32(cursor.data, pos)[0]  # type: ignore[no-any-return]


def read_int64(cursor: ByteCursor) -> int:
    """Read eight bytes, two's complement."""
    pos = cursor.pos
    if pos + 8 > cursor.end:
        raise cursor.underflow(8)
    cursor.pos = pos + 8
    return _int64(cursor.data, pos)[0]  # type: ignore[no-any-return]


def read_float64(cursor: ByteCursor) -> float:
    """Read eight bytes, IEEE 754."""
    pos = cursor.pos
    if pos + 8 > cursor.end:
        raise cursor.underflow(8)
    cursor.pos = pos + 8
    return _float64(cursor.data, pos)[0]  # type: ignore[no-any-return]


def read_uuid(cursor: ByteCursor) -> Uuid:
    """Read sixteen bytes."""
    pos = cursor.pos
    if pos + 16 > cursor.end:
        raise cursor.underflow(16)
    cursor.pos = pos + 16
    return _new_uuid(Uuid, cursor.data[pos : pos + 16])


def read_uvarint(cursor: ByteCursor) -> int:
    """Read an unsigned varint, 0 to 2³²-1: one to five bytes of seven bits each, lowest first. The high bit of a byte
    is set if another byte follows.

    Longer forms than necessary are accepted (Kafka writes the shortest one).
    """
    start = pos = cursor.pos
    data, end = cursor.data, cursor.end
    if pos < end and (byte := data[pos]) < 0x80:
        cursor.pos = pos + 1
        return byte
    value = shift = 0
    while True:
        if pos >= end:
            raise cursor.underflow(pos - start + 1, start)
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift == 35:
            raise ReadFailure(InvalidVarint, start, "a varint of more than 5 bytes")
    if value >> 32:
        cursor.concede(Leniency.VARINT_BITS, InvalidVarint, start, "a varint with bits above the 32nd")
        value &= 0xFFFFFFFF
    cursor.pos = pos
    return value


def signed32(value: int) -> int:
    """`value` as a signed 32-bit number, like a Java int."""
    value &= 0xFFFFFFFF
    return value - 0x100000000 if value > MAX_INT32 else value


def read_length16(cursor: ByteCursor) -> int:
    """Read the length of a classic string: an int16, -1 for null."""
    start = cursor.pos
    length = read_int16(cursor)
    return length if length >= -1 else _negative(cursor, start, length)


def read_length32(cursor: ByteCursor) -> int:
    """Read the length of classic bytes, records and arrays: an int32, -1 for null."""
    start = cursor.pos
    length = read_int32(cursor)
    return length if length >= -1 else _negative(cursor, start, length)


def read_compact_length(cursor: ByteCursor) -> int:
    """Read the length of anything compact: an unsigned varint with the length plus one, or 0 for null (returned
    as -1)."""
    start = cursor.pos
    length = read_uvarint(cursor) - 1
    return length if length <= MAX_INT32 else _negative(cursor, start, signed32(length))


def _negative(cursor: ByteCursor, start: int, length: int) -> int:
    cursor.concede(Leniency.NEGATIVE_LENGTH, NegativeLength, start, length)
    return -1


def read_raw(cursor: ByteCursor, length: int) -> bytes:
    """Read `length` bytes unchanged."""
    pos = cursor.pos
    end = pos + length
    if end > cursor.end:
        raise cursor.underflow(length)
    cursor.pos = end
    return cursor.data[pos:end]


def read_text(cursor: ByteCursor, length: int) -> str:
    """Read `length` bytes of UTF-8."""
    pos = cursor.pos
    end = pos + length
    if length > MAX_STRING:
        raise ReadFailure(StringTooLong, pos, length)
    if end > cursor.end:
        raise cursor.underflow(length)
    raw = cursor.data[pos:end]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        cursor.concede(Leniency.INVALID_UTF8, InvalidUtf8, pos + error.start, error.reason)
        text = decode_replacing(raw)
    cursor.pos = end
    return text


# -- writing ---------------------------------------------------------------------------------------

_pack_int16 = struct.Struct(">h").pack
_pack_int32 = struct.Struct(">i").pack
_pack_float64 = struct.Struct(">d").pack


def write_bool(out: bytearray, value: bool) -> None:
    """Write one byte, 0 or 1."""
    out.append(1 if value else 0)


def write_integer(out: bytearray, type: str, value: int) -> None:
    """Write one, two, four or eight bytes, depending on the type, in two's complement or unsigned."""
    code, lowest, highest = INTEGERS[type]
    if not lowest <= value <= highest:
        raise WriteFailure(ValueOutOfRange, type, value, lowest, highest)
    out += struct.pack(f">{code}", value)


def write_float64(out: bytearray, value: float) -> None:
    """Write eight bytes, IEEE 754."""
    out += _pack_float64(value)


def write_uvarint(out: bytearray, value: int) -> None:
    """Write an unsigned varint in its shortest form."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_length16(out: bytearray, length: int) -> None:
    """Write the length of a classic string, -1 for null."""
    out += _pack_int16(length)


def write_length32(out: bytearray, length: int) -> None:
    """Write the length of classic bytes, records and arrays, -1 for null."""
    _check_length(length)
    out += _pack_int32(length)


def write_compact_length(out: bytearray, length: int) -> None:
    """Write the length of anything compact, -1 for null."""
    _check_length(length)
    write_uvarint(out, length + 1)


def _check_length(length: int) -> None:
    if length > MAX_INT32:
        raise WriteFailure(ValueOutOfRange, "its length", length, 0, MAX_INT32)


def text_bytes(value: str) -> bytes:
    """The UTF-8 bytes of a string. Raises a failure for a string that Kafka cannot represent."""
    try:
        raw = value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WriteFailure(InvalidText, error.start) from None
    if len(raw) > MAX_STRING:
        raise WriteFailure(TextTooLong, len(raw))
    return raw
