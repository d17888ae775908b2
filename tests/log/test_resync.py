"""Reading continues after bytes that are not a batch."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from time import perf_counter

import pytest

from kafka_records_engine.log.reading.segment_files import FoundLog, read_partition
from tests.log.logs import batch, changed, commit, record, write_log
from tests.log.test_offsets import FILE, read

UP_TO_NEXT = "skipped up to the next batch, an unknown number of records"


@pytest.mark.parametrize("size", [1, 20, 5000])
def test_garbage_between_batches(tmp_path: Path, size: int) -> None:
    what = "offset 4557430888798830399 cannot be in a file named for offset 0" if size > 1 else None
    offsets, (said,) = read(tmp_path, {0: commit(0) + b"?" * size + commit(1) + commit(2)})
    assert offsets == [0, 1, 2]
    what = what or "offset 4539628424389459968 cannot be in a file named for offset 0"
    count = "1 byte" if size == 1 else f"{size} bytes"
    assert said == f"{FILE}: byte 71: {what} ({count} {UP_TO_NEXT})"


def test_garbage_before_the_first_batch(tmp_path: Path) -> None:
    assert read(tmp_path, {0: b"?" * 30 + commit(0) + commit(1)}) == (
        [0, 1],
        [
            f"{FILE}: byte 0: offset 4557430888798830399 cannot be in a file named for offset 0 (30 bytes "
            f"{UP_TO_NEXT})"
        ],
    )


def test_zeros_between_batches(tmp_path: Path) -> None:
    assert read(tmp_path, {0: commit(0) + bytes(9000) + commit(1)}) == (
        [0, 1],
        [
            f"{FILE}: byte 71, batch at offset 0: size 0 is less than the 14 bytes of the smallest batch"
            f" (9000 bytes {UP_TO_NEXT})"
        ],
    )


def test_several_bad_places(tmp_path: Path) -> None:
    bad = changed(commit(1), 16, b"\x09", crc=False)
    assert read(tmp_path, {0: commit(0) + bad + commit(2) + bad + bad + commit(3)}) == (
        [0, 2, 3],
        [
            f"{FILE}: byte 71, batch at offset 1: magic 9 is unknown (71 bytes {UP_TO_NEXT})",
            f"{FILE}: byte 213, batch at offset 1: magic 9 is unknown (142 bytes {UP_TO_NEXT})",
        ],
    )


def test_a_size_that_swallows_other_batches(tmp_path: Path) -> None:
    wrong = changed(commit(1), 8, pack(">i", 59 + 100), crc=False)
    assert read(tmp_path, {0: commit(0) + wrong + commit(2) + commit(3) + commit(4)}) == (
        [0, 2, 3, 4],
        [
            f"{FILE}: byte 71, batch at offset 1: its CRC is wrong, and according to its size, a batch starts at "
            f"byte 242 of the file, but none does (71 bytes {UP_TO_NEXT})"
        ],
    )


def test_a_wrong_size_at_the_end(tmp_path: Path) -> None:
    wrong = changed(commit(1), 8, pack(">i", 20), crc=False)
    offsets, said = read(tmp_path, {0: commit(0) + wrong})
    assert offsets == [0]
    assert said[0] == (
        f"{FILE}: byte 71, batch at offset 1: size 20 is less than the 49 bytes of the smallest batch of magic 2"
        " (71 bytes to the end of the file not read, an unknown number of records)"
    )


def test_the_search_is_linear(tmp_path: Path) -> None:
    # Headers that look like batches and claim the rest of the file.
    size = 1 << 20
    head = bytearray(commit(0)[:61])
    bait = b"".join(bytes(head[:8]) + pack(">i", size - at - 100) + bytes(head[12:32]) for at in range(0, size, 32))
    log = write_log(tmp_path, {0: commit(0) + b"?" * 32 + bait + commit(1)})
    started = perf_counter()
    rows = [row for each in read_partition(log) for row in each.to_pylist()]
    assert [row["offset"] for row in rows][:1] == [0]
    assert perf_counter() - started < 10


def test_a_batch_that_is_larger_than_a_chunk(tmp_path: Path) -> None:
    large = batch(record(0, b"k", bytes(300)), 1, offset=1)
    assert read(tmp_path, {0: commit(0) + b"?" * 20 + large + commit(2)})[0] == [0, 1, 2]


def test_a_place_far_away(tmp_path: Path) -> None:
    file = tmp_path / "some.log"
    junk = b"?" * (9 * 1024 * 1024 + 7)
    file.write_bytes(commit(0) + junk + commit(1))
    said: list[str] = []
    log = FoundLog("t", 0, str(file.parent), (file.name,))
    batches = read_partition(log, on_finding=lambda finding: said.append(str(finding)))
    assert [row["offset"] for each in batches for row in each.to_pylist()] == [0, 1]
    assert said == [
        f"{file}: byte 71: offset 4557430888798830399 cannot be in any log ({len(junk)} bytes {UP_TO_NEXT})"
    ]
