"""The int16 before a message: split off, written, missing. Other tests compare the forms for many rows with it."""

from __future__ import annotations

import pytest

from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION
from kafka_records_runtime.errors import FramingError, MissingRecordType, MissingValueVersion, NullKey
from kafka_records_runtime.records.framing import (
    COORDINATOR,
    PREFIX,
    end_frame,
    frame_start,
    framed,
    framing_of,
    in_frame,
    message_start,
    newer_as_highest,
    numbers_of_frame,
    prefix_of,
    record_type_of,
    split_key,
    split_value,
    start_frame,
    unknown_api_key,
    value_version_of,
)
from tests.framed import LONGEST, PREFIXES
from tests.ledger import FRAMES

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
        assert str(key_failure.value) == f"the key has {size}, but a key starts with an int16 record type"
    for read_value in (value_version_of, split_value):
        with pytest.raises(MissingValueVersion) as value_failure:
            read_value(data)
        assert str(value_failure.value) == f"the value has {size}, but a value starts with an int16 version"


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


@pytest.mark.parametrize(
    ("api_key", "version", "frame"),
    [
        (2, 0, "01 02 00"),
        (127, 127, "01 7f 7f"),
        (128, 300, "01 80 01 ac 02"),
        (32767, 32767, "01 ff ff 01 ff ff 01"),
    ],
)
def test_the_frame_of_a_metadata_record(api_key: int, version: int, frame: str) -> None:
    value = in_frame(api_key, version, b"message")
    assert value == bytes.fromhex(frame) + b"message"
    assert value.startswith(frame_start(api_key))
    number, at = start_frame(None, value)
    assert (number, *end_frame(value, at)) == (api_key, version, len(value) - len(b"message"))
    assert numbers_of_frame(value) == (api_key, version)


def test_a_frame_longer_than_it_need_be() -> None:
    value = bytes.fromhex("81 00 82 80 00 83 80 80 80 00 aa")
    assert start_frame(None, value) == (2, 5)
    assert end_frame(value, 5) == (3, 10)


def read_frame(key: bytes | None, value: bytes | None, *, is_known: bool) -> None:
    """Read a frame whose api key is known or not."""
    _, at = start_frame(key, value)
    assert value is not None
    if not is_known:
        raise unknown_api_key(value)
    end_frame(value, at)


@pytest.mark.parametrize(("key", "value", "name", "offset", "text"), FRAMES)
def test_no_frame(key: bytes | None, value: bytes | None, name: str, offset: int | None, text: str) -> None:
    with pytest.raises(FramingError) as failure:
        read_frame(key, value, is_known=name != "UnknownApiKey")
    assert (type(failure.value).__name__, failure.value.offset, str(failure.value)) == (name, offset, text)
    if key is None and name != "UnknownApiKey":
        assert None in numbers_of_frame(value)


def test_records_are_those_of_a_coordinator_unless_they_say_so() -> None:
    assert framing_of(RECORDS) == framing_of({}) == COORDINATOR
