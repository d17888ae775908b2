"""Damage of every kind, each with its complete message and the records that can still be read."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from struct import pack

import pytest

from kafka_records_engine.findings import Finding, Severity
from kafka_records_engine.log.format import compression
from kafka_records_engine.log.reading.segment_files import FoundLog, scan
from tests.log.logs import (
    TOPICS,
    batch,
    case,
    changed,
    commit,
    entries_of,
    lines,
    read_both,
    record,
    with_right_crc,
    write_log,
    zigzag,
)

FOLDER = "__consumer_offsets-0"
FILE = f"{FOLDER}/{0:020}.log"
LATER = f"{FOLDER}/{90:020}.log"
REAL = (TOPICS / "kafka-2.8" / "segments" / "__consumer_offsets-0" / f"{57:020}.log").read_bytes()


def read(
    folder: Path, files: Mapping[int, bytes], severity: Severity = "damage"
) -> tuple[list[int], list[str], Finding]:
    """Offsets of the rows, the lines, and the only finding."""
    log = write_log(folder, files)
    rows, _, (finding,) = read_both(log)
    assert finding.severity == severity
    assert [each for stats in scan(log) for each in stats.findings] == [finding]
    assert [stats.bytes for stats in scan(log)] == [len(data) for data in files.values()]
    return [row["offset"] for row in rows], lines([finding], folder), finding


# -- files that are not segments
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (
            b"Dear reader, this is no log at all.\n",
            "offset 4928452510025409889 cannot be in a file named for offset 0",
        ),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "offset -8552249625308161526 cannot be in a file named for offset 0"),
        (bytes(8) + b"\0\0\0\x05" + bytes(99), "size 5 is less than the 14 bytes of the smallest batch"),
        (bytes(8) + b"\xff\xff\xff\xff" + b"?" * 99, "size -1 is less than the 14 bytes of the smallest batch"),
        (bytes(8) + b"\0\0\0\x20" + b"\0\0\0\0" + b"\x07" * 99, "magic 7 is unknown"),
        (
            bytes(8) + b"\0\0\0\x20" + b"\0\0\0\0" + b"\x02" + b"?" * 99,
            "size 32 is less than the 49 bytes of the smallest batch of magic 2",
        ),
        (
            bytes(8) + b"\x7f\xff\xff\xff" + b"\0\0\0\0" + b"\x02" + b"?" * 99,
            "size 2147483647 is more than the 1073741824 bytes that are read as one batch",
        ),
    ],
    ids=["text", "image", "small", "negative", "magic", "small-for-magic", "huge"],
)
def test_not_a_log_segment(tmp_path: Path, data: bytes, why: str) -> None:
    offsets, said, finding = read(tmp_path, {0: data, 90: commit(90)})
    assert offsets == [90]
    assert said == [f"{FILE}: byte 0: not a log segment: {why} ({len(data)} bytes not read)"]
    assert finding.bytes == len(data)


def test_an_empty_file_is_fine(tmp_path: Path) -> None:
    rows, _, findings = read_both(write_log(tmp_path, {0: commit(0), 1: b""}))
    assert ([row["offset"] for row in rows], findings) == ([0], [])


def test_a_file_that_vanished_before_reading_started(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0), 90: commit(90)})
    (tmp_path / FILE).unlink()
    rows, _, findings = read_both(log)
    assert ([row["offset"] for row in rows], findings) == ([90], [])


# -- the end of a file -------------------------------------------------------------------------------------------------


def test_zeros_of_a_preallocated_file(tmp_path: Path) -> None:
    offsets, said, finding = read(tmp_path, {0: commit(0) + bytes(1000)}, "note")
    assert offsets == [0]
    assert said == [f"{FILE}: byte 71: only zeros from here (pre-allocated, 1000 bytes without records)"]
    assert finding.bytes == 1000


def test_zeros_behind_a_file_that_is_not_the_last(tmp_path: Path) -> None:
    # Five zeros may be the first bytes of a batch, too: offsets start with zeros.
    offsets, said, _ = read(tmp_path, {0: commit(0) + bytes(5), 2: commit(2)})
    assert offsets == [0, 2]
    assert said == [
        f"{FILE}: byte 71: only zeros from here, in a file that is not the last of its log (5 bytes not read, an "
        "unknown number of records)"
    ]


def test_zeros_that_are_not_all(tmp_path: Path) -> None:
    offsets, said, _ = read(tmp_path, {0: commit(0) + bytes(5000) + b"?"})
    assert offsets == [0]
    assert said == [
        f"{FILE}: byte 71, batch at offset 0: size 0 is less than the 14 bytes of the smallest batch"
        " (5001 bytes to the end of the file not read, an unknown number of records)"
    ]


def test_the_preallocated_file_of_the_capture() -> None:
    file = "__consumer_offsets-1/00000000000000000189.log"
    directory = TOPICS / "kafka-2.8" / "segments"
    _, _, findings = read_both(FoundLog("t", 0, str(directory / file.split("/")[0]), (file.split("/")[1],)))
    assert lines(findings, directory) == [
        f"{file}: byte 3597: only zeros from here (pre-allocated, 2547 bytes without records)"
    ]
    assert findings[0].severity == "note"


@pytest.mark.parametrize("left", [1, 7, 8, 11])
def test_an_append_cut_short_in_its_head(tmp_path: Path, left: int) -> None:
    base = 1 << 56
    first = commit(base)
    offsets, said, _ = read(tmp_path, {base: first + commit(base + 1)[:left]}, "note")
    assert offsets == [base]
    are, count = ("is", "1 byte") if left == 1 else ("are", f"{left} bytes")
    base_offset = f", batch at offset {base + 1}" if left >= 8 else ""
    assert said == [
        f"{FOLDER}/{base:020}.log: byte {len(first)}{base_offset}: a batch starts with 12 bytes, but {left} {are} left"
        f" (an append that was cut short, {count} not read)"
    ]


@pytest.mark.parametrize(
    ("rest", "what"),
    [
        (b"hello", "5 bytes that cannot be the start of an offset in a file named for offset 0"),
        (b"hello world\n", "offset 7522537965568948079 cannot be in a file named for offset 0"),
    ],
)
def test_text_behind_the_last_batch(tmp_path: Path, rest: bytes, what: str) -> None:
    offsets, said, _ = read(tmp_path, {0: commit(0) + rest})
    assert offsets == [0]
    assert said == [
        f"{FILE}: byte 71: {what} ({len(rest)} bytes to the end of the file not read, an unknown number of records)"
    ]


@pytest.mark.parametrize("left", [12, 13, 17, 60, 70])
def test_an_append_cut_short(tmp_path: Path, left: int) -> None:
    offsets, said, finding = read(tmp_path, {0: commit(0) + commit(1)[:left]}, "note")
    assert offsets == [0]
    assert said == [
        f"{FILE}: byte 71, batch at offset 1: the batch has 71 bytes, but {left} are left"
        f" (an append that was cut short, {left} bytes not read)"
    ]
    assert finding.bytes == left


def test_a_torn_batch_in_a_file_that_is_not_the_last(tmp_path: Path) -> None:
    offsets, said, _ = read(tmp_path, {0: commit(0) + commit(1)[:60], 90: commit(90)})
    assert offsets == [0, 90]
    assert said == [
        f"{FILE}: byte 71, batch at offset 1: the batch has 71 bytes, but 60 are left"
        " (60 bytes to the end of the file not read, an unknown number of records)"
    ]


def test_a_wrong_size_is_no_torn_append(tmp_path: Path) -> None:
    # The size of the batch exceeds the end of the file, but complete batches follow it.
    entries = entries_of(REAL)
    entries[3] = changed(entries[3], 8, pack(">i", 1_000_000), crc=False)
    data = b"".join(entries)
    before = len(b"".join(entries[:3]))
    log = write_log(tmp_path, {57: data})
    rows, _, (finding,) = read_both(log)
    assert [row["offset"] for row in rows] == [57, 58, 59, *range(61, 110)]
    assert lines([finding], tmp_path) == [
        f"{FOLDER}/{57:020}.log: byte {before}, batch at offset 60: the batch has 1000012 bytes,"
        f" but {len(data) - before} are left"
        f" ({len(entries[3])} bytes skipped up to the next batch, an unknown number of records)"
    ]
    assert finding.severity == "damage"


@pytest.mark.parametrize(
    ("at", "new", "why"),
    [
        (8, pack(">i", 13), "size 13 is less than the 14 bytes of the smallest batch"),
        (8, pack(">i", -5), "size -5 is less than the 14 bytes of the smallest batch"),
        (8, pack(">i", 48), "size 48 is less than the 49 bytes of the smallest batch of magic 2"),
        (16, b"\x03", "magic 3 is unknown"),
        (16, b"\xff", "magic 255 is unknown"),
    ],
)
def test_a_batch_that_cannot_be(tmp_path: Path, at: int, new: bytes, why: str) -> None:
    broken = changed(commit(1), at, new, crc=False)
    offsets, said, _ = read(tmp_path, {0: commit(0) + broken + commit(2), 90: commit(90)})
    assert offsets == [0, 2, 90]
    assert said == [
        f"{FILE}: byte 71, batch at offset 1: {why}"
        " (71 bytes skipped up to the next batch, an unknown number of records)"
    ]


# -- batches -----------------------------------------------------------------------------------------------------------


def test_a_wrong_crc(tmp_path: Path) -> None:
    broken = changed(batch(record(0, b"k", b"v") * 3, 3, offset=1), 65, b"\xee", crc=False)
    offsets, said, finding = read(tmp_path, {0: commit(0) + broken + commit(4)})
    assert offsets == [0, 4]
    assert said == [
        f"{FILE}: byte 71, batch at offset 1: wrong CRC: 0x07122d04 in the file, 0xc5618b9f computed"
        " (3 records, 88 bytes skipped)"
    ]
    assert (finding.records, finding.bytes) == (3, 88)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_wrong_crc_of_an_older_message(tmp_path: Path, magic: int, codec: str) -> None:
    first, *others = entries_of(case(f"magic {magic} {codec} three records"))
    broken = changed(first, 30, b"\xee", crc=False)
    count = "1 record" if codec == "none" else "an unknown number of records"
    offsets, (said,), finding = read(tmp_path, {0: broken + b"".join(others)})
    assert offsets == ([11, 12] if codec == "none" else [])
    assert said.startswith(f"{FILE}: byte 0, batch at offset {10 if codec == 'none' else 12}: wrong CRC: 0x")
    assert said.endswith(f" computed ({count}, {len(first)} bytes skipped)")
    assert finding.records == (1 if codec == "none" else 0)


def test_a_wrong_crc_with_a_senseless_count(tmp_path: Path) -> None:
    _, (said,), finding = read(tmp_path, {0: changed(commit(0), 57, b"\xff\xff\xff\xff", crc=False)})
    assert said.endswith(" computed (an unknown number of records, 71 bytes skipped)")
    assert finding.records == 0


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec(tmp_path: Path, codec: int) -> None:
    broken = batch(record(0, b"k", b"v") * 2, 2, offset=1, attributes=codec)
    offsets, said, finding = read(tmp_path, {0: commit(0) + broken + commit(4)})
    assert offsets == [0, 4]
    assert finding.bytes == len(broken)
    assert said == [f"{FILE}: byte 71, batch at offset 1: codec {codec} is unknown (0 records delivered, 2 lost)"]


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_in_an_older_message(tmp_path: Path, magic: int) -> None:
    (entry,) = entries_of(case(f"magic {magic} gzip three records"))
    offsets, said, _ = read(tmp_path, {0: changed(entry, 17, b"\x04")})
    assert offsets == []
    assert said == [
        f"{FILE}: byte 0, batch at offset 12: zstd cannot be in a message of magic {magic} (0 records delivered, the "
        f"rest of its records are lost)"
    ]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_bytes_that_do_not_decompress(tmp_path: Path, codec: str) -> None:
    (entry,) = entries_of(case(f"magic 2 {codec} three records"))
    why = {
        "gzip": "the gzip data is broken: decompressing data: incorrect header check",
        "snappy": "5 bytes of snappy data cannot decompress to the 10938 bytes that they claim",
        "lz4": "the lz4 data ends too early",
        "zstd": "the zstd data is broken: Unknown frame descriptor",
    }[codec]
    offsets, said, finding = read(tmp_path, {0: with_right_crc(entry[:61] + b"\xba\x55\x00\x11\x22") + commit(13)})
    assert offsets == [13]
    assert said == [f"{FILE}: byte 0, batch at offset 10: {why} (0 records delivered, 3 lost)"]
    assert finding.records == 3


def test_compressed_data_that_ends_too_early(tmp_path: Path) -> None:
    data = b"".join(record(number, b"key", bytes([number]) * 50) for number in range(100))
    packed = gzip.compress(data)
    broken = batch(packed[: len(packed) // 2], 100, attributes=1)
    offsets, (said,), finding = read(tmp_path, {0: broken + commit(100)})
    delivered = len(offsets) - 1
    assert 10 < delivered < 90
    assert offsets == [*range(delivered), 100]
    assert said == (
        f"{FILE}: byte 0, batch at offset 0: the gzip data ends too early"
        f" ({delivered} records delivered, {100 - delivered} lost)"
    )
    assert finding.records == 100 - delivered


def test_a_decompression_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED", 50_000)
    bomb = batch(gzip.compress(record(0, b"k", b"v") + bytes(1_000_000)), 2, attributes=1)
    offsets, said, _ = read(tmp_path, {0: bomb + commit(2)})
    assert offsets == [0, 2]
    assert said == [
        f"{FILE}: byte 0, batch at offset 0: it decompresses to more than 50000 bytes (1 record delivered, 1 lost)"
    ]


def inside(size: int, rest: bytes) -> bytes:
    return zigzag(size) + rest


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (b"", "record 2 of 3 is missing"),
        (b"\x80", "record 2 of 3 ends inside a varint"),
        (b"\xff" * 9, "record 2 of 3 has a varint that does not end"),
        (inside(50, bytes(9)), "record 2 of 3 claims to have 50 bytes, but 9 are left"),
        (inside(-2, bytes(9)), "record 2 of 3 claims to have -2 bytes, but 9 are left"),
        (inside(0, b""), "record 2 of 3 ends inside a varint"),
        (inside(4, bytes(4)), "record 2 of 3 ends inside a varint"),
        (inside(6, b"\0\0\0\x10\0\0"), "record 2 of 3 has a key of 8 bytes, but 2 are left"),
        (inside(6, b"\0\0\0\1\x10\0"), "record 2 of 3 has a value of 8 bytes, but 1 are left"),
        (inside(6, b"\0\0\0\1\1\1"), "record 2 of 3 claims to have -1 headers"),
        (inside(6, b"\0\0\0\1\1\2"), "record 2 of 3 ends inside a varint"),
        (inside(8, b"\0\0\0\1\1\2\1\1"), "record 2 of 3, header 1 of 1 has no key"),
        (inside(8, b"\0\0\0\1\1\2\x10\1"), "record 2 of 3, header 1 of 1 has a key of 8 bytes, but 1 are left"),
        (inside(9, b"\0\0\0\1\1\2\2h\x10"), "record 2 of 3, header 1 of 1 has a value of 8 bytes, but 0 are left"),
        (inside(8, b"\0\0\0\1\1\0??"), "record 2 of 3 has 2 bytes after its last header"),
    ],
)
def test_a_record_that_does_not_parse(tmp_path: Path, second: bytes, why: str) -> None:
    broken = batch(record(0, b"k", b"v") + second, 3, offset=1)
    offsets, said, finding = read(tmp_path, {0: commit(0) + broken + commit(4)})
    assert offsets == [0, 1, 4]
    lost, known = ("2 lost", 2) if len(second) >= 14 else ("the batch claims to have 2 more", -(-len(second) // 7))
    assert said == [f"{FILE}: byte 71, batch at offset 1: {why} (1 record delivered, {lost})"]
    assert (finding.records, finding.bytes) == (known, len(second))


def test_a_count_that_is_too_large(tmp_path: Path) -> None:
    broken = batch(b"".join(record(number, b"k", b"v") for number in range(4)), 500, offset=1)
    offsets, said, finding = read(tmp_path, {0: commit(0) + broken})
    assert offsets == [0, 1, 2, 3, 4]
    assert said == [
        f"{FILE}: byte 71, batch at offset 1: record 5 of 500 is missing"
        " (4 records delivered, the batch claims to have 496 more)"
    ]
    assert (finding.records, finding.bytes) == (0, 0)


def test_records_lost_in_a_row(tmp_path: Path) -> None:
    rest = b"".join(record(number, b"k", b"v") for number in (2, 3))
    broken = batch(record(0, b"k", b"v") + inside(6, b"\0\0\0\x10\0\0") + rest, 4, offset=1)
    offsets, said, finding = read(tmp_path, {0: commit(0) + broken})
    assert offsets == [0, 1]
    assert said == [
        f"{FILE}: byte 71, batch at offset 1: record 2 of 4 has a key of 8 bytes, but 2 are left"
        " (1 record delivered, 3 lost)"
    ]
    assert (finding.records, finding.bytes) == (3, 25)


@pytest.mark.parametrize("count", [0, 2])
def test_more_compressed_records_than_the_count_says(tmp_path: Path, count: int) -> None:
    packed = gzip.compress(b"".join(record(number, b"k", b"v") for number in range(3)), mtime=0)
    offsets, said, finding = read(tmp_path, {0: batch(packed, count, attributes=1) + commit(4)})
    assert offsets == [*range(count), 4]
    left = 9 * (3 - count)
    assert said == [
        f"{FILE}: byte 0, batch at offset 0: {left} bytes after the last of {count} records ({count} records "
        f"delivered, {left} bytes that may be records not read)"
    ]
    assert (finding.records, finding.bytes) == (0, left)


def test_an_emptied_batch_is_fine(tmp_path: Path) -> None:
    emptied = batch(b"", 0, attributes=1, last_delta=2) + batch(gzip.compress(b""), 0, offset=3, attributes=1)
    rows, _, findings = read_both(write_log(tmp_path, {0: emptied + commit(4)}))
    assert ([row["offset"] for row in rows], findings) == ([4], [])


@pytest.mark.parametrize("count", [1, 2])
def test_more_bytes_than_records(tmp_path: Path, count: int) -> None:
    broken = batch(record(0, b"k", b"v") * 3, count, offset=1)
    offsets, said, finding = read(tmp_path, {0: commit(0) + broken + commit(4)})
    assert offsets == [0, *[1] * count, 4]
    left, records = ("18 bytes", "1 record") if count == 1 else ("9 bytes", "2 records")
    assert said == [
        f"{FILE}: byte 71, batch at offset 1: {left} after the last of {records} ({records} delivered, {left} that "
        "may be records not read)"
    ]
    assert finding.records == 0


@pytest.mark.parametrize("count", [-1, 1 << 30])
def test_a_senseless_count(tmp_path: Path, count: int) -> None:
    broken = batch(record(0, b"k", b"v"), count, offset=1, last_delta=0)
    offsets, said, _ = read(tmp_path, {0: commit(0) + broken + commit(4)})
    if count < 0:
        assert offsets == [0, 4]
        expected = "the batch claims to have -1 records (0 records delivered, 9 bytes that may be records not read)"
    else:
        assert offsets == [0, 1, 4]
        expected = "record 2 of 1073741824 is missing (1 record delivered, the batch claims to have 1073741823 more)"
    assert said == [f"{FILE}: byte 71, batch at offset 1: {expected}"]


def test_files_that_overlap(tmp_path: Path) -> None:
    last = batch(record(0, b"k", b"v"), 1, offset=89, last_delta=2)
    offsets, said, _ = read(tmp_path, {0: commit(0) + last, 90: commit(90) + commit(91)}, "note")
    assert offsets == [0, 89, 90, 91]
    assert said == [f"{LATER}: its offsets start at 90, but {FILE} goes up to 91 (records of both files are returned)"]
