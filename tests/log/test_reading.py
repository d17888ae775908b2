"""Raw rows, record batches and counts over whole partitions."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from struct import pack

import pyarrow as pa
import pytest

from kafka_records_engine.log.reading import _blocks as blocks
from kafka_records_engine.log.reading import _scanning as scanning
from kafka_records_engine.log.reading.segment_files import (
    RAW_SCHEMA,
    FoundLog,
    find_logs,
    open_log,
    read_log,
    read_partition,
    scan,
)
from tests.log.logs import (
    CAPTURES,
    TOPICS,
    batch,
    captured_logs,
    case,
    changed,
    commit,
    entries_of,
    marker,
    read_both,
    record,
    write_log,
)


def name_of(log: FoundLog) -> str:
    return "-".join((Path(log.folder).parts[-3], log.topic, str(log.partition)))


@pytest.mark.parametrize("log", captured_logs(), ids=name_of)
def test_both_readers_agree_on_captured_logs(log: FoundLog) -> None:
    rows, _, findings = read_both(log)
    assert [row["offset"] for row in rows] == sorted(row["offset"] for row in rows)
    assert all(row["base_offset"] <= row["offset"] for row in rows)
    assert [finding.severity for finding in findings] in ([], ["note"])


def test_the_schema() -> None:
    assert RAW_SCHEMA.names == [
        "topic",
        "partition",
        "offset",
        "timestamp_ms",
        "timestamp_type",
        "key",
        "value",
        "leader_epoch",
        "base_offset",
        "producer_id",
        "producer_epoch",
        "transaction",
        "control",
    ]
    for each in captured_logs():
        assert all(rows.schema == RAW_SCHEMA for rows in read_partition(each))


def test_a_row_of_every_format(tmp_path: Path) -> None:
    first = [entries_of(case(f"magic {magic} none three records"))[0] for magic in (0, 1)]
    first[1] = changed(first[1], 0, pack(">q", 11), crc=False)
    log = write_log(tmp_path, {0: b"".join(first) + commit(12, 7, b"x") + marker(13, 7, 1)})
    rows, _, _ = read_both(log)
    for row in rows:
        del row["key"], row["value"]
    common = {"topic": "__consumer_offsets", "partition": 0, "leader_epoch": -1, "producer_id": -1}
    common |= {"producer_epoch": -1, "transaction": "none", "control": None}
    newer = {"leader_epoch": 3, "producer_id": 7, "producer_epoch": 0, "transaction": "committed"}
    newer |= {"timestamp_ms": 1000, "timestamp_type": "create"}
    assert rows == [
        common | {"offset": 10, "base_offset": 10, "timestamp_ms": -1, "timestamp_type": None},
        common | {"offset": 11, "base_offset": 11, "timestamp_ms": 1700000000123, "timestamp_type": "create"},
        common | newer | {"offset": 12, "base_offset": 12},
        common | newer | {"offset": 13, "base_offset": 13, "control": "commit"},
    ]


# -- the start of the log ----------------------------------------------------------------------------------------------


def test_records_below_the_log_start() -> None:
    (log,) = (
        each
        for each in find_logs([TOPICS / "kafka-4.3" / "segments"], topic="__share_group_state")
        if each.partition == 1
    )
    with open_log(log) as opened:
        assert opened.log_start == 11
    kept = [offset for rows in read_partition(log) for offset in rows["offset"].to_pylist()]
    every = [offset for rows in read_partition(log, below_log_start=True) for offset in rows["offset"].to_pylist()]
    assert kept == [offset for offset in every if offset >= 11]
    assert len(every) == 27
    assert len(kept) == 16
    assert [each.record.offset for each in read_log(log)] == every
    assert [each.record.offset for each in read_log(log, below_log_start=False)] == kept


# -- record batches ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3, 7, 1000])
def test_sizes_of_record_batches(tmp_path: Path, rows: int) -> None:
    files = {base: b"".join(commit(base + number) for number in range(5)) for base in (0, 10, 20)}
    log = write_log(tmp_path, files)
    sizes = [each.num_rows for each in read_partition(log, batch_rows=rows)]
    assert sum(sizes) == 15
    assert sizes[:-1] == [rows] * (len(sizes) - 1)
    assert sizes[-1] <= rows


def test_chunks_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = captured_logs()
    expected = [pa.Table.from_batches(read_partition(log), RAW_SCHEMA) for log in logs]
    for size in (100, 1000, 5000):
        monkeypatch.setattr(scanning, "CHUNK", size)
        assert [pa.Table.from_batches(read_partition(log), RAW_SCHEMA) for log in logs] == expected


def test_blocks_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = captured_logs()
    expected = [pa.Table.from_batches(read_partition(log), RAW_SCHEMA) for log in logs]
    monkeypatch.setattr(blocks, "_MOST_DECOMPRESSED", 1)
    assert [pa.Table.from_batches(read_partition(log), RAW_SCHEMA) for log in logs] == expected


def test_many_batches_of_many_records(tmp_path: Path) -> None:
    # Enough batches for the vector steps, of very different lengths, with values of very different sizes.
    dice = random.Random(7)
    data, expected, offset = [], [], 0
    for _ in range(300):
        count = dice.choice((0, 1, 2, 3, 10, 200))
        values = [dice.choice((None, b"", b"v" * dice.randrange(300))) for _ in range(count)]
        records = b"".join(record(number, b"k", value) for number, value in enumerate(values))
        data.append(batch(records, count, offset=offset))
        expected += [(offset + number, value) for number, value in enumerate(values)]
        offset += max(count, 1)
    rows, _, findings = read_both(write_log(tmp_path, {0: b"".join(data)}))
    assert findings == []
    assert [(row["offset"], row["value"]) for row in rows] == expected


def test_records_with_headers_go_the_careful_way(tmp_path: Path) -> None:
    entry = entries_of(case("log append time, headers, null key, empty key and value"))[0]
    _, records, findings = read_both(write_log(tmp_path, {0: entry}))
    assert findings == []
    assert [(header.key, header.value) for header in records[0].record.headers] == [("h1", b"\1\2"), ("", None)]


# -- counts ------------------------------------------------------------------------------------------------------------

README = {
    "kafka-2.8": ({"none": 221, "gzip": 38, "snappy": 38, "lz4": 38, "zstd": 22}, {0: 54, 1: 74, 2: 229}, 564),
    "kafka-4.3": ({"none": 160, "gzip": 37, "snappy": 95, "lz4": 58, "zstd": 138}, {2: 488}, 999),
    "kafka-4.3-expiry": ({"none": 38}, {2: 38}, 88),
}
GAPS = {"__consumer_offsets-1": 34, "__consumer_offsets-3": 34, "__consumer_offsets-4": 146, "__transaction_state-1": 6}


@pytest.mark.parametrize("capture", CAPTURES)
def test_counts_of_the_captures(capture: str) -> None:
    logs = find_logs([TOPICS / capture / "segments"])
    stats = [each for log in logs for each in scan(log)]
    codecs: Counter[str] = sum((each.codecs for each in stats), Counter())
    magics: Counter[int] = sum((each.magics for each in stats), Counter())
    assert (codecs, magics, sum(each.records for each in stats)) == README[capture]
    assert sum(each.batches for each in stats) == sum(codecs.values())
    assert [each.bytes for each in stats] == [os.path.getsize(each.file) for each in stats]
    assert sum(each.control_batches for each in stats) == {"kafka-2.8": 15, "kafka-4.3": 9}.get(capture, 0)


def test_gaps_of_the_capture() -> None:
    found = {}
    for log in find_logs([TOPICS / "kafka-4.3" / "segments"]):
        missing = sum(each.missing_offsets for each in scan(log))
        if missing:
            found[f"{log.topic}-{log.partition}"] = missing
    assert found == GAPS


def test_counts_of_one_file(tmp_path: Path) -> None:
    empty = batch(b"", 0, offset=5, last_delta=4)
    data = commit(0, 7) + marker(1, 7, 1) + empty + commit(12) + bytes(9)
    (stats,) = scan(write_log(tmp_path, {0: data}))
    assert (stats.batches, stats.records, stats.control_batches, stats.transactional_batches) == (4, 3, 1, 1)
    assert (stats.first_offset, stats.last_offset, stats.missing_offsets) == (0, 12, 10)
    assert (stats.codecs, stats.magics) == ({"none": 4}, {2: 4})
    assert [finding.bytes for finding in stats.findings] == [9]
    assert stats.bytes == len(data)


# -- what it needs -----------------------------------------------------------------------------------------------------


def test_numpy_and_pyarrow_suffice() -> None:
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('msgspec', 'pyspark', 'google_crc32c', 'crc32c', 'cramjam', 'pandas'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from kafka_records_engine.log.reading.segment_files import find_logs, read_partition\n"
        f"logs = find_logs([{str(TOPICS / 'kafka-4.3' / 'segments')!r}])\n"
        "print(sum(rows.num_rows for log in logs for rows in read_partition(log, below_log_start=True)))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "999\n"


def test_memory_is_bounded_by_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "CHUNK", 10_000)
    log = write_log(tmp_path, {0: b"".join(pack(">q", number) + commit(0)[8:] for number in range(20_000))})
    before = pa.total_allocated_bytes()
    most = count = 0
    for rows in read_partition(log, batch_rows=100):
        count += rows.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
        del rows
    assert count == 20_000
    assert most < 1_000_000
