"""Keys and values of mixed records as columns, compared with the results of `RowReader` for every record."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_records_engine.columns import RecordColumns, _pieces, decode_record_columns
from kafka_records_engine.columns._assembly import split
from kafka_records_runtime.schema import MessageSchema, RecordSchema
from kafka_records_runtime.wire import walker
from tests.columns.buffers import guarded_copies
from tests.columns.records import assert_records, read_rows, records_of
from tests.columns.reference import counted_walks, engine_limits
from tests.columns.rows import broken_row, good_row, huge_row

FOLDERS = ("consumer_offsets", "share_group_state", "transaction_state")
SEEDS = st.integers(0, 2**32 - 1).map(Random)
OFFSETS = records_of("consumer_offsets")
KEY = b"\x00\x01" + walker.encode(OFFSETS[1].key, {"group": "g", "topic": "t", "partition": 3}, 0)
VALUE = b"\x00\x03" + walker.encode(OFFSETS[1].value, {"offset": 42, "metadata": "m"}, 3)
GROUP_KEY = b"\x00\x02" + walker.encode(OFFSETS[2].key, {"group": "g"}, 0)
GROUP_VALUE = b"\x00\x03" + walker.encode(OFFSETS[2].value, {"protocol_type": "consumer"}, 3)

Records = tuple[list[bytes | None], list[bytes | None]]


def check_records(
    schemas: dict[int, RecordSchema],
    keys: list[bytes | None],
    values: list[bytes | None],
    unknown_tags: bool = True,
    is_record: list[bool] | None = None,
    kind: pa.DataType | None = None,
) -> RecordColumns:
    kind = kind or pa.binary()
    found = decode_record_columns(
        schemas,
        pa.array(keys, kind),
        pa.array(values, kind),
        None if is_record is None else np.array(is_record, np.bool_),
        unknown_tags=unknown_tags,
    )
    assert_records(found, schemas, read_rows(schemas, keys, values, unknown_tags, is_record), unknown_tags)
    return found


def framed(random: Random, message: MessageSchema, number: int, version: int, damaged: float) -> bytes:
    row = good_row(random, message, version)
    if random.random() < damaged:
        row = broken_row(random, message, version, row)
    return number.to_bytes(2, "big", signed=True) + row


def records(random: Random, schemas: dict[int, RecordSchema], count: int, damaged: float) -> Records:
    """Keys and values of all types, among them null, short, unknown and broken ones."""
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    for _ in range(count):
        record = schemas[random.choice(sorted(schemas))]
        lowest, highest = record.value.versions or (0, 0)
        version = random.randint(lowest, highest)
        number = record.type if random.random() < 0.95 else random.choice((-1, 99, 32767))
        key: bytes | None = framed(random, record.key, number, 0, damaged / 3)
        value: bytes | None = framed(random, record.value, version, version, damaged)
        odd = random.random()
        if odd < 0.15:
            value = None
        elif odd < 0.25:
            value = random.choice((b"", b"\x00", b"\x00\x63", b"\xff\xffabc", b"\x7f\xff"))
        elif odd < 0.3:
            key = random.choice((None, b"", b"\x00", b"\x00\x01"))
        elif odd < 0.31:
            value = version.to_bytes(2, "big") + huge_row(random, record.value, version)
        keys.append(key)
        values.append(value)
    return keys, values


# -- any mixture ------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    folder=st.sampled_from(FOLDERS),
    random=SEEDS,
    size=st.sampled_from([0, 1, 3, 60, 150]),
    few=st.sampled_from([0, 48]),
    block=st.sampled_from([0, 300, None]),
    unknown_tags=st.booleans(),
    leaves_out=st.booleans(),
)
def test_any_mixture_of_records(
    folder: str, random: Random, size: int, few: int, block: int | None, unknown_tags: bool, leaves_out: bool
) -> None:
    schemas = records_of(folder)
    keys, values = records(random, schemas, size, damaged=0.3)
    is_record = [random.random() < 0.8 for _ in keys] if leaves_out else None
    with engine_limits(few, block), guarded_copies():
        check_records(schemas, keys, values, unknown_tags, is_record)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(random=SEEDS, most=st.sampled_from([30, 200, 2_000]), kind=st.sampled_from([pa.binary(), pa.large_binary()]))
def test_more_bytes_than_one_piece_may_have(random: Random, most: int, kind: pa.DataType) -> None:
    """Columns of more than 2³¹-1 bytes are read in parts, split by rows so that keys stay with their values."""
    keys, values = records(random, OFFSETS, 20, damaged=0.2)
    is_record = [random.random() < 0.8 for _ in keys]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pieces, "MOST_BYTES", most)
        check_records(OFFSETS, keys, values, True, is_record, kind)


def test_good_records_never_go_to_the_walker() -> None:
    random = Random(1)
    with counted_walks() as walked:
        for folder in FOLDERS:
            schemas = records_of(folder)
            keys: list[bytes | None] = []
            values: list[bytes | None] = []
            for record in list(schemas.values()) * 10:
                version = random.randint(*(record.value.versions or (0, 0)))
                keys.append(framed(random, record.key, record.type, 0, damaged=0))
                values.append(framed(random, record.value, version, version, damaged=0))
            assert check_records(schemas, keys, values).errors == {}
    # Vectors do not support sections of more than 64 tags, of which `good_row` makes a few.
    assert len(walked) <= 10


# -- each case by itself ----------------------------------------------------------------------------


def test_a_record_of_every_kind() -> None:
    cases: list[tuple[bytes | None, bytes | None, str | None]] = [
        (KEY, VALUE, None),
        (KEY, None, None),
        (GROUP_KEY, GROUP_VALUE, None),
        (None, VALUE, "the record has no key"),
        (None, None, "the record has no key"),
        (b"", VALUE, "the key has 0 bytes, but a key starts with an int16 record type"),
        (b"\x00", VALUE, "the key has 1 byte, but a key starts with an int16 record type"),
        (b"\x00\x63", VALUE, None),
        (b"\xff\xff", None, None),
        (b"\x00\x01", VALUE, "OffsetCommitKey v0 at byte 0: group needs 2 bytes, but 0 are left"),
        (KEY[:-1], VALUE, "OffsetCommitKey v0 at byte 6: partition needs 4 bytes, but 3 are left"),
        (KEY, b"", "the value has 0 bytes, but a value starts with an int16 version"),
        (KEY, b"\x00", "the value has 1 byte, but a value starts with an int16 version"),
        (KEY, b"\x00\x09", "OffsetCommitValue has no version 9: its versions are 0 to 4"),
        (KEY, b"\xff\xff", "OffsetCommitValue has no version -1: its versions are 0 to 4"),
        (KEY, VALUE[:-1], "OffsetCommitValue v3 at byte 15: commit_timestamp needs 8 bytes, but 7 are left"),
        (KEY + b"abc", VALUE + b"de", None),
        (KEY[:-1], b"", "OffsetCommitKey v0 at byte 6: partition needs 4 bytes, but 3 are left"),
    ]
    found = check_records(OFFSETS, [case[0] for case in cases], [case[1] for case in cases])
    assert {row: str(error) for row, error in found.errors.items()} == {
        row: case[2] for row, case in enumerate(cases) if case[2]
    }
    assert (found.key_bytes_left[16], found.value_bytes_left[16]) == (3, 2)
    assert found.records.keys() == {1, 2}
    offsets, groups = found.records[1].to_pylist(), found.records[2].to_pylist()
    assert [row is not None for row in offsets] == [row in {0, 1, 11, 12, 13, 14, 15, 16} for row in range(18)]
    assert [row is not None for row in groups] == [row == 2 for row in range(18)]
    assert offsets[1] == {"key": {"group": "g", "topic": "t", "partition": 3}, "value": None}
    assert offsets[15] == offsets[1]


def test_leniencies_of_key_and_value_in_order() -> None:
    """Kafka accepts text that is not UTF-8, and takes every negative length for null."""
    key = KEY.replace(b"\x01t", b"\x01\xff")
    value = VALUE.replace(b"\x00\x01m", b"\x00\x01\xfe")
    null = VALUE.replace(b"\x00\x01m", b"\xff\xfe")
    found = check_records(OFFSETS, [key, KEY, key, key], [value, value, None, null])
    assert found.leniencies == {0: ["invalid_utf8"] * 2, 1: ["invalid_utf8"], 2: ["invalid_utf8"]} | {
        3: ["invalid_utf8", "negative_length"]
    }
    assert (
        str(found.errors[3]) == "OffsetCommitValue v3 at byte 12: metadata is null, which this version does not allow"
    )


def test_unknown_tags_of_a_key_are_seen_when_the_value_fails() -> None:
    """`has_unknown_tags` covers everything that was read. No key of Kafka is flexible, but a user's key may be."""
    flexible = OFFSETS[1].value  # its version 4 is; keys are read at version 0
    key_schema = MessageSchema(flexible.format, flexible.name, (0, 0), (0, 0), flexible.structs)
    schemas = {5: RecordSchema(5, "Own", key_schema, OFFSETS[1].value)}
    tagged = {"unknown_tagged_fields": ((9, b"x"),)}
    key = b"\x00\x05" + walker.encode(key_schema, tagged, 0)
    plain = b"\x00\x05" + walker.encode(key_schema, {}, 0)
    found = check_records(schemas, [key, key, plain, plain], [VALUE, VALUE[:-1], VALUE, VALUE[:-1]])
    assert found.has_unknown_tags.tolist() == [True, True, False, False]


def test_control_records_say_nothing() -> None:
    """Keys of control records have another form, and are not decoded."""
    keys: list[bytes | None] = [KEY, b"\x00\x00\x00\x01", None, KEY]
    values: list[bytes | None] = [VALUE, b"\x00\x00\x00\x00\x00\x07", b"", None]
    found = check_records(OFFSETS, keys, values, is_record=[True, False, False, True])
    assert found.errors == {}
    assert found.has_type.tolist() == found.is_known.tolist() == [True, False, False, True]
    assert check_records(OFFSETS, keys, values, is_record=[False] * 4).records == {}


@pytest.mark.parametrize("size", [0, 1, 7])
def test_nothing_but_nulls(size: int) -> None:
    found = check_records(OFFSETS, [None] * size, [None] * size)
    assert len(found.errors) == size
    assert check_records(OFFSETS, [KEY] * size, [None] * size).errors == {}
    nulls = decode_record_columns(OFFSETS, pa.array([KEY] * size, pa.binary()), pa.nulls(size))
    assert nulls.errors == {}


def test_only_the_schemas_that_are_asked_for() -> None:
    """A type without schema is not an error, as everywhere."""
    found = check_records({2: OFFSETS[2]}, [KEY, GROUP_KEY, KEY[:3]], [VALUE, GROUP_VALUE, b""])
    assert found.records.keys() == {2}
    assert found.errors == {}
    assert check_records({}, [KEY, None], [VALUE, None]).records == {}


def test_a_thousand_types_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile rows may each have another type. One pass must leave out all of them."""
    asked: list[int] = []

    def counting(rows: Any, numbers: Any) -> Any:
        for number, chosen in split(rows, numbers):
            asked.append(number)
            yield number, chosen

    monkeypatch.setattr("kafka_records_engine.columns._record_columns.split", counting)
    keys: list[bytes | None] = [number.to_bytes(2, "big", signed=True) + KEY[2:] for number in range(-500, 500)]
    found = check_records({1: OFFSETS[1]}, keys, [VALUE] * 1_000)
    assert found.is_known.sum() == 1
    assert asked == [1]


@pytest.mark.parametrize("cut", [1, 3, 17])
def test_keys_and_values_in_other_layouts(cut: int) -> None:
    """Slices, chunks that end at different rows, layouts that differ between keys and values."""
    keys, values = records(Random(9), OFFSETS, 30, damaged=0.2)
    rows = read_rows(OFFSETS, keys, values, True)

    def chunks(data: list[bytes | None], at: int, kind: Any) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array(data[:at], kind), pa.array([], kind), pa.array(data[at:], kind)])

    around: list[bytes | None] = [b"\x00\x02x", None]
    for left, right in [
        (pa.array(around + keys, pa.large_binary()).slice(2), pa.array(values + around, pa.binary_view())[:30]),
        (chunks(keys, cut, pa.binary()), chunks(values, 30 - cut, pa.binary())),
        (chunks(keys, cut, pa.binary_view()), pa.array(values, pa.large_binary())),
        (pa.array(around + keys + around).slice(2, 30), chunks(values, cut, pa.large_binary())),
    ]:
        assert_records(decode_record_columns(OFFSETS, left, right, unknown_tags=True), OFFSETS, rows, True)


def test_columns_that_are_not_binary() -> None:
    for keys, values in [(pa.array([1]), pa.array([b""])), (pa.array([b""]), pa.array([1]))]:
        with pytest.raises(TypeError) as caught:
            decode_record_columns(OFFSETS, keys, values)
        assert str(caught.value) == "a column of encoded messages must be binary, not int64"


@pytest.mark.parametrize(
    ("keys", "values"), [([KEY], [VALUE, VALUE]), ([KEY, KEY], [VALUE]), ([], [None])], ids=["more", "fewer", "none"]
)
def test_as_many_values_as_keys(keys: list[bytes | None], values: list[bytes | None]) -> None:
    with pytest.raises(ValueError, match=f"^{len(keys)} keys but {len(values)} values$"):
        decode_record_columns(OFFSETS, pa.array(keys, pa.binary()), pa.array(values, pa.binary()))
