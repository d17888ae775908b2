"""Offsets that do not fit their place, which only the neighbours of a batch show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from struct import pack
from unittest.mock import patch

import pytest

from kafka_records_engine.log.reading import _scanning as scanning
from kafka_records_engine.log.reading import _vectors as vectors
from kafka_records_engine.log.reading.segment_files import find_logs, scan
from tests.log.logs import batch, case, changed, commit, entries_of, lines, marker, read_both, record, write_log

FOLDER = "__consumer_offsets-0"
FILE = f"{FOLDER}/{0:020}.log"
SKIPPED = "(1 record, 71 bytes skipped)"
MOST = (1 << 63) - 1


def read(folder: Path, files: Mapping[int, bytes]) -> tuple[list[int], list[str]]:
    """The offsets of the rows, and the messages, which must not depend on the ends of chunks."""
    log = write_log(folder, files)
    rows, _, findings = read_both(log)
    assert [each for stats in scan(log) for each in stats.findings] == findings
    assert [stats.bytes for stats in scan(log)] == [len(data) for data in files.values()]
    for size in (40, 71, 100):
        with patch.object(scanning, "CHUNK", size), patch.object(vectors, "_FEW", 1):
            again, _, same = read_both(log)
        assert (again, same) == (rows, findings)
    return [row["offset"] for row in rows], lines(findings, folder)


def at(entry: bytes, offset: int) -> bytes:
    """The batch with another base offset, which its CRC does not cover."""
    return changed(entry, 0, pack(">q", offset), crc=False)


@pytest.mark.parametrize("offset", [-1, -(1 << 63), 1 << 31, MOST - 1, MOST])
def test_an_offset_outside_of_the_file(tmp_path: Path, offset: int) -> None:
    wrong = at(batch(record(0, b"k", b"v") + record(3, b"k", b"v"), 2, last_delta=3), offset)
    assert read(tmp_path, {0: commit(0) + wrong + commit(5)}) == (
        [0, 5],
        [
            f"{FILE}: byte 71, batch at offset {offset}: offset {offset} cannot be in a file named for offset 0 (2 "
            "records, 79 bytes skipped)"
        ],
    )


def test_offsets_below_the_name_of_the_file(tmp_path: Path) -> None:
    file = f"{FOLDER}/{10:020}.log"
    assert read(tmp_path, {10: commit(9) + commit(10)}) == (
        [10],
        [f"{file}: byte 0, batch at offset 9: offset 9 cannot be in a file named for offset 10 {SKIPPED}"],
    )


def test_an_offset_that_would_wrap(tmp_path: Path) -> None:
    base = MOST - 5
    file = f"{FOLDER}/{base:020}.log"
    wrong = batch(record(0, b"k", b"v"), 1, offset=base + 1, last_delta=5)
    inside = batch(record(0, b"k", b"v") + record(9, b"k", b"v"), 2, offset=base + 2)
    start = len(commit(base))
    assert read(tmp_path, {base: commit(base) + wrong + inside + commit(base + 5)}) == (
        [base, base + 2, base + 5],
        [
            f"{file}: byte {start}, batch at offset {base + 1}: its last offset would be {MOST + 1},"
            " which is too large for an offset (1 record, 70 bytes skipped)",
            f"{file}: byte {start + 70}, batch at offset {base + 2}: record 2 of 2 has offset {MOST + 6}"
            " (1 record delivered, 1 lost)",
        ],
    )


def test_a_record_below_all_offsets(tmp_path: Path) -> None:
    assert read(tmp_path, {0: batch(record(-1, b"k", b"v"), 1) + commit(1)}) == (
        [1],
        [f"{FILE}: byte 0, batch at offset 0: record 1 of 1 has offset -1 (0 records delivered, 1 lost)"],
    )


def test_an_offset_of_the_next_file(tmp_path: Path) -> None:
    assert read(tmp_path, {0: commit(0) + at(commit(1), 2) + commit(7), 2: commit(2)}) == (
        [0, 2],
        [
            f"{FILE}: byte {byte}, batch at offset {offset}: offset {offset} cannot be before the file named for "
            f"offset 2 {SKIPPED}"
            for byte, offset in ((71, 2), (142, 7))
        ],
    )


@pytest.mark.parametrize("high", [3, 5, 1 << 30])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_jump_ahead_and_back(tmp_path: Path, high: int, first: int) -> None:
    # The batch in the middle is wrong, not the ones after it, wherever in the file it is.
    batches = [commit(offset) for offset in range(first + 3)]
    batches[first] = at(batches[first], high)
    others = [offset for offset in range(first + 3) if offset != first]
    offsets, said = read(tmp_path, {0: b"".join(batches)})
    if high == first + 1 == 3:  # two batches are at 3; either could be wrong
        assert len(offsets) == 4
        return
    assert offsets == others
    assert said == [
        f"{FILE}: byte {71 * first}, batch at offset {high}: its offset is not below the next offset {first + 1} "
        f"{SKIPPED}"
    ]


def test_a_single_step_back(tmp_path: Path) -> None:
    assert read(tmp_path, {0: commit(4) + commit(5) + at(commit(6), 2) + commit(7)}) == (
        [4, 5, 7],
        [f"{FILE}: byte 142, batch at offset 2: its offset is not above the previous offset 5 {SKIPPED}"],
    )


def test_what_fits_exactly_is_not_to_blame(tmp_path: Path) -> None:
    # Either 10 is too high or 5 is too low. It is 5, because a gap of its size is before 12.
    assert read(tmp_path, {0: commit(0) + commit(10) + at(commit(11), 5) + commit(12)}) == (
        [0, 10, 12],
        [
            f"{FILE}: byte 143, batch at offset 5: its offset is not above the previous offset 10 "
            "(1 record, 72 bytes skipped)"
        ],
    )


def test_a_log_twice_in_one_file(tmp_path: Path) -> None:
    assert read(tmp_path, {0: (commit(0) + commit(1) + commit(2)) * 2}) == (
        [0, 1, 2, 0, 1, 2],
        [
            f"{FILE}: byte 213, batch at offset 0: its offset is not above the previous offset 2 (its records are "
            f"returned as they are)"
        ],
    )


def test_the_last_batch_of_a_file_without_a_name(tmp_path: Path) -> None:
    file = tmp_path / "t-0" / "some.log"
    file.parent.mkdir()
    far = 7 + (1 << 31)
    file.write_bytes(commit(7) + at(commit(8), far))
    (log,) = find_logs([file])
    rows, _, findings = read_both(log)
    assert [row["offset"] for row in rows] == [7]
    assert lines(findings, tmp_path) == [
        f"t-0/some.log: byte 71, batch at offset {far}: its offset is 2^31 or more above the previous "
        f"offset 7 {SKIPPED}"
    ]


def test_a_wrong_offset_may_hide_a_marker(tmp_path: Path) -> None:
    hidden = at(marker(1, 7, 1), 1 << 40)
    rows, _, _ = read_both(write_log(tmp_path, {0: commit(0, 7) + hidden + commit(2)}))
    assert [(row["offset"], row["transaction"]) for row in rows] == [(0, "unknown"), (2, "none")]


def test_wrapped_messages_below_all_offsets(tmp_path: Path) -> None:
    first, *_ = entries_of(case("magic 0 none three records"))
    assert read(tmp_path, {0: at(first, -3) + commit(1)}) == (
        [1],
        [
            f"{FILE}: byte 0, batch at offset -3: offset -3 cannot be in a file named for offset 0 (1 record, "
            f"{len(first)} bytes skipped)"
        ],
    )
