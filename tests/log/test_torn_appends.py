"""An append that was cut short at the end of a log, or zeros of a pre-allocated file: notes. All else is damage."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from random import Random
from struct import pack
from typing import cast

import pytest

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.files.opened import LogFile, SegmentFile
from kafka_records_engine.log.reading._scanning import read_chunks
from kafka_records_engine.log.reading.fetched import RecordSets
from tests.log.logs import batch, changed, commit, entries_of, lines, read_both, record, write_log
from tests.log.test_flipped_sizes import FILE, FOLDER, read, segments

UNKNOWN = "an unknown number of records"
ALWAYS_ZEROS = 16


@pytest.mark.slow
@pytest.mark.parametrize("name", segments())
def test_every_cut_of_the_last_batch_is_a_note(tmp_path: Path, name: str) -> None:
    base, data = segments()[name]
    last = entries_of(data)[-1]
    start = len(data) - len(last)
    log = write_log(tmp_path, {base: data[:start]})
    file = tmp_path / FOLDER / f"{base:020}.log"
    expected = read(log)[0] if start else []
    cuts = range(1, len(last))
    for cut in cuts if len(cuts) < 20 else sorted(Random(name).sample(cuts, 20)):
        file.write_bytes(data[: start + cut])
        rows, findings = read(log)
        assert rows == expected, cut
        assert [finding.severity for finding in findings] == ["note"], cut
        # Offsets start with zeros, so a few bytes look like a file that was allocated before it was written.
        assert "an append that was cut short" in str(findings[0]) or not any(last[:cut]), cut


@pytest.mark.parametrize("zeros", [1, 200, 5000])
def test_every_cut_in_a_preallocated_file_is_a_note(tmp_path: Path, zeros: int) -> None:
    last = batch(record(0, b"key", b"value" * 9) + record(1, b"key", b"v" * 30), 2, offset=1)
    for cut in range(1, len(last) - ALWAYS_ZEROS):
        log = write_log(tmp_path, {0: commit(0) + last[:cut] + bytes(zeros)})
        rows, findings = read(log)
        assert [row[0] for row in rows] == [0], cut
        assert [finding.severity for finding in findings] == ["note"], cut


def test_what_is_said_of_a_cut_in_a_preallocated_file(tmp_path: Path) -> None:
    rows, _, findings = read_both(write_log(tmp_path, {0: commit(0) + commit(1, value=b"v" * 99)[:100] + bytes(1000)}))
    assert [row["offset"] for row in rows] == [0]
    assert lines(findings, tmp_path) == [
        f"{FILE}: byte 71, batch at offset 1: the batch has 171 bytes, but 100 are left and then only zeros (an append "
        "that was cut short, 1100 bytes not read)"
    ]


@pytest.mark.parametrize("cut", [3, 7, 30, 70])
def test_a_cut_in_a_file_that_is_not_the_last_is_damage(tmp_path: Path, cut: int) -> None:
    rows, findings = read(write_log(tmp_path, {0: commit(0) + commit(1)[:cut], 2: commit(2)}))
    assert [row[0] for row in rows] == [0, 2]
    assert [finding.severity for finding in findings] == ["damage"]


@pytest.mark.parametrize("keep", [0, 40, 71])
def test_zeros_to_the_end_of_a_file_that_is_not_the_last_are_damage(tmp_path: Path, keep: int) -> None:
    rows, findings = read(write_log(tmp_path, {0: commit(0) + commit(1)[:keep] + bytes(500), 9: commit(9)}))
    assert [row[0] for row in rows] == [0, *([1] if keep == 71 else []), 9]
    assert "damage" in [finding.severity for finding in findings]


def test_a_batch_that_is_complete_is_no_cut_append(tmp_path: Path) -> None:
    # Its size and its timestamp are damaged, so no size makes its CRC right; but all its records are complete.
    last = changed(changed(commit(1), 8, pack(">i", 9999), crc=False), 30, b"\x01", crc=False)
    rows, _, findings = read_both(write_log(tmp_path, {0: commit(0) + last}))
    assert [row["offset"] for row in rows] == [0]
    assert lines(findings, tmp_path) == [
        f"{FILE}: byte 71, batch at offset 1: the batch has 10011 bytes, but 71 are left, and these are not the "
        f"beginning of a batch (71 bytes to the end of the file not read, {UNKNOWN})"
    ]


def test_batches_behind_a_cut_one_are_read(tmp_path: Path) -> None:
    rows, findings = read(write_log(tmp_path, {0: commit(0) + commit(1)[:65] + commit(2) + commit(3)}))
    assert [row[0] for row in rows] == [0, 2, 3]
    assert [finding.severity for finding in findings] == ["damage"]


def test_a_log_saved_in_a_record_of_a_cut_append_is_not_read(tmp_path: Path) -> None:
    saved = batch(record(0, b"k", commit(40) + commit(41)) + record(1, b"k", b"v" * 50), 2, offset=1)
    for cut in range(62, len(saved)):
        rows, findings = read(write_log(tmp_path, {0: commit(0) + saved[:cut]}))
        assert [row[0] for row in rows] == [0], cut
        assert [finding.severity for finding in findings] == ["note"], cut


# -- record sets of brokers --------------------------------------------------------------------------------------------


def take(data: bytes) -> tuple[list[int], list[Finding], int | None, bool]:
    findings: list[Finding] = []
    sets = RecordSets("t", 0, ["offset"], findings.append, lambda offset: None)
    taken = sets.take(data, "broker", 0, 1000)
    offsets = [offset for rows in taken.rows for offset in rows.column("offset").to_pylist()]
    return offsets, findings, taken.behind, taken.is_cut


def test_batches_behind_a_damaged_one_of_a_record_set_are_read() -> None:
    broken = changed(changed(commit(1), 8, pack(">i", 1 << 20), crc=False), 23, b"\x10", crc=False)
    offsets, findings, behind, _ = take(broken + commit(2) + commit(3) + commit(4)[:40])
    assert offsets == [2, 3]
    assert [finding.severity for finding in findings] == ["damage"]
    assert behind == 4


@pytest.mark.parametrize("cut", [1, 20, 65, 70])
def test_a_batch_that_the_fetch_cut_off_is_no_damage(cut: int) -> None:
    assert take(commit(0)[:cut]) == ([], [], None, True)
    assert take(commit(0) + commit(1)[:cut]) == ([0], [], 1, False)


def test_a_complete_batch_with_a_wrong_size_is_no_cut_of_the_fetch() -> None:
    broken = changed(changed(commit(0), 8, pack(">i", 1 << 20), crc=False), 30, b"\x01", crc=False)
    offsets, findings, behind, is_cut = take(broken)
    assert (offsets, behind, is_cut) == ([], None, False)
    assert [finding.severity for finding in findings] == ["damage"]


# -- what it costs -----------------------------------------------------------------------------------------------------


class Counted(BytesIO):
    """Bytes in memory that count how many of them were read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.size = self.furthest = len(data)
        self.count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.count += len(data)
        return data


def bytes_read(rest: bytes) -> int:
    broken = changed(changed(commit(1), 8, pack(">i", 1 << 29), crc=False), 23, b"\x10", crc=False)
    file = Counted(commit(0) + broken + rest + commit(2))
    segment = SegmentFile("f", 0, cast(LogFile, file), size=file.size)
    chunks = list(read_chunks(segment, True, lambda finding: None))
    assert sum(len(chunk.entries) for chunk in chunks) == 2
    return file.count


def noise(size: int) -> bytes:
    return Random(size).randbytes(size)


@pytest.mark.parametrize("make", [bytes, noise], ids=["zeros", "noise"])
def test_the_search_reads_twice_as_much_of_twice_as_much(make: type[bytes]) -> None:
    size = 4 << 20
    once, twice = bytes_read(make(size)), bytes_read(make(2 * size))
    assert twice < 2.2 * once
    assert once < 4 * size + (8 << 20)
