"""One flipped bit in the size of a batch, which no CRC covers: only that batch is lost.

`make test` tries a sample, the exhaustive profile of Hypothesis (`make fuzz`) every bit of every size in all captured
segments.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from struct import pack
from time import process_time
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import settings

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.reading import _scanning as scanning
from kafka_records_engine.log.reading._resync import BatchSearch
from kafka_records_engine.log.reading.segment_files import FoundLog, read_log, read_partition
from tests.log.logs import (
    CAPTURES,
    TOPICS,
    batch,
    changed,
    commit,
    entries_of,
    is_row,
    lines,
    read_both,
    record,
    segment_cases,
    write_log,
)

pytestmark = pytest.mark.slow

FOLDER = "__consumer_offsets-0"
FILE = f"{FOLDER}/{0:020}.log"
UNKNOWN = "an unknown number of records"
UP_TO_NEXT = f"skipped up to the next batch, {UNKNOWN}"
SAMPLE = 1000

Row = tuple[int, bytes | None, bytes | None]


class Entry(NamedTuple):
    """The start of an entry, its rows, and the number of its records, including those that are not rows."""

    start: int
    rows: list[Row]
    records: int


class Segment(NamedTuple):
    base_offset: int
    data: bytes
    entries: list[Entry]


@cache
def segments() -> dict[str, tuple[int, bytes]]:
    """Base offset and bytes of every segment that Kafka wrote, without the zeros of a pre-allocated file."""
    found = {}
    for capture in CAPTURES:
        for file in sorted((TOPICS / capture / "segments").glob("*/*.log")):
            data = file.read_bytes()
            cut = data.rstrip(b"\0")
            ends = [0]
            while ends[-1] < len(cut):
                ends.append(ends[-1] + 12 + int.from_bytes(data[ends[-1] + 8 : ends[-1] + 12], "big"))
            found[f"{capture}/{file.parent.name}/{file.name}"] = int(file.stem), data[: ends[-1]]
    for each in segment_cases()["segments"]:
        found[each["name"]] = 0, bytes.fromhex(each["segment_hex"])
    return {name: (base, data) for name, (base, data) in found.items() if data}


def sound(log: FoundLog, base_offset: int, data: bytes) -> Segment:
    entries = []
    at = 0
    for entry in entries_of(data):
        entries.append(Entry(at, [], 0))
        at += len(entry)
    places = {entry.start: number for number, entry in enumerate(entries)}
    for each in read_log(log):
        number = places[each.batch.position]
        if is_row(each):
            entries[number].rows.append((each.record.offset, each.record.key, each.record.value))
        entries[number] = entries[number]._replace(records=entries[number].records + 1)
    return Segment(base_offset, data, entries)


def read(log: FoundLog) -> tuple[list[Row], list[Finding]]:
    findings: list[Finding] = []
    rows: list[Row] = []
    for each in read_partition(log, on_finding=findings.append, below_log_start=True):
        rows += zip(*(each.column(name).to_pylist() for name in ("offset", "key", "value")), strict=True)
    return rows, findings


def flipped(data: bytes, start: int, bit: int) -> bytes:
    at = start + 8 + bit // 8
    return data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :]


def check(log: FoundLog, file: Path, segment: Segment, number: int, bit: int, rest: bytes) -> None:
    """Check that all other batches are read, and that the findings about this one are right."""
    entry = segment.entries[number]
    file.write_bytes(flipped(segment.data, entry.start, bit) + rest)
    rows, findings = read(log)
    expected = [row for each in segment.entries if each is not entry for row in each.rows]
    assert rows == expected, (number, bit, [str(finding) for finding in findings])
    damage = [finding for finding in findings if finding.severity == "damage"]
    assert damage, [str(finding) for finding in findings]
    said = [str(finding) for finding in damage]
    assert any(UNKNOWN in each for each in said) or sum(each.records for each in damage) == entry.records, said
    assert not any("cut short" in str(finding) for finding in findings)
    if not rest:
        assert sum(finding.bytes for finding in findings) == len(segment.data) - sum(
            len(each) for at, each in enumerate(entries_of(segment.data)) if at != number
        ), said


@pytest.mark.parametrize("zeros", [0, 300])
@pytest.mark.parametrize("name", segments())
def test_every_bit_of_every_size(tmp_path: Path, name: str, zeros: int) -> None:
    base, data = segments()[name]
    log = write_log(tmp_path, {base: data})
    file = tmp_path / FOLDER / f"{base:020}.log"
    segment = sound(log, base, data)
    tries = [(number, bit) for number in range(len(segment.entries)) for bit in range(32)]
    if settings.get_current_profile_name() != "exhaustive":
        share = SAMPLE * len(data) // (2 * sum(len(each) for _, each in segments().values())) + 1
        tries = random.Random(name).sample(tries, min(share, len(tries)))
    for number, bit in tries:
        check(log, file, segment, number, bit, bytes(zeros))


@pytest.mark.parametrize("chunk", [100, 700])
def test_where_chunks_end_makes_no_difference(tmp_path: Path, chunk: int) -> None:
    name = "kafka-4.3/__consumer_offsets-2/00000000000000000000.log"
    base, data = segments()[name]
    log = write_log(tmp_path, {base: data})
    file = tmp_path / FOLDER / f"{base:020}.log"
    segment = sound(log, base, data)
    tries = [(number, bit) for number in range(len(segment.entries)) for bit in range(32)]
    for number, bit in random.Random(chunk).sample(tries, 20):
        file.write_bytes(flipped(data, segment.entries[number].start, bit))
        findings = read(log)[1]
        with patch.object(scanning, "CHUNK", chunk):
            check(log, file, segment, number, bit, b"")
            assert read(log)[1] == findings


# -- what is said ------------------------------------------------------------------------------------------------------


def said(folder: Path, files: dict[int, bytes]) -> tuple[list[int], list[str]]:
    """Offsets of the rows, and the lines, on which both readers agree."""
    rows, _, findings = read_both(write_log(folder, files))
    return [row["offset"] for row in rows], lines(findings, folder)


def resized(entry: bytes, size: int) -> bytes:
    """The entry with `size` in its header."""
    return changed(entry, 8, pack(">i", size - 12), crc=False)


def test_one_bit_that_swallowed_sixty_batches(tmp_path: Path) -> None:
    data = (TOPICS / "kafka-4.3" / "segments" / "__consumer_offsets-2" / f"{0:020}.log").read_bytes()
    offsets, found = said(tmp_path, {0: data[:10] + bytes([data[10] ^ 0x20]) + data[11:]})
    assert offsets == list(range(1, 66))
    assert found == [
        f"{FILE}: byte 0, batch at offset 0: its CRC is wrong, and its size leads past the batch that starts at byte"
        f" 116 of the file (116 bytes {UP_TO_NEXT})"
    ]


@pytest.mark.parametrize("behind", [commit(4), b""], ids=["a batch", "the end"])
def test_a_size_that_leads_past_batches(tmp_path: Path, behind: bytes) -> None:
    data = commit(0) + resized(commit(1), 3 * 71) + commit(2) + commit(3) + behind
    offsets, found = said(tmp_path, {0: data})
    assert offsets == [0, 2, 3, *([4] if behind else [])]
    assert found == [
        f"{FILE}: byte 71, batch at offset 1: its CRC is wrong, and its size leads past the batch that starts at byte"
        f" 142 of the file (71 bytes {UP_TO_NEXT})"
    ]


def test_a_size_that_is_too_small(tmp_path: Path) -> None:
    assert said(tmp_path, {0: commit(0) + resized(commit(1), 65) + commit(2)}) == (
        [0, 2],
        [
            f"{FILE}: byte 71, batch at offset 1: its CRC is wrong, and according to its size, a batch starts at byte "
            f"136 of the file, but none does (71 bytes {UP_TO_NEXT})"
        ],
    )


@pytest.mark.parametrize("size", [61, 67, 80 ^ 0x80, 1000])
@pytest.mark.parametrize("rest", [b"", bytes(200)], ids=["the end", "zeros"])
def test_a_wrong_size_of_the_last_batch_is_no_torn_append(tmp_path: Path, size: int, rest: bytes) -> None:
    last = batch(record(0, b"k1", b"v") + record(1, b"k", b"v"), 2, offset=1)
    offsets, (line, *notes) = said(tmp_path, {0: commit(0) + resized(last, size) + rest})
    assert offsets == [0]
    assert line == (
        f"{FILE}: byte 71, batch at offset 1: its size says {size} bytes, but its CRC is right for 80 bytes"
        " (2 records, 80 bytes skipped)"
    )
    zeros = f"{FILE}: byte 151: only zeros from here (pre-allocated, 200 bytes without records)"
    assert notes == ([zeros] if rest else [])


@pytest.mark.parametrize("size", [30, 1000, -5])
def test_a_wrong_size_of_the_only_batch(tmp_path: Path, size: int) -> None:
    assert said(tmp_path, {0: resized(commit(0), size)}) == (
        [],
        [
            f"{FILE}: byte 0, batch at offset 0: its size says {size} bytes, but its CRC is right for 71 bytes"
            " (1 record, 71 bytes skipped)"
        ],
    )


def test_a_wrong_size_between_damaged_batches(tmp_path: Path) -> None:
    broken = changed(commit(2), 65, b"\xee", crc=False)
    assert said(tmp_path, {0: commit(0) + resized(commit(1), 5 * 71) + broken + commit(3) + commit(4) + commit(5)}) == (
        [0, 3, 4, 5],
        [
            f"{FILE}: byte 71, batch at offset 1: its CRC is wrong, and its size leads past the batch that starts at"
            f" byte 213 of the file (142 bytes {UP_TO_NEXT})"
        ],
    )


# -- how much is lost --------------------------------------------------------------------------------------------------

THREE = batch(b"".join(record(number, b"k", b"v") for number in range(3)), 3, offset=1)


@pytest.mark.parametrize(
    ("at", "new", "records"),
    [
        (57, pack(">i", 1), UNKNOWN),
        (23, pack(">i", 7), "3 records"),
        (23, pack(">i", 0), "3 records"),
        (61, b"?", "3 records"),
        (70, b"?", "3 records"),
        (16, b"\0", UNKNOWN),
    ],
    ids=["count", "last offset", "last offset is first", "size of a record", "a record", "magic"],
)
def test_a_count_that_nothing_confirms_is_unknown(tmp_path: Path, at: int, new: bytes, records: str) -> None:
    offsets, (line,) = said(tmp_path, {0: commit(0) + changed(THREE, at, new, crc=False) + commit(4)})
    assert offsets == [0, 4]
    assert line.startswith(f"{FILE}: byte 71, batch at offset 1: wrong CRC: 0x")
    assert line.endswith(f" computed ({records}, 88 bytes skipped)")


def test_a_batch_inside_a_damaged_record_is_none_of_the_log(tmp_path: Path) -> None:
    # The value of a record is a saved segment of the same topic.
    saved = batch(record(0, b"k", commit(40) + commit(41)), 1, offset=1)
    broken = changed(saved, 66, b"?", crc=False)
    size = len(saved)
    head = f"{FILE}: byte 71, batch at offset 1: wrong CRC: 0xeeb39324 in the file, 0x2dfc8d03 computed"
    doubt = "and something that looks like another batch is inside it"
    assert said(tmp_path, {0: commit(0) + broken + commit(2)}) == (
        [0, 2],
        [f"{head}, {doubt} ({UNKNOWN}, {size} bytes skipped)"],
    )
    assert said(tmp_path, {0: commit(0) + broken}) == ([0], [f"{head}, {doubt} ({UNKNOWN}, {size} bytes skipped)"])


# -- what it costs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size", [75, 3 * 75, 999 * 75, 1 << 22, 65], ids=["payload", "past two", "past many", "past all", "too small"]
)
def test_the_work_is_linear_in_the_size_of_the_file(tmp_path: Path, size: int) -> None:
    # Every second batch is damaged: a thousand searches.
    offsets = range(10_000, 12_000)
    wrong = b"?" if size == 75 else b"k"
    damaged = [changed(resized(commit(offset), size), 66, wrong, crc=False) for offset in offsets]
    data = b"".join(damaged[at] if at % 2 else commit(offset) for at, offset in enumerate(offsets))
    log = write_log(tmp_path, {10_000: data})
    started = process_time()
    rows, _ = read(log)
    assert [row[0] for row in rows] == list(offsets[::2])
    assert process_time() - started < 20


def test_the_work_is_bounded_where_everything_is_wrong(tmp_path: Path) -> None:
    # Sizes that skip most of the file, with records that are damaged too.
    offsets = range(10_000, 18_000)
    damaged = [changed(resized(commit(offset), 3999 * 75), 66, b"?", crc=False) for offset in offsets]
    data = b"".join(damaged[at] if at % 2 else commit(offset) for at, offset in enumerate(offsets))
    started = process_time()
    rows, findings = read(write_log(tmp_path, {10_000: data}))
    assert process_time() - started < 20
    assert 100 < len(rows) < len(offsets) // 2
    assert any("the search inside it was stopped" in finding.what for finding in findings)


def test_what_is_overlooked_for_want_of_work_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchSearch, "is_batch", lambda self, position, size: setattr(self, "is_used_up", True))
    too_much = "so many places look like a batch"
    broken = changed(commit(1), 65, b"\xee", crc=False)
    assert said(tmp_path, {0: commit(0) + broken + commit(2)}) == (
        [0, 2],
        [
            f"{FILE}: byte 71, batch at offset 1: wrong CRC: 0xfb9bba31 in the file, 0xd7e9f85d computed, and"
            f" {too_much} that the search inside it was stopped ({UNKNOWN}, 71 bytes skipped)"
        ],
    )
    assert said(tmp_path, {0: commit(0) + b"?" * 30 + commit(2)}) == (
        [0],
        [
            f"{FILE}: byte 71: offset 4557430888798830399 cannot be in a file named for offset 0, and {too_much} "
            f"that the search for the next one was stopped (101 bytes to the end of the file not read, {UNKNOWN})"
        ],
    )
