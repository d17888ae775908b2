"""Arrays and sections of tags that Kafka reads up to 4.3 and refuses from 4.4 on (docs/strictness.md)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafka_records import registry
from kafka_records_engine.columns import decode_column
from kafka_records_runtime.wire import walker
from kafka_records_runtime.wire.primitives import write_uvarint
from tests.kafka_needed import skipped_without_kafka
from tools.broker import class_jars
from tools.follow.vectors import MessageClasses

MOST_ELEMENTS = 1_000_000
MOST_TAGS = 10_000


def varint(number: int) -> bytes:
    out = bytearray()
    write_uvarint(out, number)
    return bytes(out)


def commit_with_tags(count: int) -> bytes:
    """An OffsetCommitValue 4 with so many unknown tagged fields, all without a payload."""
    tags = b"".join(varint(100 + number) + b"\x00" for number in range(count))
    return bytes(8) + b"\xff" * 4 + b"\x01" + bytes(8) + varint(count) + tags


def compact_array(count: int) -> bytes:
    """A ConsumerGroupTargetAssignmentMemberValue 0 with so many partitions of one topic."""
    return varint(2) + bytes(16) + varint(count + 1) + bytes(4 * count) + b"\x00\x00"


def array(count: int) -> bytes:
    """A ConsumerProtocolAssignment 0 with so many partitions of one topic, without user data."""
    return b"\x00\x00\x00\x01\x00\x01t" + count.to_bytes(4, "big") + bytes(4 * count) + b"\xff" * 4


BEYOND = {
    ("OffsetCommitValue", 4): (commit_with_tags, MOST_TAGS, "10001 tagged fields, which exceeds the maximum"),
    ("ConsumerGroupTargetAssignmentMemberValue", 0): (
        compact_array,
        MOST_ELEMENTS,
        "collection of size 1000001, which exceeds the maximum",
    ),
    ("ConsumerProtocolAssignment", 0): (array, MOST_ELEMENTS, "collection of size 1000001, which exceeds the maximum"),
}


@pytest.mark.parametrize(("name", "version"), BEYOND)
def test_every_reader_takes_them(name: str, version: int) -> None:
    """The class, the walker and the columns accept them, strict and lenient, and report no leniency."""
    make, most, _ = BEYOND[name, version]
    data = make(most + 1)
    cls = registry.message_class(name)
    message = cls.decode(data, version)
    assert message.encode(version) == data
    leniencies: list[str] = []
    value, used = walker.decode(
        cls.CODEC.schema, data, version, classes=cls.CODEC.classes, lenient=True, leniencies=leniencies
    )
    assert (value == message, used, leniencies) == (True, len(data), [])
    columns = decode_column(cls.CODEC.schema, pa.array([data], pa.binary()), version, unknown_tags=True)
    assert columns.errors == {}
    assert largest(columns.values[0].as_py()) == most + 1


def largest(value: Any) -> int:
    """The length of the longest list in a value."""
    if isinstance(value, dict):
        return max(map(largest, value.values()), default=0)
    if isinstance(value, list):
        return max(len(value), *(largest(item) for item in value[:1]), 0)
    return 0


@pytest.mark.maven
@pytest.mark.slow
@pytest.mark.matrix
def test_what_the_classes_of_both_releases_say() -> None:
    lines = [
        {"message": name, "version": version, "hex": make(most + more).hex()}
        for (name, version), (make, most, _) in BEYOND.items()
        for more in (0, 1)
    ]
    with skipped_without_kafka():
        older, newer = (MessageClasses(jars).asked(lines) for jars in (class_jars("4.3.1"), class_jars("4.4.0")))
    assert [answer["ok"] for answer in older] == [True] * len(lines)
    assert [answer["ok"] for answer in newer] == [True, False] * len(BEYOND)
    for answer, (_, _, words) in zip(newer[1::2], BEYOND.values(), strict=True):
        assert words in answer["detail"]
