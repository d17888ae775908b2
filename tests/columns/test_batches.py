"""Columns equal rows for batches of any kind: versions, nulls, empty, huge and tiny rows, rows broken anywhere."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_records import registry
from kafka_records_runtime.errors import DecodeError, KafkaRecordsError
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.wire import walker
from tests.columns.reference import check, counted_walks, engine_limits
from tests.columns.rows import Values, batch, broken_row, good_row
from tests.columns.schemas import schemas
from tests.runtime.spec_schemas import language_schemas

BATCHES = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SEEDS = st.integers(0, 2**32 - 1).map(Random)
SIZES = st.sampled_from([0, 1, 2, 7, 50, 49, 120])
FEW = st.sampled_from([0, 1, 48, 1_000_000])
BLOCK = st.sampled_from([0, 1, 200, None])


def ours() -> st.SearchStrategy[MessageSchema]:
    """All messages of the generated package, and Kafka's own test messages."""
    found = [registry.message_class(name).CODEC.schema for name in registry.MESSAGES]
    return st.sampled_from([*found, *language_schemas().values()])


@BATCHES
@given(message=schemas(), random=SEEDS, size=SIZES, few=FEW, block=BLOCK, unknown_tags=st.booleans())
def test_any_batch_of_any_message(
    message: MessageSchema, random: Random, size: int, few: int, block: int | None, unknown_tags: bool
) -> None:
    rows, versions = batch(random, message, size, damaged=0.3)
    with engine_limits(few, block):
        check(message, rows, versions, unknown_tags)


@BATCHES
@given(message=ours(), random=SEEDS, size=SIZES, few=FEW, block=BLOCK, unknown_tags=st.booleans())
def test_any_batch_of_our_messages(
    message: MessageSchema, random: Random, size: int, few: int, block: int | None, unknown_tags: bool
) -> None:
    rows, versions = batch(random, message, size, damaged=0.3)
    with engine_limits(few, block):
        check(message, rows, versions, unknown_tags)


@BATCHES
@given(message=schemas() | ours(), random=SEEDS, size=SIZES, few=FEW, unknown_tags=st.booleans())
def test_good_rows_never_go_to_the_walker(
    message: MessageSchema, random: Random, size: int, few: int, unknown_tags: bool
) -> None:
    """All rows except the two kinds that vectors do not support: very many tags in one struct, elements without
    bytes."""
    rows: list[bytes] = []
    versions: list[int] = []
    for _ in range(size):
        version = random.randint(*(message.versions or (0, 0)))
        row = good_row(random, message, version)
        if not is_rare(message, row, version):
            rows.append(row)
            versions.append(version)
    with engine_limits(few), counted_walks() as walked:
        found = check(message, rows, versions, unknown_tags)
    assert walked == []
    assert not found.bytes_left.any()


def is_rare(message: MessageSchema, row: bytes, version: int) -> bool:
    try:
        steps = list(walker.walk(message, version, row))
    except DecodeError:
        return True  # more elements without bytes than a reader accepts
    arrays_with_bytes = {
        step.path[:place] for step in steps if step.length for place, sign in enumerate(step.path) if sign == "["
    }
    return any(
        (step.type == "count" and step.value > 0 and step.path not in arrays_with_bytes)
        or (step.type == "tag count" and step.value > 64)
        for step in steps
    )


@BATCHES
@given(message=schemas() | ours(), random=SEEDS, few=FEW, unknown_tags=st.booleans())
def test_one_broken_row_among_good_ones(message: MessageSchema, random: Random, few: int, unknown_tags: bool) -> None:
    """The same row at the start, in the middle and at the end. Its neighbours are read as usual."""
    version = random.randint(*(message.versions or (0, 0)))
    good = [good_row(random, message, version) for _ in range(random.choice((2, 60)))]
    broken = broken_row(random, message, version, good[0])
    for place in (0, len(good) // 2, len(good)):
        with engine_limits(few):
            check(message, [*good[:place], broken, *good[place:]], version, unknown_tags)


@BATCHES
@given(message=schemas() | ours(), random=SEEDS, few=FEW, unknown_tags=st.booleans())
def test_every_cut_of_a_row(message: MessageSchema, random: Random, few: int, unknown_tags: bool) -> None:
    """All prefixes of a message in one column, so that rows end at every possible place."""
    version = random.randint(*(message.versions or (0, 0)))
    row = good_row(random, message, version)[:400]
    with engine_limits(few):
        check(message, [row[:size] for size in range(len(row) + 1)], version, unknown_tags)


@BATCHES
@given(message=ours(), random=SEEDS, size=SIZES)
def test_versions_before_the_messages(message: MessageSchema, random: Random, size: int) -> None:
    rows, versions = batch(random, message, size, damaged=0.3, huge=0.05)
    framed = [
        None if row is None else b"" if version is None else version.to_bytes(2, "big", signed=True) + row
        for row, version in zip(rows, versions, strict=True)
    ]
    check(message, framed, None, unknown_tags=True)


# -- what the batches above are made of -------------------------------------------------------------


@given(message=schemas(), random=SEEDS)
def test_random_messages_are_messages(message: MessageSchema, random: Random) -> None:
    """Otherwise the tests above would only compare equal errors."""
    assert message.versions is not None
    for version in range(message.versions[0], message.versions[1] + 1):
        value = Values(random, message, version).row()
        data = walker.encode(message, value, version)
        _, used = walker.decode(message, data, version)
        assert used == len(data)


def test_broken_rows_break_in_every_way() -> None:
    """The damaged rows reach every error of the walker and every leniency."""
    random = Random(7)
    found: set[str] = set()
    messages = [*language_schemas().values(), registry.message_class("GroupMetadataValue").CODEC.schema]
    for message in messages * 12:
        rows, versions = batch(random, message, 60, damaged=0.9, huge=0)
        columns = check(message, rows, versions, unknown_tags=True)
        found |= {type(error).__name__ for error in columns.errors.values()}
        found |= {name for names in columns.leniencies.values() for name in names}
    assert found == {
        *("BufferUnderflow", "CountTooLarge", "InvalidTag", "InvalidVarint", "StringTooLong", "UnexpectedNull"),
        "UnsupportedVersion",
        *("invalid_utf8", "negative_length", "repeated_tag", "struct_marker", "tag_count", "tag_number", "tag_order"),
        *("tag_size", "varint_bits"),
    }


def test_errors_are_those_of_the_runtime() -> None:
    message = registry.message_class("OffsetCommitValue").CODEC.schema
    found = check(message, [b"\x00", None, b"\x00\x09", b"\x00\x01\x00"], None, unknown_tags=False)
    assert all(isinstance(error, KafkaRecordsError) for error in found.errors.values())
    assert {row: str(error) for row, error in found.errors.items()} == {
        0: "the value has 1 byte, but a value starts with an int16 version",
        2: "OffsetCommitValue has no version 9: its versions are 0 to 4",
        3: "OffsetCommitValue v1 at byte 0: offset needs 8 bytes, but 1 is left",
    }
    assert found.values.to_pylist() == [None] * 4


@pytest.mark.parametrize("few", [0, 48, 1_000_000])
def test_one_huge_array_among_small_ones(few: int) -> None:
    """Both ways to read arrays in one column, with thousands of elements in a row."""
    message = registry.message_class("GroupMetadataValue").CODEC.schema
    random = Random(3)
    small = [good_row(random, message, 3) for _ in range(60)]
    huge = good_row(random, message, 3, plenty=3_000)
    with engine_limits(few), counted_walks() as walked:
        found = check(message, [*small, huge, *small], 3, unknown_tags=False)
    assert walked == []
    assert pa.compute.list_value_length(found.values.field("members")).to_pylist()[60] >= 1_500
