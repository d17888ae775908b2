"""Files without a batch, files that may not be read, and offsets between files."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.log.reading.segment_files import find_logs
from tests.log.logs import commit, lines, read_both, write_log
from tests.log.test_bad_input import FILE, FOLDER, read

GZIP = gzip.compress(bytes(50), mtime=0)
GZIP_OFFSET = int.from_bytes(GZIP[:8], "big")


def counted(data: bytes) -> str:
    return "1 byte" if len(data) == 1 else f"{len(data)} bytes"


@pytest.mark.parametrize("data", [b"x", b"x\n?", b"garbage", b"\x1f\x8b\x08"], ids=["1", "3", "7", "gzip"])
def test_a_few_bytes_that_start_no_batch(tmp_path: Path, data: bytes) -> None:
    offsets, said, finding = read(tmp_path, {0: data})
    assert offsets == []
    assert said == [
        f"{FILE}: byte 0: not a log segment: {counted(data)} that cannot be the start of an offset in a file "
        f"named for offset 0"
        f" ({counted(data)} not read)"
    ]
    assert finding.bytes == len(data)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (GZIP, f"offset {GZIP_OFFSET} cannot be in any log"),
        (b"Dear reader, this is no log at all.\n", "offset 4928452510025409889 cannot be in any log"),
        (b"x", "1 byte that cannot be the start of an offset in any log"),
    ],
)
def test_a_file_without_an_offset_in_its_name(tmp_path: Path, data: bytes, what: str) -> None:
    file = tmp_path / "t-0" / "some.log"
    file.parent.mkdir()
    file.write_bytes(data)
    (log,) = find_logs([file])
    rows, _, (finding,) = read_both(log)
    assert rows == []
    assert lines([finding], tmp_path) == [f"t-0/some.log: byte 0: not a log segment: {what} ({counted(data)} not read)"]
    assert finding.severity == "damage"


def test_a_file_of_zeros(tmp_path: Path) -> None:
    offsets, said, _ = read(tmp_path, {0: bytes(100)}, "note")
    assert offsets == []
    assert said == [f"{FILE}: byte 0: only zeros from here (pre-allocated, 100 bytes without records)"]


def test_a_file_of_zeros_that_is_not_the_last(tmp_path: Path) -> None:
    offsets, said, finding = read(tmp_path, {0: bytes(100), 90: commit(90)})
    assert offsets == [90]
    assert said == [
        f"{FILE}: byte 0: only zeros from here, in a file that is not the last of its log (100 bytes not read, an "
        "unknown number of records)"
    ]
    assert finding.bytes == 100


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is a finding, and the other files are read."""
    log = write_log(tmp_path, {0: commit(0), 90: commit(90)})
    original = os.open

    def refuse(path: str, *arguments: Any) -> int:
        if Path(path).name.startswith(f"{0:020}"):
            raise PermissionError(13, "Permission denied")
        return original(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    rows, _, findings = read_both(log)
    assert [row["offset"] for row in rows] == [90]
    assert [str(each) for each in findings] == [
        f"{tmp_path / FILE}: permission denied: run this as a user who may read it (nothing in it is read)"
    ]
    (other,) = find_logs([(tmp_path / FILE).with_name(f"{90:020}.log")])
    rows, _, _ = read_both(other)
    assert [row["offset"] for row in rows] == [90]


def test_an_empty_file_in_the_middle(tmp_path: Path) -> None:
    offsets, said, _ = read(tmp_path, {0: commit(0), 1: b"", 90: commit(90)}, "note")
    assert offsets == [0, 90]
    assert said == [
        f"{FOLDER}/{1:020}.log: it contains no batch, and no file has offsets 1 to 89"
        " (the log cleaner has removed them, or a file is missing: if that is certain, a report has a finding about it)"
    ]


@pytest.mark.parametrize(("last", "which"), [(88, "offset 89"), (65, "offsets 66 to 89")])
def test_offsets_in_no_file(tmp_path: Path, last: int, which: str) -> None:
    offsets, said, _ = read(tmp_path, {0: commit(last), 90: commit(90)}, "note")
    assert offsets == [last, 90]
    assert said == [
        f"{FILE}: no file has {which}"
        " (the log cleaner has removed them, or a file is missing: if that is certain, a report has a finding about it)"
    ]


def test_files_that_were_not_asked_for_are_not_missing(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0), 1: commit(1), 2: commit(2)})
    (log,) = find_logs([tmp_path / FOLDER / f"{offset:020}.log" for offset in (0, 2)])
    rows, _, findings = read_both(log)
    assert ([row["offset"] for row in rows], findings) == ([0, 2], [])
