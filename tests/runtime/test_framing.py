"""The int16 before a message: split off, written, missing. Other tests hold the forms for many rows against it."""

from __future__ import annotations

import pytest

from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION
from kafka_records_runtime.errors import FramingError, MissingRecordType, MissingValueVersion, NullKey
from kafka_records_runtime.framing import (
    PREFIX,
    framed,
    message_start,
    newer_as_highest,
    prefix_of,
    record_type_of,
    split_key,
    split_value,
    value_version_of,
)
from tests.framed import LONGEST, PREFIXES

FRAMED = [(data, number) for data, number in PREFIXES if data is not None and number is not None]


def test_it_has_two_bytes() -> None:
    assert PREFIX.size == 2


@pytest.mark.parametrize(("data", "number"), PREFIXES)
def test_what_a_key_or_value_starts_with(data: bytes | None, number: int | None) -> None:
    assert prefix_of(data) == number


@pytest.mark.parametrize(("data", "number"), FRAMED)
def test_split_off_and_written_again(data: bytes, number: int) -> None:
    assert record_type_of(data) == value_version_of(data) == number
    assert split_key(data) == split_value(data) == (number, data[2:])
    assert framed(number, data[2:]) == data


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff"])
def test_too_short_for_it(data: bytes) -> None:
    size = {0: "0 bytes", 1: "1 byte"}[len(data)]
    for read_key in (record_type_of, split_key):
        with pytest.raises(MissingRecordType) as key_failure:
            read_key(data)
        assert str(key_failure.value) == f"the key has {size}, a key starts with an int16 record type"
    for read_value in (value_version_of, split_value):
        with pytest.raises(MissingValueVersion) as value_failure:
            read_value(data)
        assert str(value_failure.value) == f"the value has {size}, a value starts with an int16 version"


def test_no_key_at_all() -> None:
    with pytest.raises(NullKey) as failure:
        split_key(None)
    assert isinstance(failure.value, FramingError)
    assert str(failure.value) == "the record has no key"


@pytest.mark.parametrize(("version", "read_at"), [(-1, -1), (0, 0), (3, 3), (4, 3), (32767, 3)])
def test_a_newer_version_reads_as_the_highest(version: int, read_at: int) -> None:
    assert newer_as_highest(CONSUMER_PROTOCOL_SUBSCRIPTION, version) == read_at


@pytest.mark.parametrize(
    ("text", "start"),
    [(b"", b"\x00\x00"), (b"gr", b"\x00\x02gr"), (LONGEST, b"\x7f\xff" + LONGEST), (LONGEST + b"x", None)],
)
def test_how_a_message_begins_with_a_text(text: bytes, start: bytes | None) -> None:
    assert message_start(text) == start
