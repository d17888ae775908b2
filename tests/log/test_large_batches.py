"""Batches of very many records, which are returned in several blocks, and their memory use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from kafka_records_engine.log.reading import _blocks as blocks
from kafka_records_engine.log.reading.segment_files import read_partition
from tests.log.logs import batch, captured_logs, case, commit, entries_of, lines, read_both, record, write_log, zigzag

FILE = f"__consumer_offsets-0/{0:020}.log"
PLAIN = b"".join(record(number, b"k%d" % number, b"v" * (number % 7)) for number in range(1000))
WITH_HEADER = b"\0\0" + zigzag(1000) + zigzag(1) + b"k" + zigzag(-1) + zigzag(1) + zigzag(1) + b"h" + zigzag(-1)
PEAK = """
import sys
from pathlib import Path
from kafka_records_engine.log.reading.segment_files import find_logs, read_partition

(log,) = find_logs([Path(sys.argv[1])])
sizes = [rows.num_rows for rows in read_partition(log)]
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(sum(sizes), max(sizes), status["VmHWM"].split()[0])
"""
"""The peak memory of only this program: `ru_maxrss` includes that of the process that started it."""


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, "zstd", asbytes=True)
    return packed


@pytest.mark.parametrize("attributes", [0, 4], ids=["none", "zstd"])
@pytest.mark.parametrize("most", [1, 7, 100, 999])
def test_blocks_of_a_few_rows_hold_the_same(tmp_path: Path, most: int, attributes: int) -> None:
    body = PLAIN + zigzag(len(WITH_HEADER)) + WITH_HEADER
    large = batch(zstd(body) if attributes else body, 1001, offset=1, attributes=attributes)
    log = write_log(tmp_path, {0: commit(0) + large + commit(1002) + large[:30]})
    rows, _, findings = read_both(log)
    assert [row["offset"] for row in rows] == list(range(1003))
    with patch.object(blocks, "_MOST_ROWS", most):
        again, _, same = read_both(log)
    assert (again, same) == (rows, findings)


@pytest.mark.parametrize("most_bytes", [1, 60, 5000])
def test_blocks_of_a_few_bytes_hold_the_same(tmp_path: Path, most_bytes: int) -> None:
    log = write_log(tmp_path, {0: commit(0) + batch(zstd(PLAIN), 1000, offset=1, attributes=4) + commit(1001)})
    rows, _, _ = read_both(log)
    with patch.object(blocks, "_MOST_DECOMPRESSED", most_bytes):
        assert read_both(log)[0] == rows


@pytest.mark.parametrize("most", [1, 3])
def test_small_blocks_of_what_kafka_wrote(tmp_path: Path, most: int) -> None:
    for log in captured_logs():
        rows, _, findings = read_both(log)
        with patch.object(blocks, "_MOST_ROWS", most), patch.object(blocks, "_MOST_DECOMPRESSED", 40):
            assert read_both(log)[::2] == (rows, findings)


@pytest.mark.parametrize("magic", [0, 1])
def test_small_blocks_of_wrapped_messages(tmp_path: Path, magic: int) -> None:
    log = write_log(tmp_path, {0: case(f"magic {magic} gzip three records")})
    rows, _, _ = read_both(log)
    assert len(rows) == 3
    with patch.object(blocks, "_MOST_ROWS", 1):
        assert read_both(log)[0] == rows


@pytest.mark.parametrize("most", [100, 256 * 1024])
def test_a_record_that_does_not_parse_in_a_later_block(tmp_path: Path, most: int) -> None:
    data = PLAIN + zigzag(6) + b"\0\0\0\x10\0\0"
    log = write_log(tmp_path, {0: batch(zstd(data), 1003, attributes=4) + commit(1003)})
    with patch.object(blocks, "_MOST_ROWS", most):
        rows, _, findings = read_both(log)
    assert [row["offset"] for row in rows] == [*range(1000), 1003]
    assert lines(findings, tmp_path) == [
        f"{FILE}: byte 0, batch at offset 0: record 1001 of 1003 has a key of 8 bytes, but 2 are left"
        " (1000 records delivered, the batch claims to have 3 more)"
    ]


@pytest.mark.parametrize("most", [100, 256 * 1024])
def test_bytes_behind_the_last_record_of_many(tmp_path: Path, most: int) -> None:
    log = write_log(tmp_path, {0: batch(zstd(PLAIN + b"rest"), 1000, attributes=4)})
    with patch.object(blocks, "_MOST_ROWS", most):
        rows, _, findings = read_both(log)
    assert len(rows) == 1000
    assert lines(findings, tmp_path) == [
        f"{FILE}: byte 0, batch at offset 0: 4 bytes after the last of 1000 records (1000 records delivered, 4 bytes "
        "that may be records not read)"
    ]


@pytest.mark.slow
def test_a_few_kilobytes_with_millions_of_records_stay_small(tmp_path: Path) -> None:
    count = 5_000_000
    bomb = batch(zstd(record(0, b"k", b"v") * count), count, last_delta=0, attributes=4)
    assert len(bomb) < 10_000
    log = write_log(tmp_path, {0: bomb})
    assert len(entries_of(bomb)) == 1
    first = next(iter(read_partition(log)))
    assert first.num_rows == 10_000
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path)], capture_output=True, text=True, check=True, timeout=300
    )
    rows, largest, kilobytes = map(int, done.stdout.split())
    assert (rows, largest) == (count, 10_000)
    assert kilobytes < 400 * 1024
