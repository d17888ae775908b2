"""Wire primitives: every reader inherits the same truncated, limit and zero tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from kafka_records_runtime.errors import (
    BufferUnderflow,
    InvalidText,
    InvalidUtf8,
    InvalidVarint,
    NegativeLength,
    StringTooLong,
    TextTooLong,
    ValueOutOfRange,
)
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid
from kafka_records_runtime.wire import primitives
from kafka_records_runtime.wire.failure import ReadFailure, WriteFailure
from kafka_records_runtime.wire.leniency import Leniency
from kafka_records_runtime.wire.primitives import ByteCursor


class ReaderContract:
    """What holds for every primitive: `samples` maps bytes to values, the zero value and the limits among them."""

    read: ClassVar[Callable[[ByteCursor], Any]]
    write: ClassVar[Callable[[bytearray, Any], None]]
    samples: ClassVar[dict[str, Any]]
    zero: ClassVar[tuple[str, Any]]

    def test_reads_every_sample(self) -> None:
        for text, value in self.samples.items():
            cursor = ByteCursor(bytes.fromhex(text))
            found = type(self).read(cursor)
            assert found == value
            assert type(found) is type(value)
            assert cursor.pos == cursor.end

    def test_writes_every_sample(self) -> None:
        for text, value in self.samples.items():
            out = bytearray()
            type(self).write(out, value)
            assert out.hex() == text.replace(" ", "")

    def test_zero(self) -> None:
        text, value = self.zero
        assert type(self).read(ByteCursor(bytes.fromhex(text))) == value

    def test_leaves_what_follows(self) -> None:
        for text in self.samples:
            raw = bytes.fromhex(text)
            cursor = ByteCursor(b"\xaa" + raw + b"\xbb\xcc", 1)
            type(self).read(cursor)
            assert cursor.pos == 1 + len(raw)

    def test_truncated(self) -> None:
        for text in self.samples:
            raw = bytes.fromhex(text)
            for length in range(len(raw)):
                cursor = ByteCursor(b"\xaa" + raw[:length], 1)
                with pytest.raises(ReadFailure) as caught:
                    type(self).read(cursor)
                assert caught.value.error is BufferUnderflow
                needed, left = caught.value.details
                assert left == length
                assert isinstance(needed, int)
                assert needed > length
                assert caught.value.offset == 1


def integer_writer(type: str) -> Callable[[bytearray, Any], None]:
    return lambda out, value: primitives.write_integer(out, type, value)


class TestBool(ReaderContract):
    read = primitives.read_bool
    write = primitives.write_bool
    samples: ClassVar[dict[str, Any]] = {"00": False, "01": True}
    zero = ("00", False)

    def test_any_other_byte_is_true(self) -> None:
        assert all(primitives.read_bool(ByteCursor(bytes([byte]))) is True for byte in range(1, 256))


class IntegerContract(ReaderContract):
    type: ClassVar[str]

    def test_limits(self) -> None:
        _, lowest, highest = primitives.INTEGERS[self.type]
        assert {lowest, highest} <= set(self.samples.values())
        for value in (lowest - 1, highest + 1):
            with pytest.raises(WriteFailure) as caught:
                primitives.write_integer(bytearray(), self.type, value)
            assert caught.value.error is ValueOutOfRange
            assert caught.value.details == (self.type, value, lowest, highest)


class TestInt8(IntegerContract):
    type = "int8"
    read = primitives.read_int8
    write = integer_writer("int8")
    samples: ClassVar[dict[str, Any]] = {"00": 0, "7f": 127, "80": -128, "ff": -1}
    zero = ("00", 0)


class TestInt16(IntegerContract):
    type = "int16"
    read = primitives.read_int16
    write = integer_writer("int16")
    samples: ClassVar[dict[str, Any]] = {"0000": 0, "7fff": 32767, "8000": -32768, "0102": 258}
    zero = ("0000", 0)


class TestUint16(IntegerContract):
    type = "uint16"
    read = primitives.read_uint16
    write = integer_writer("uint16")
    samples: ClassVar[dict[str, Any]] = {"0000": 0, "ffff": 65535, "8000": 32768}
    zero = ("0000", 0)


class TestInt32(IntegerContract):
    type = "int32"
    read = primitives.read_int32
    write = integer_writer("int32")
    samples: ClassVar[dict[str, Any]] = {"00000000": 0, "7fffffff": 2**31 - 1, "80000000": -(2**31)}
    zero = ("00000000", 0)


class TestUint32(IntegerContract):
    type = "uint32"
    read = primitives.read_uint32
    write = integer_writer("uint32")
    samples: ClassVar[dict[str, Any]] = {"00000000": 0, "ffffffff": 2**32 - 1, "80000000": 2**31}
    zero = ("00000000", 0)


class TestInt64(IntegerContract):
    type = "int64"
    read = primitives.read_int64
    write = integer_writer("int64")
    samples: ClassVar[dict[str, Any]] = {
        "0000000000000000": 0,
        "7fffffffffffffff": 2**63 - 1,
        "8000000000000000": -(2**63),
        "0102030405060708": 0x0102030405060708,
    }
    zero = ("0000000000000000", 0)


class TestFloat64(ReaderContract):
    read = primitives.read_float64
    write = primitives.write_float64
    samples: ClassVar[dict[str, Any]] = {
        "0000000000000000": 0.0,
        "3ff8000000000000": 1.5,
        "7ff0000000000000": math.inf,
        "fff0000000000000": -math.inf,
        "7fefffffffffffff": 1.7976931348623157e308,
        "0000000000000001": 5e-324,
    }
    zero = ("0000000000000000", 0.0)

    def test_nan(self) -> None:
        assert math.isnan(primitives.read_float64(ByteCursor(bytes.fromhex("7ff8000000000000"))))


def write_uuid(out: bytearray, value: bytes) -> None:
    out += value


class TestUuid(ReaderContract):
    read = primitives.read_uuid
    write = write_uuid
    samples: ClassVar[dict[str, Any]] = {
        "00" * 16: ZERO_UUID,
        "30a5f1d5f224432d89f635c784af26d7": Uuid.from_string("MKXx1fIkQy2J9jXHhK8m1w"),
    }
    zero = ("00" * 16, ZERO_UUID)


class TestUvarint(ReaderContract):
    read = primitives.read_uvarint
    write = primitives.write_uvarint
    samples: ClassVar[dict[str, Any]] = {
        "00": 0,
        "01": 1,
        "7f": 127,
        "8001": 128,
        "8040": 8192,
        "ff7f": 16383,
        "808001": 16384,
        "8080808008": 2**31,
        "ffffffff07": 2**31 - 1,
        "ffffffff0f": 2**32 - 1,
    }
    zero = ("00", 0)

    @pytest.mark.parametrize("text", ["8000", "808000", "80808000", "8080808000"])
    def test_over_long_forms_are_read(self, text: str) -> None:
        cursor = ByteCursor(bytes.fromhex(text))
        assert primitives.read_uvarint(cursor) == 0
        assert cursor.pos == cursor.end

    @pytest.mark.parametrize("lenient", [False, True])
    def test_more_than_five_bytes(self, lenient: bool) -> None:
        with pytest.raises(ReadFailure) as caught:
            primitives.read_uvarint(ByteCursor(b"\xff" * 4 + b"\x80\x00", lenient=lenient))
        assert caught.value.error is InvalidVarint
        assert caught.value.details == ("a varint of more than 5 bytes",)

    def test_bits_above_the_32nd(self) -> None:
        raw = bytes.fromhex("ffffffff1f")
        with pytest.raises(ReadFailure) as caught:
            primitives.read_uvarint(ByteCursor(raw))
        assert caught.value.error is InvalidVarint
        leniencies: list[str] = []
        assert primitives.read_uvarint(ByteCursor(raw, lenient=True, leniencies=leniencies)) == 2**32 - 1
        assert leniencies == [Leniency.VARINT_BITS]


class LengthContract(ReaderContract):
    negative: ClassVar[str]

    def test_other_negative_lengths(self) -> None:
        raw = bytes.fromhex(self.negative)
        with pytest.raises(ReadFailure) as caught:
            type(self).read(ByteCursor(b"\x00\x00" + raw, 2))
        assert (caught.value.error, caught.value.offset, caught.value.details) == (NegativeLength, 2, (-2,))
        leniencies: list[str] = []
        assert type(self).read(ByteCursor(raw, lenient=True, leniencies=leniencies)) == -1
        assert leniencies == [Leniency.NEGATIVE_LENGTH]


class TestLength16(LengthContract):
    read = primitives.read_length16
    write = primitives.write_length16
    samples: ClassVar[dict[str, Any]] = {"0000": 0, "ffff": -1, "7fff": 32767}
    zero = ("0000", 0)
    negative = "fffe"


class TestLength32(LengthContract):
    read = primitives.read_length32
    write = primitives.write_length32
    samples: ClassVar[dict[str, Any]] = {"00000000": 0, "ffffffff": -1, "7fffffff": 2**31 - 1}
    zero = ("00000000", 0)
    negative = "fffffffe"


class TestCompactLength(LengthContract):
    read = primitives.read_compact_length
    write = primitives.write_compact_length
    samples: ClassVar[dict[str, Any]] = {"01": 0, "00": -1, "8001": 127, "8080808008": 2**31 - 1}
    zero = ("01", 0)
    negative = "ffffffff0f"


class TestContent:
    def test_text_and_bytes(self) -> None:
        cursor = ByteCursor("ké".encode() + b"\xff")
        assert primitives.read_text(cursor, 3) == "ké"
        assert primitives.read_raw(cursor, 1) == b"\xff"
        assert primitives.read_raw(cursor, 0) == b""
        assert primitives.read_text(cursor, 0) == ""

    @pytest.mark.parametrize("reader", [primitives.read_text, primitives.read_raw])
    def test_truncated(self, reader: Callable[[ByteCursor, int], object]) -> None:
        with pytest.raises(ReadFailure) as caught:
            reader(ByteCursor(b"abc", 1), 3)
        assert (caught.value.error, caught.value.offset, caught.value.details) == (BufferUnderflow, 1, (3, 2))

    @pytest.mark.parametrize("lenient", [False, True])
    def test_the_longest_string(self, lenient: bool) -> None:
        data = b"x" * 32768
        assert len(primitives.read_text(ByteCursor(data, lenient=lenient), 32767)) == 32767
        with pytest.raises(ReadFailure) as caught:
            primitives.read_text(ByteCursor(data, lenient=lenient), 32768)
        assert caught.value.error is StringTooLong
        assert len(primitives.read_raw(ByteCursor(data), 32768)) == 32768

    def test_invalid_utf8(self) -> None:
        with pytest.raises(ReadFailure) as caught:
            primitives.read_text(ByteCursor(b"..a\xed\xa0\x80b", 2), 5)
        assert (caught.value.error, caught.value.offset) == (InvalidUtf8, 3)
        assert primitives.read_text(ByteCursor(b"a\xed\xa0\x80b", lenient=True), 5) == "a\ufffdb"

    def test_text_that_cannot_be_written(self) -> None:
        with pytest.raises(WriteFailure) as caught:
            primitives.text_bytes("ab\ud800")
        assert (caught.value.error, caught.value.details) == (InvalidText, (2,))
        with pytest.raises(WriteFailure) as caught:
            primitives.text_bytes("é" * 16384)
        assert (caught.value.error, caught.value.details) == (TextTooLong, (32768,))
        assert len(primitives.text_bytes("x" * 32767)) == 32767

    @pytest.mark.parametrize("writer", [primitives.write_length32, primitives.write_compact_length])
    def test_lengths_beyond_int32(self, writer: Callable[[bytearray, int], None]) -> None:
        with pytest.raises(WriteFailure) as caught:
            writer(bytearray(), 2**31)
        assert caught.value.error is ValueOutOfRange
