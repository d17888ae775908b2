"""Reading one record for a row: the readable parts of records that cannot be read."""

from __future__ import annotations

import pytest

from kafka_records.schemas.consumer_offsets import RECORDS
from tests.row_reader import RowReader, error_fields

KEY = bytes.fromhex("0001" "0001" "67" "0001" "74" "00000003")
VALUE = bytes.fromhex("0003" "000000000000002a" "ffffffff" "0000" "0000000000000005")


@pytest.fixture(scope="module")
def reader() -> RowReader:
    return RowReader(RECORDS)


def test_a_record(reader: RowReader) -> None:
    row = reader.read(KEY, VALUE)

    assert row.is_decoded
    assert (row.record_type, row.value_version) == (1, 3)
    assert row.key == {"group": "g", "topic": "t", "partition": 3}
    assert (row.value["offset"], row.value["leader_epoch"], row.value["commit_timestamp"]) == (42, -1, 5)
    assert row.error is None


def test_a_tombstone(reader: RowReader) -> None:
    row = reader.read(KEY, None)

    assert row.is_decoded
    assert (row.key["group"], row.value, row.value_version) == ("g", None, None)


def test_bytes_behind_key_and_value_are_left_alone(reader: RowReader) -> None:
    row = reader.read(KEY + b"\x00", VALUE + b"\x00\x01")
    assert row.is_decoded
    assert row.key["group"] == "g"


def test_an_unknown_record_type_is_no_error(reader: RowReader) -> None:
    row = reader.read(b"\x00\x18rest", b"anything")
    assert (row.record_type, row.known, row.is_decoded, row.error) == (24, False, False, None)


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (
            None,
            VALUE,
            {"reason": "NullKey", "record_type": None, "version": None, "path": None, "byte_offset": None}
            | {"message": "the record has no key"},
        ),
        (
            b"\x01",
            VALUE,
            {"reason": "MissingRecordType", "record_type": None, "version": None, "path": None, "byte_offset": None}
            | {"message": "the key has 1 byte, but a key starts with an int16 record type"},
        ),
        (
            KEY[:-1],
            VALUE,
            {"reason": "BufferUnderflow", "record_type": 1, "version": 0, "path": "partition", "byte_offset": 6}
            | {"message": "OffsetCommitKey v0 at byte 6: partition needs 4 bytes, but 3 are left"},
        ),
        (
            KEY,
            b"",
            {"reason": "MissingValueVersion", "record_type": 1, "version": None, "path": None, "byte_offset": None}
            | {"message": "the value has 0 bytes, but a value starts with an int16 version"},
        ),
        (
            KEY,
            b"\x00\x05" + VALUE[2:],
            {"reason": "UnsupportedVersion", "record_type": 1, "version": 5, "path": "", "byte_offset": 0}
            | {"message": "OffsetCommitValue has no version 5: its versions are 0 to 4"},
        ),
        (
            KEY,
            VALUE[:-3],
            {"reason": "BufferUnderflow", "record_type": 1, "version": 3, "path": "commit_timestamp"}
            | {"byte_offset": 14}
            | {"message": "OffsetCommitValue v3 at byte 14: commit_timestamp needs 8 bytes, but 5 are left"},
        ),
    ],
)
def test_what_is_wrong(reader: RowReader, key: bytes | None, value: bytes, error: dict[str, object]) -> None:
    row = reader.read(key, value)
    assert error_fields(row) == error
    assert not row.is_decoded


def test_a_broken_value_leaves_the_key(reader: RowReader) -> None:
    row = reader.read(KEY, VALUE[:5])
    assert row.key == {"group": "g", "topic": "t", "partition": 3}
    assert row.value is None
    assert row.value_version == 3


def test_type_0_has_the_values_of_version_0_only(reader: RowReader) -> None:
    row = reader.read(b"\x00\x00" + KEY[2:], VALUE)
    fields = error_fields(row)
    assert fields is not None
    assert fields["message"] == "LegacyOffsetCommitValue has no version 3: its only version is 0"


@pytest.mark.parametrize("length", range(len(VALUE)))
def test_every_prefix_of_a_value_is_an_error(reader: RowReader, length: int) -> None:
    fields = error_fields(reader.read(KEY, VALUE[:length]))
    assert fields is not None
    assert (fields["byte_offset"] is None) == (length < 2)
