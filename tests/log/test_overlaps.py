"""Files of a log that hold the same batches, because a cleaner merged them or because somebody copied them."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from kafka_records_engine.log.reading import _scanning as scanning
from kafka_records_engine.log.reading.segment_files import FoundLog, find_logs, read_partition
from tests.log.logs import batch, changed, commit, lines, marker, read_both, record, write_log

FOLDER = "t-0"

THREE = b"".join(record(delta, b"k%d" % delta, b"v") for delta in range(3))


def offsets_of(log: FoundLog) -> tuple[list[int], list[str]]:
    """Offsets of the rows and what is said, wherever chunks end and however often the files are read."""
    rows, _, findings = read_both(log)
    offsets = [row["offset"] for row in rows]
    for size in (40, 100, 1000):
        with patch.object(scanning, "CHUNK", size):
            again, _, same = read_both(log)
        assert ([row["offset"] for row in again], same) == (offsets, findings)
    holes: list[int] = []
    once = read_partition(log, settle=False, on_hole=holes.append)
    assert [offset for batch in once for offset in batch["offset"].to_pylist()] == offsets
    assert bool(holes) == any(finding.severity == "damage" for finding in findings)
    return offsets, lines(findings, Path(log.folder).parent)


def test_a_merged_file_beside_what_it_was_made_of(tmp_path: Path) -> None:
    cleaned = commit(1) + commit(5, 7) + marker(6, 7, 1) + commit(9)
    files = {0: cleaned, 4: commit(4) + commit(5, 7), 6: marker(6, 7, 1) + commit(8) + commit(9), 10: commit(10)}
    rows, _, _ = read_both(write_log(tmp_path, files, FOLDER))
    assert [(row["offset"], row["transaction"]) for row in rows] == [
        (1, "none"),
        (5, "committed"),
        (6, "committed"),
        (9, "none"),
        (10, "none"),
    ]
    assert offsets_of(find_logs([tmp_path])[0]) == ([1, 5, 6, 9, 10], [])


def test_batches_of_which_records_were_taken_away(tmp_path: Path) -> None:
    whole, emptier = batch(THREE, 3, offset=4), batch(record(2, b"k2", b"v"), 1, offset=4, last_delta=2)
    assert offsets_of(write_log(tmp_path, {0: commit(0) + emptier, 4: whole + commit(7)}, FOLDER)) == ([0, 6, 7], [])


def test_tombstones_with_a_delete_horizon(tmp_path: Path) -> None:
    marked = batch(record(0, b"k", None), 1, offset=4, attributes=0x40, timestamp=9_000)
    original = batch(record(0, b"k", None), 1, offset=4)
    assert offsets_of(write_log(tmp_path, {0: commit(0) + marked, 4: original + commit(5)}, FOLDER)) == ([0, 4, 5], [])


def test_what_is_damaged_in_the_original_only(tmp_path: Path) -> None:
    damaged = changed(commit(5), 70, b"?", crc=False)
    files = {0: commit(0) + commit(4) + commit(5) + commit(6), 4: commit(4) + damaged + commit(6) + commit(7)}
    offsets, said = offsets_of(write_log(tmp_path, files, FOLDER))
    assert offsets == [0, 4, 5, 6, 7]
    assert len(said) == 1
    assert said[0].startswith(f"{FOLDER}/{4:020}.log: byte 71, batch at offset 5: wrong CRC: ")


@pytest.mark.parametrize("wrong", [2, 3])
def test_a_damaged_offset_is_no_overlap(tmp_path: Path, wrong: int) -> None:
    # There is a batch at this offset in the next file, but it is another one.
    damaged = changed(commit(1), 0, wrong.to_bytes(8, "big"), crc=False)
    log = write_log(tmp_path, {0: commit(0) + damaged, 2: commit(2) + commit(3)}, FOLDER)
    assert offsets_of(log) == (
        [0, 2, 3],
        [
            f"{FOLDER}/{0:020}.log: byte 71, batch at offset {wrong}: offset {wrong} cannot be before the file named "
            "for offset 2 (1 record, 71 bytes skipped)"
        ],
    )


def test_copies_under_other_names(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0) + commit(1), 2: commit(2) + commit(3)}, FOLDER)
    for number, name in ((0, "a copy.log"), (2, "another.log")):
        (tmp_path / FOLDER / name).write_bytes((tmp_path / FOLDER / f"{number:020}.log").read_bytes())
    assert offsets_of(find_logs([tmp_path])[0]) == ([0, 1, 2, 3], [])


def test_a_file_and_its_swap_file_both_asked_for(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0) + commit(1)}, FOLDER)
    swap = tmp_path / FOLDER / f"{0:020}.log.swap"
    swap.write_bytes(commit(1))
    (log,) = find_logs([swap, tmp_path / FOLDER / f"{0:020}.log"])
    assert offsets_of(log)[0] == [0, 1]
