"""Damage inside wrappers of older messages and inside control batches."""

from __future__ import annotations

import gzip
from pathlib import Path
from struct import pack

import pytest

from kafka_records_engine.log.reading.segment_files import read_log, scan
from tests.log.logs import (
    batch,
    case,
    changed,
    commit,
    entries_of,
    lines,
    marker,
    read_both,
    record,
    with_right_crc,
    write_log,
)
from tests.log.test_bad_input import FILE, read

# -- wrappers of magic 0 and 1 -----------------------------------------------------------------------------------------


def wrapper(magic: int, inner: bytes, offset: int = 12) -> bytes:
    head = pack(">qiIBb", offset, 0, 0, magic, 1) + (pack(">q", 1000) if magic else b"")
    value = gzip.compress(inner)
    return with_right_crc(head + pack(">ii", -1, len(value)) + value)


def inner(magic: int, offset: int, attributes: int = 0) -> bytes:
    head = pack(">qiIBb", offset, 0, 0, magic, attributes) + (pack(">q", 1000 + offset) if magic else b"")
    return with_right_crc(head + pack(">i", 1) + b"k" + pack(">i", -1))


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (b"12345", "inner message 2 needs 12 bytes for its header, but 5 are left"),
        (pack(">qi", 1, 99) + bytes(4), "inner message 2 claims to have 99 bytes, but 4 are left"),
        (pack(">qi", 1, 3) + bytes(99), "inner message 2 claims to have 3 bytes, but 99 are left"),
        (inner(1, 1), "inner message 2 has magic 1, but its wrapper has magic 0"),
        (inner(0, 1, 1), "inner message 2 is itself compressed"),
        (
            with_right_crc(inner(0, 1)[:18] + pack(">i", 9) + b"1234"),
            "inner message 2 has a key of 9 bytes, but 4 are left",
        ),
    ],
)
def test_a_wrapper_of_magic_0(tmp_path: Path, second: bytes, why: str) -> None:
    offsets, said, _ = read(tmp_path, {0: wrapper(0, inner(0, 11) + second)})
    assert offsets == [11]
    assert said == [f"{FILE}: byte 0, batch at offset 12: {why} (1 record delivered, the rest of its records are lost)"]


def test_a_wrapper_of_magic_1_needs_its_last_message(tmp_path: Path) -> None:
    offsets, said, _ = read(tmp_path, {0: wrapper(1, inner(1, 0) + b"12345")})
    assert offsets == []
    assert said == [
        f"{FILE}: byte 0, batch at offset 12: inner message 2 needs 12 bytes for its header, but 5 are left"
        " (0 records delivered, the rest of its records are lost)"
    ]


def test_a_wrapper_of_magic_1_with_an_impossible_offset(tmp_path: Path) -> None:
    offsets, said, _ = read(tmp_path, {0: wrapper(1, inner(1, 0) + inner(1, 20))})
    assert offsets == []
    assert said == [
        f"{FILE}: byte 0, batch at offset 12: the wrapper's offset is less than 20, the offset of its last message"
        " (0 records delivered, the rest of its records are lost)"
    ]


def test_wrapper_offsets(tmp_path: Path) -> None:
    # Offsets inside are relative to that of the wrapper; the offset of a wrapper at 0 was never set.
    log = write_log(tmp_path, {0: wrapper(1, inner(1, 0) + inner(1, 3), 0) + wrapper(1, inner(1, 0) + inner(1, 4))})
    rows, _, findings = read_both(log)
    assert findings == []
    assert [(row["offset"], row["base_offset"], row["timestamp_ms"]) for row in rows] == [
        (0, 0, 1000),
        (3, 0, 1003),
        (8, 8, 1000),
        (12, 8, 1004),
    ]


@pytest.mark.parametrize(("content", "why"), [(b"", "contains no message"), (None, "has no value")])
def test_an_empty_wrapper(tmp_path: Path, content: bytes | None, why: str) -> None:
    entry = wrapper(0, b"") if content is not None else with_right_crc(wrapper(0, b"")[:18] + pack(">ii", -1, -1))
    offsets, said, _ = read(tmp_path, {0: entry})
    assert offsets == []
    assert said == [
        f"{FILE}: byte 0, batch at offset 12: the wrapper message {why}"
        " (0 records delivered, the rest of its records are lost)"
    ]


def test_an_old_message_that_does_not_parse(tmp_path: Path) -> None:
    first, second, third = entries_of(case("magic 0 none three records"))
    offsets, said, _ = read(tmp_path, {0: first + changed(second, 18, pack(">i", 99)) + third})
    assert offsets == [10, 12]
    assert said == [
        f"{FILE}: byte 79, batch at offset 11: the message has a key of 99 bytes, but 18 are left"
        " (0 records delivered, 1 lost)"
    ]


# -- control batches ---------------------------------------------------------------------------------------------------


def control(key: bytes | None, value: bytes | None) -> bytes:
    return batch(record(0, key, value), 1, offset=1, attributes=0x30, producer_id=7)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (None, None, "the key of a control record needs 4 bytes, but has 0"),
        (b"\0\0\0", None, "the key of a control record needs 4 bytes, but has 3"),
        (pack(">hh", -1, 1), bytes(6), "the key of a control record has the negative version -1"),
        (pack(">hh", 0, 1), None, "the value of a transaction marker needs 6 bytes, but has 0"),
        (pack(">hh", 0, 0), bytes(5), "the value of a transaction marker needs 6 bytes, but has 5"),
        (pack(">hh", 0, 0), pack(">hi", -1, 0), "the transaction marker has the negative version -1"),
    ],
)
def test_a_control_record_that_does_not_parse(tmp_path: Path, key: bytes | None, value: bytes | None, why: str) -> None:
    log = write_log(tmp_path, {0: commit(0) + control(key, value) + commit(2)})
    rows, records, (finding,) = read_both(log)
    assert [row["offset"] for row in rows] == [0, 2]
    assert [each.record.offset for each in records] == [0, 1, 2]
    assert lines([finding], tmp_path) == [f"{FILE}: byte 71, batch at offset 1: {why} (1 control record left out)"]
    assert (finding.severity, finding.records) == ("damage", 1)


@pytest.mark.parametrize("kind", [2, 6, -1, 99])
def test_a_control_record_of_another_type(tmp_path: Path, kind: int) -> None:
    log = write_log(tmp_path, {0: commit(0) + marker(1, 7, kind) + commit(2)})
    rows, records, (finding,) = read_both(log)
    assert [row["offset"] for row in rows] == [0, 2]
    assert [each.marker.type for each in records if each.marker] == [kind]
    assert lines([finding], tmp_path) == [
        f"{FILE}: byte 71, batch at offset 1: a control record of type {kind}, which ends no transaction"
        " (1 control record left out)"
    ]
    assert finding.severity == "note"


def test_a_data_batch_with_the_control_bit(tmp_path: Path) -> None:
    data = b"".join(record(number, pack(">hh", 1, 9), b"v") for number in range(3))
    log = write_log(tmp_path, {0: commit(0) + batch(data, 3, offset=1, attributes=0x20) + commit(4)})
    rows, records, (finding,) = read_both(log)
    assert [row["offset"] for row in rows] == [0, 4]
    assert [each.record.offset for each in records if each.is_left_out] == [1, 2, 3]
    assert [each.record.offset for each in read_log(log, other_control=False)] == [0, 4]
    assert lines([finding], tmp_path) == [
        f"{FILE}: byte 71, batch at offset 1: a control record of type 9, which ends no transaction"
        " (3 control records left out)"
    ]
    assert (finding.severity, finding.records) == ("note", 3)
    (stats,) = scan(log)
    assert (stats.records, stats.control_batches, stats.control_left_out) == (2, 1, 3)


def test_later_versions_of_markers_are_read(tmp_path: Path) -> None:
    later = control(pack(">hh", 3, 1) + b"more", pack(">hi", 9, 5) + b"more")
    rows, _, findings = read_both(write_log(tmp_path, {0: later}))
    assert ([row["control"] for row in rows], findings) == (["commit"], [])
