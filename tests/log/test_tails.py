"""What is left to read at the end of a log, and since when, by the heads of its last batches."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from struct import pack
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.log.reading import find_logs, open_log
from kafka_records_engine.log.tails import TAIL_BYTES, LogTail, tail_of
from tests.log.logs import DATA, batch, case, commit, marker, read_both, record, write_log

PLANTED = DATA / "progress"


def tail(folder: Path, name: str = "t-0") -> LogTail | None:
    (log,) = find_logs([folder / name])
    with open_log(log) as opened:
        return tail_of(opened, log.place)


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
    """Every record was noted when it was produced, and how its transaction ended."""
    found = tail(disk, f"{row['topic']}-{row['partition']}")
    assert found is not None
    left = [each for each in found.samples if each[0] >= row["committed"]]
    assert bool(left) == bool(row["committed_records_left"])
    if left and row["topic"] != "timed.packed":
        # One record a batch.
        assert left[0] == (row["first_committed_left"]["offset"], row["first_committed_left"]["timestamp_ms"])
        assert len(left) == row["committed_records_left"]
    if row["last_stable"] < row["end"]:
        assert found.open_from == row["last_stable"]
    else:
        assert found.open_from is None
    assert found.exact_from == row["log_start"]


def many(count: int, size: int = 0) -> bytes:
    body = record(0, b"k", b"v" * size)
    return b"".join(batch(body, 1, offset=offset, timestamp=1000 * offset) for offset in range(count))


def test_only_the_end_is_looked_at(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(20_000)}, "t-0")
    found = tail(tmp_path)
    assert found is not None
    each = len(many(1))
    # The first batch that is looked at ends after the point where the end begins.
    assert TAIL_BYTES // each <= len(found.samples) <= TAIL_BYTES // each + 1
    assert found.samples[-1] == (19_999, 19_999_000)
    assert found.exact_from == 20_000 - len(found.samples)


def test_small_files_are_looked_at_together(tmp_path: Path) -> None:
    content = many(300)
    each = len(content) // 300
    files = {first: content[first * each : (first + 30) * each] for first in range(0, 300, 30)}
    write_log(tmp_path, files | {300: b""}, "t-0")
    found = tail(tmp_path)
    assert found is not None
    # Eight files at most, the empty one among them.
    assert [offset for offset, _ in found.samples] == list(range(90, 300))
    assert found.exact_from == 90


def test_further_back_the_time_index_tells(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: many(20_000)}, "t-0")
    entries = b"".join(pack(">qi", 1000 * offset, offset) for offset in range(50, 20_000, 50))
    (Path(log.folder) / f"{0:020}.timeindex").write_bytes(entries + bytes(12 * 1000))
    found = tail(tmp_path)
    assert found is not None
    before = [each for each in found.samples if each[0] < found.exact_from]
    assert len(before) >= 25
    assert all(offset % 50 == 0 and ms == 1000 * offset for offset, ms in before)
    assert [offset for offset, _ in found.samples] == sorted({offset for offset, _ in found.samples})


@pytest.mark.parametrize("end", [b"", bytes(4096), many(1)[:40], commit(5)[:12]])
def test_what_is_after_the_last_batch_is_left_alone(tmp_path: Path, end: bytes) -> None:
    write_log(tmp_path, {0: many(5) + end}, "t-0")
    found = tail(tmp_path)
    assert found is not None
    assert [offset for offset, _ in found.samples] == [0, 1, 2, 3, 4]


def test_markers_and_open_transactions(tmp_path: Path) -> None:
    log = write_log(
        tmp_path,
        {0: commit(0) + commit(1, 7) + commit(2, 8) + marker(3, 7, 1) + marker(4, 8, 0) + commit(5, 9) + commit(6)},
        "t-0",
    )
    found = tail(tmp_path)
    assert found is not None
    assert ([offset for offset, _ in found.samples], found.open_from) == ([0, 1, 2], 5)
    # The broker writes down which transactions were aborted.
    (Path(log.folder) / f"{0:020}.txnindex").write_bytes(pack(">hqqqq", 0, 8, 2, 4, 5) + b"cut short")
    found = tail(tmp_path)
    assert found is not None
    assert [offset for offset, _ in found.samples] == [0, 1]


@pytest.mark.parametrize("name", ["magic 0 none three records", "magic 1 gzip three records"])
def test_formats_before_batches(tmp_path: Path, name: str) -> None:
    log = write_log(tmp_path, {0: case(name)}, "t-0")
    found = tail(tmp_path)
    assert found is not None
    assert found.samples[-1][0] == max(each.record.offset for each in read_both(log)[1])


def test_a_log_that_cannot_be_followed_tells_nothing(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(5) + b"\xff" * 200}, "t-0")
    assert tail(tmp_path) is None
