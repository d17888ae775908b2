"""What is left to read at the end of a log, and since when, according to the headers of its last batches."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records_engine.log.reading.log_end import end_of
from kafka_records_engine.log.reading.segment_files import find_logs, open_log
from kafka_records_engine.log.reading.tails import TAIL_BYTES
from kafka_records_engine.log.reading.unread import Unread, unread_from
from tests.log.logs import DATA, batch, case, commit, marker, read_both, record, write_log

PLANTED = DATA / "progress"


Samples = list[tuple[int, int]]


def unread(folder: Path, name: str = "t-0", offset: int | None = None) -> Unread:
    """What is left from an offset on, or from the end, with the tail."""
    (log,) = find_logs([folder / name])
    with open_log(log) as opened:
        end = end_of(opened.segments[-1], log.place)
        assert end is not None
        offsets = np.array([end.offset if offset is None else offset], np.int64)
        return unread_from(opened, log.place, offsets, end.offset, with_tail=True)


def tail(folder: Path) -> tuple[Samples, int]:
    """The samples, and the offset from which they have every batch."""
    found = unread(folder).tail
    assert found is not None
    return [*zip(found.offsets.tolist(), found.times_ms.tolist(), strict=True)], found.exact_from


def unpacked(name: str, folder: Path) -> Path:
    with (
        pa.input_stream(str(PLANTED / name), compression="zstd") as stream,
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("disk.tar.zst", tmp_path_factory.mktemp("disk"))


def truth() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (PLANTED / "left.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", truth(), ids=lambda row: f"{row['group']} {row['topic']}-{row['partition']}")
def test_what_is_left_is_what_was_produced(disk: Path, row: dict[str, Any]) -> None:
    """For every record, the time of production and the outcome of its transaction were recorded."""
    offset = max(row["committed"], row["log_start"])
    found = unread(disk, f"{row['topic']}-{row['partition']}", offset)
    first = row["first_committed_left"]
    assert found.unread.tolist() == [row["committed_records_left"]]
    if row["topic"] != "timed.packed":  # one record a batch
        assert found.timestamp_ms.tolist() == [-1 if first is None else first["timestamp_ms"]]
    assert bool(found.held_back[0]) == (offset < row["end"] and row["last_stable"] < row["end"])
    assert found.tail is not None
    assert found.tail.exact_from == row["log_start"]


def many(count: int, size: int = 0) -> bytes:
    body = record(0, b"k", b"v" * size)
    return b"".join(batch(body, 1, offset=offset, timestamp=1000 * offset) for offset in range(count))


def indexed(folder: Path, count: int) -> Path:
    """A log of small batches with its offset index; its folder."""
    log = write_log(folder, {0: many(count)}, "t-0")
    size = len(many(1))
    entries = b"".join(pack(">iI", offset, offset * size) for offset in range(50, count, 50))
    (Path(log.folder) / f"{0:020}.index").write_bytes(entries)
    return Path(log.folder)


def test_only_the_end_is_looked_at(tmp_path: Path) -> None:
    indexed(tmp_path, 20_000)
    samples, exact_from = tail(tmp_path)
    each = len(many(1))
    # It begins at the next batch that the index names.
    assert TAIL_BYTES // each - 50 <= len(samples) <= TAIL_BYTES // each
    assert samples[-1] == (19_999, 19_999_000)
    assert exact_from == 20_000 - len(samples)


def test_small_files_are_looked_at_together(tmp_path: Path) -> None:
    content = many(300)
    each = len(content) // 300
    files = {first: content[first * each : (first + 30) * each] for first in range(0, 300, 30)}
    write_log(tmp_path, files | {300: b""}, "t-0")
    samples, exact_from = tail(tmp_path)
    # Eight files at most, the empty one among them.
    assert [offset for offset, _ in samples] == list(range(90, 300))
    assert exact_from == 90


def test_further_back_the_time_index_tells(tmp_path: Path) -> None:
    folder = indexed(tmp_path, 20_000)
    entries = b"".join(pack(">qi", 1000 * offset, offset) for offset in range(50, 20_000, 50))
    (folder / f"{0:020}.timeindex").write_bytes(entries + bytes(12 * 1000))
    samples, exact_from = tail(tmp_path)
    before = [each for each in samples if each[0] < exact_from]
    assert len(before) >= 25
    assert all(offset % 50 == 0 and ms == 1000 * offset for offset, ms in before)
    assert [offset for offset, _ in samples] == sorted({offset for offset, _ in samples})


@pytest.mark.parametrize("end", [b"", bytes(4096), many(1)[:40], commit(5)[:12]])
def test_what_is_after_the_last_batch_is_left_alone(tmp_path: Path, end: bytes) -> None:
    write_log(tmp_path, {0: many(5) + end}, "t-0")
    samples, _ = tail(tmp_path)
    assert [offset for offset, _ in samples] == [0, 1, 2, 3, 4]


def test_markers_and_open_transactions(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        {0: commit(0) + commit(1, 7) + commit(2, 8) + marker(3, 7, 1) + marker(4, 8, 0) + commit(5, 9) + commit(6)},
        "t-0",
    )
    samples, _ = tail(tmp_path)
    assert [offset for offset, _ in samples] == [0, 1]
    found = unread(tmp_path, offset=0)
    assert (found.unread.tolist(), found.held_back.tolist()) == ([2], [2])


@pytest.mark.parametrize("name", ["magic 0 none three records", "magic 1 gzip three records"])
def test_formats_before_batches(tmp_path: Path, name: str) -> None:
    log = write_log(tmp_path, {0: case(name)}, "t-0")
    samples, _ = tail(tmp_path)
    assert samples[-1][0] == max(each.record.offset for each in read_both(log)[1])


@pytest.mark.parametrize("length", [20, 90, 1_000_000], ids=["too short", "into the next batch", "beyond the file"])
def test_a_broken_length_is_found(tmp_path: Path, length: int) -> None:
    content = bytearray(many(9))
    third = 2 * len(many(1))
    content[third + 8 : third + 12] = pack(">i", length)
    write_log(tmp_path, {0: bytes(content)}, "t-0")
    found = unread(tmp_path, offset=1)
    assert (found.unread.tolist(), found.held_back.tolist(), found.tail) == ([-1], [-1], None)
    assert found.trouble is not None
    assert found.place is not None
    assert third <= found.place[1] <= third + 90 + 12
