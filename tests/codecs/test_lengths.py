"""Fast paths choose their `struct` formats by lengths: every kind of length is read right, and tables stay small."""

from __future__ import annotations

from struct import Struct
from typing import Any

import pytest

from kafka_records.consumer_offsets.group_metadata import GroupMetadataValue, MemberMetadata
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records.consumer_protocol.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafka_records_runtime.errors import DecodeError
from kafka_records_runtime.messages import codec
from kafka_records_runtime.messages.codec import Codec, GiveUp
from kafka_records_runtime.wire import walker

LENGTHS = (0, 1, 126, 127, 128, 255, 256, 300, 4095, 4096, 16_382, 16_383, 16_384, 32_767)
"""Around the ends of a byte, of a varint's bytes, of the tables, and Kafka's limit."""


@pytest.fixture
def fast_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid the fallback to the schema walker."""

    def refuse(self: Codec[Any], data: bytes, version: int) -> Any:
        raise AssertionError(f"the fast path gave up on {len(data)} bytes")

    monkeypatch.setattr(Codec, "decode", refuse)


def check(message: Any, version: int) -> None:
    encoded = message.encode(version)
    for _ in range(2):  # the second call uses the table entry that the first one made
        assert type(message).decode(encoded, version) == message
    assert encoded == walker.encode(message.CODEC.schema, message, version)


@pytest.mark.usefixtures("fast_only")
@pytest.mark.parametrize("first", LENGTHS)
@pytest.mark.parametrize("second", LENGTHS)
def test_two_strings(first: int, second: int) -> None:
    check(OffsetCommitKey("g" * first, "t" * second, 7), 0)


@pytest.mark.usefixtures("fast_only")
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("version", OffsetCommitValue.VERSIONS)
def test_a_string_behind_numbers(version: int, length: int) -> None:
    check(OffsetCommitValue(offset=1 << 40, metadata="m" * length, commit_timestamp=-1), version)


@pytest.mark.usefixtures("fast_only")
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("version", GroupMetadataValue.VERSIONS)
def test_strings_and_bytes_in_structs(version: int, length: int) -> None:
    instance = {None, "i" * length} if version >= 3 else {None}
    for leader in (None, "l" * length):
        for group_instance_id in instance:
            member = MemberMetadata(
                member_id="m" * length,
                group_instance_id=group_instance_id,
                client_id="c" * (length // 2),
                client_host="h" * (length // 3),
                subscription=b"s" * length,
                assignment=b"a" * (2 * length),
            )
            members = (member, MemberMetadata(), member)
            check(GroupMetadataValue("p" * length, 1, leader, leader, members=members), version)


@pytest.mark.usefixtures("fast_only")
@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 4095, 4096, 20_000])
@pytest.mark.parametrize("length", [0, 255, 256, 32_767])
def test_a_string_and_numbers(length: int, count: int) -> None:
    topic = TopicPartition("t" * length, tuple(range(count)))
    check(ConsumerProtocolAssignment((topic, topic), None), 3)


@pytest.mark.parametrize("first_length", [0x0105, 0x8005, 0xFF05, 0x0205])
@pytest.mark.parametrize("second_length", [0x0003, 0xFF03, 0x0103])
def test_a_length_is_more_than_its_low_byte(first_length: int, second_length: int) -> None:
    """The bytes would fit if only the low byte of the first length counted."""
    data = Struct(">H5sH3si").pack(first_length, b"group", second_length, b"top", 7)
    with pytest.raises(DecodeError) as by_walker:
        walker.decode(OffsetCommitKey.CODEC.schema, data, 0)
    with pytest.raises(DecodeError) as by_class:
        OffsetCommitKey.decode(data, 0)
    assert str(by_class.value) == str(by_walker.value)


def test_a_null_of_more_than_one_byte() -> None:
    """The fields after a null are read in advance; for a null of two bytes, that would be one byte too early."""
    encoded = GroupMetadataValue("p", 1, None, None, current_state_timestamp=5).encode(4)
    at = 2 + 1 + 4 - 1
    assert encoded[at] == 0
    odd = encoded[:at] + b"\x80\x00" + encoded[at + 1 :]
    assert GroupMetadataValue.decode(odd, 4) == GroupMetadataValue("p", 1, None, None, current_state_timestamp=5)


def test_tables_by_two_numbers_stay_small() -> None:
    unpackers: dict[int, dict[int, codec.Whole]] = {}
    packers: dict[int, dict[int, codec.Pack]] = {}
    for size in range(0, 2000, 7):
        for length in range(0, size, 5):
            codec.whole_pair_unpacker(unpackers, ">H{}sh{}s", size + 4, 4, length)
            codec.text_array_packer(packers, "i", size, length)
    for table in (unpackers, packers):
        assert max(table) < 512
        assert max(len(entries) for entries in table.values()) == 32


@pytest.mark.parametrize(("size", "length"), [(3, 0), (12, 9), (40_000, 32_768)])
def test_lengths_that_cannot_be(size: int, length: int) -> None:
    with pytest.raises(GiveUp):
        codec.whole_pair_unpacker({}, ">H{}sh{}s", size, 4, length)
