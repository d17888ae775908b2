"""Checks and converts the Python values that each primitive type accepts, for encoding and for JSON."""

from __future__ import annotations

from operator import index
from typing import Final, SupportsFloat, SupportsIndex

from kafka_records_runtime.errors import NullNotAllowed, ValueOutOfRange, WrongLength, WrongType
from kafka_records_runtime.kafka.uuids import standard_uuid_bytes
from kafka_records_runtime.wire.failure import WriteFailure
from kafka_records_runtime.wire.primitives import INTEGERS, MAX_INT32

_FLOAT_LIMIT: Final = 2**1024


def wrong_type(expected: str, value: object) -> WriteFailure:
    """The error for a value of the wrong type."""
    if value is None:
        return WriteFailure(NullNotAllowed)
    return WriteFailure(WrongType, expected, type(value).__name__)


def as_bool(value: object) -> bool:
    """The value as a bool. No other type is accepted, not even a number."""
    if not isinstance(value, bool):
        raise wrong_type("bool", value)
    return value


def as_integer(value: object, type: str) -> int:
    """The value as an int within the range of `type`. A bool counts as 0 or 1, and numpy integers are also accepted."""
    if not isinstance(value, int):  # check for int first, because an isinstance check against a protocol is slow
        if not isinstance(value, SupportsIndex):
            raise wrong_type("int", value)
        value = index(value)
    _, lowest, highest = INTEGERS[type]
    if not lowest <= value <= highest:
        raise WriteFailure(ValueOutOfRange, type, int(value), lowest, highest)
    return value


def as_float(value: object) -> float:
    """The value as a float. An int is accepted if it is not too large."""
    if not isinstance(value, float | int) and not isinstance(value, SupportsFloat | SupportsIndex):
        raise wrong_type("float", value)
    try:
        return float(value)
    except OverflowError:
        raise WriteFailure(ValueOutOfRange, "float64", value, -_FLOAT_LIMIT, _FLOAT_LIMIT) from None


def as_uuid(value: object) -> bytes:
    """The 16 bytes of a value that is a Uuid, 16 bytes, or a standard library UUID."""
    if not isinstance(value, bytes):
        raw = standard_uuid_bytes(value)
        if raw is None:
            raise wrong_type("Uuid", value)
        return raw
    if len(value) != 16:
        raise WriteFailure(WrongLength, len(value))
    return value


def as_text(value: object) -> str:
    """The value as a str. No other type is accepted."""
    if not isinstance(value, str):
        raise wrong_type("str", value)
    return value


def as_raw(value: object) -> bytes:
    """The value as bytes. A bytearray is rejected, because its content can change later."""
    if not isinstance(value, bytes):
        raise wrong_type("bytes", value)
    return value


def as_items(value: object) -> tuple[object, ...] | list[object]:
    """The value as a sequence, which must be a tuple or list."""
    if not isinstance(value, tuple | list):
        raise wrong_type("tuple", value)
    return value


def as_tag(value: object, highest: int) -> int:
    """The value as the number of an unknown tag, 0 to `highest`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type("int", value)
    if not 0 <= value <= highest <= MAX_INT32:
        raise WriteFailure(ValueOutOfRange, "a tag", int(value), 0, highest)
    return value
