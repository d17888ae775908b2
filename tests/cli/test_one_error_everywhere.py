"""A record that cannot be read: all readers report the same error with the same byte position."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_records.consumer_offsets import OffsetCommit, UnknownTypeRecord, UnknownVersionRecord, decode_record
from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records_engine.spark.decode import BatchDecoder
from kafka_records_runtime.errors import DecodeError, FramingError, KafkaRecordsError, UnsupportedVersion
from kafka_records_runtime.records.reading import read_record, schema_record_types
from tests.cli.running import run
from tests.cli.segment_bytes import batch, write_segment
from tests.row_reader import RowReader, error_fields

KEY = bytes.fromhex("0001" "0001" "67" "0001" "74" "00000003")
VALUE = bytes.fromhex("0003" "000000000000002a" "ffffffff" "0000" "0000000000000005")
MEMBERS = bytes.fromhex("0003" "0001" "6b" "00000001" "ffff" "ffff" "0000000000000001" "00000001" "0001" "6d")
"""Metadata of a group in version 3 that ends inside its first member."""

RECORDS_THAT_CANNOT_BE_READ = {
    "the value ends": (KEY, VALUE[:-3]),
    "the value ends after its version": (KEY, VALUE[:2]),
    "the value ends in a member": (b"\0\2\0\1g", MEMBERS),
    "the value has null if there is none": (KEY, VALUE.replace(b"\xff\xff\0\0", b"\xff\xff\xff\xff")),
    "the value has an unknown version": (KEY, b"\0\5" + VALUE[2:]),
    "the value has a negative version": (KEY, b"\xff\xff" + VALUE[2:]),
    "the value has a version of another record type": (b"\0\0" + KEY[2:], VALUE),
    "the value has no version": (KEY, b"\0"),
    "the key ends": (KEY[:-1], VALUE),
    "the key ends after its type": (KEY[:2], VALUE),
    "the key has no type": (b"\1", VALUE),
}

Told = dict[str, Any]


@pytest.fixture(params=RECORDS_THAT_CANNOT_BE_READ.values(), ids=list(RECORDS_THAT_CANNOT_BE_READ))
def record(request: pytest.FixtureRequest) -> tuple[bytes, bytes]:
    found: tuple[bytes, bytes] = request.param
    return found


def told_of(error: KafkaRecordsError) -> Told:
    """The error in the form of `dump` and Spark."""
    has_place = isinstance(error, DecodeError)
    return {
        "reason": type(error).__name__,
        "version": getattr(error, "version", None),
        "path": getattr(error, "path", None) if has_place else None,
        "byte_offset": getattr(error, "offset", None) if has_place else None,
        "message": str(error),
    }


def by_python(key: bytes, value: bytes) -> Told:
    """The error of `decode_record`, or its report about a record of an unknown version."""
    try:
        found = decode_record(key, value)
    except (DecodeError, FramingError) as error:
        return told_of(error)
    assert isinstance(found, UnknownVersionRecord)
    assert found.value == value
    return told_of(found.error)


def without(told: Any, *names: str) -> Told:
    return {name: value for name, value in told.items() if name not in names}


def test_python_with_schemas_alone(record: tuple[bytes, bytes]) -> None:
    try:
        error: Any = read_record(schema_record_types(RECORDS), *record).error
    except (DecodeError, FramingError) as raised:
        error = raised
    assert told_of(error) == by_python(*record)


def test_spark(record: tuple[bytes, bytes]) -> None:
    key, value = record
    rows = pa.RecordBatch.from_arrays([pa.array([key]), pa.array([value])], names=["key", "value"])
    (decoded,) = BatchDecoder(RECORDS, "PERMISSIVE", coordinates=())(iter([rows]))
    (told,) = decoded.column("error").to_pylist()
    assert told == error_fields(RowReader(RECORDS).read(key, value))
    assert without(told, "record_type") == by_python(key, value)


def test_dump(record: tuple[bytes, bytes], tmp_path: Path) -> None:
    ran = run("dump", str(write_segment(tmp_path, batch(0, [record]))))
    assert without(json.loads(ran.lines[0])["error"], "part") == by_python(*record)
    assert ran.status == 1


def test_the_findings_of_a_table(record: tuple[bytes, bytes], tmp_path: Path) -> None:
    key, value = record
    path, findings = write_segment(tmp_path, batch(0, [record])), tmp_path / "findings.jsonl"
    table = "groups" if key[:2] == b"\0\2" else "current_offsets"
    ran = run("table", table, str(path), "--findings", str(findings))
    (found,) = [json.loads(line) for line in findings.read_text("utf-8").splitlines()]
    told = by_python(key, value)
    assert {name: found[name] for name in ("reason", "version", "path", "byte_offset")} == without(told, "message")
    behind = "type" if "Key v" in told["message"] else "version"
    place = f"at byte {told['byte_offset']}"
    assert told["message"].replace(f"{place}:", f"{place} after its {behind}:") in ran.err
    assert ran.status == 1


def explained(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The number of the last line before each error, and the error."""
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("error: "):
            yield before.split("  ")[0] if not before.startswith(" ") else before.split()[0], line[len("error: ") :]


def test_explain(record: tuple[bytes, bytes]) -> None:
    key, value = record
    ran = run("explain", "--topic", "__consumer_offsets", "--key", key.hex(), "--value", value.hex())
    told = by_python(key, value)
    errors = {message: number for number, message in explained(ran.lines)}
    assert told["message"] in errors
    assert ran.status == 1
    if told["reason"] == "BufferUnderflow" and "but 0 are left" not in told["message"]:
        # A length that can be read and the missing bytes after it are separate lines.
        assert errors[told["message"]] == str(told["byte_offset"])


def test_an_unknown_type_is_no_error_anywhere(tmp_path: Path) -> None:
    key, value = b"\0\x63ab", b"\0\0c"
    found = decode_record(key, value)
    assert isinstance(found, UnknownTypeRecord)
    assert found.error is None
    assert RowReader(RECORDS).read(key, value).error is None
    ran = run("dump", str(write_segment(tmp_path, batch(0, [(key, value)]))))
    assert (ran.status, json.loads(ran.lines[0])["error"]) == (0, None)


def test_a_record_that_was_read_has_no_error() -> None:
    found = decode_record(KEY, VALUE)
    assert isinstance(found, OffsetCommit)
    assert found.error is None
    newer = decode_record(KEY, b"\0\5")
    assert isinstance(newer.error, UnsupportedVersion)
    assert (newer.error.message_name, newer.error.version, newer.error.versions) == ("OffsetCommitValue", 5, range(5))
