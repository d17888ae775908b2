"""Where logs begin and end, without reading their records."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from struct import pack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.files.opened import FrozenFile
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.log.reading.segment_files import find_logs, scan
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.ends_of_logs import log_ends
from kafka_records_engine.sources.protocol import LogEnds
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_tables import read_table
from tests.log.logs import CAPTURES, TOPICS, batch, changed, commit, record, write_log


def ends(*paths: Path, topic: str | None = None) -> tuple[list[LogEnds], list[str]]:
    source = Segments([*paths], topic)
    context = Context()
    found = list(log_ends(source, source.topics(), context))
    return found, [str(each) for each in context.findings]


def end(tmp_path: Path, files: dict[int, bytes]) -> int | None:
    write_log(tmp_path, files, "t-0")
    (found,), findings = ends(tmp_path)
    assert len(findings) == bool(found.is_cut)
    return found.log_end_offset


@pytest.mark.parametrize("capture", CAPTURES)
def test_ends_are_those_of_reading_everything(capture: str) -> None:
    folder = TOPICS / capture / "segments"
    found, findings = ends(folder)
    assert findings == []
    logs = find_logs([folder])
    assert [(each.topic, each.partition) for each in found] == [(log.topic, log.partition) for log in logs]
    for log, each in zip(logs, found, strict=True):
        stats = scan(log)
        base = stats[-1].base_offset or 0
        behind = base if stats[-1].last_offset is None else stats[-1].last_offset + 1
        assert each.log_end_offset == behind, log
        assert each.log_start_offset == max(stats[0].log_start, stats[0].base_offset or 0)
        assert each.place == log.folder
        assert (each.high_watermark, each.high_watermark_timestamp_ms, each.last_stable_offset) == (None, None, None)


def test_the_topic_id_is_that_of_the_broker() -> None:
    found, _ = ends(TOPICS / "kafka-4.3" / "segments")
    assert {each.topic: each.topic_id for each in found} == {
        "__consumer_offsets": "nGU4ZA88RpqNavs8eDiXhA",
        "__share_group_state": "jwkjBBe3TeuYLGOc5-UiGA",
        "__transaction_state": "TyftI2zuQrWwEKClR79rAw",
    }


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (b"", 3),
        (commit(3)[:-1], 3),
        (commit(3)[:12], 3),
        (b"\0" * 5000, 3),
        (changed(commit(3), 66, b"\xff", crc=False), 3),
        (changed(commit(3), 66, b"\xff", crc=False) + commit(4), 5),
        (b"what is no batch at all, but long enough for a head" + commit(7), 8),
        (changed(commit(3), 8, pack(">i", 1 << 20), crc=False) + commit(4), 5),
    ],
    ids=["whole", "torn", "torn in the head", "zeros", "wrong CRC", "wrong CRC before", "nonsense", "wrong size"],
)
def test_what_stands_at_the_end_of_a_log(tmp_path: Path, tail: bytes, expected: int) -> None:
    assert end(tmp_path, {0: commit(0) + commit(1) + commit(2) + tail}) == expected


def test_a_file_that_was_just_rolled_ends_where_it_begins(tmp_path: Path) -> None:
    assert end(tmp_path, {0: commit(0), 9: b""}) == 9


def test_a_batch_ends_behind_the_offsets_that_a_cleaner_took(tmp_path: Path) -> None:
    assert end(tmp_path, {0: batch(record(0, b"k", b"v"), 1, last_delta=6)}) == 7


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    read: list[int] = []
    original = FrozenFile.read

    def counted(self: FrozenFile, size: int | None = -1, /) -> bytes:
        data = original(self, size)
        read.append(len(data))
        return data

    monkeypatch.setattr(FrozenFile, "read", counted)
    return read


def large(folder: Path, record_size: int, count: int) -> tuple[Path, list[tuple[int, int]]]:
    """A log of one file, and the position of each of its batches by its offset."""
    batches = [batch(record(0, b"k", b"v" * record_size), 1, offset=offset) for offset in range(count)]
    positions, at = [], 0
    for offset, each in enumerate(batches):
        positions.append((offset, at))
        at += len(each)
    write_log(folder, {0: b"".join(batches)}, "t-0")
    return folder / "t-0" / f"{0:020}.index", positions


def test_of_large_batches_only_heads_are_read(tmp_path: Path, bytes_read: list[int]) -> None:
    large(tmp_path, 400_000, 20)
    (found,), _ = ends(tmp_path)
    assert found.log_end_offset == 20
    assert sum(bytes_read) < 800_000


@pytest.mark.parametrize("preallocated", [False, True])
def test_the_offset_index_says_where_to_start(tmp_path: Path, bytes_read: list[int], preallocated: bool) -> None:
    index, positions = large(tmp_path, 1000, 3000)
    index.write_bytes(b"".join(pack(">ii", *each) for each in positions[4::4]) + bytes(800_000 * preallocated))
    (found,), _ = ends(tmp_path)
    assert found.log_end_offset == 3000
    assert sum(bytes_read) < 50_000


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 64, b"\xff" * 64, pack(">ii", 5, 1 << 30), pack(">ii", 5, 77), pack(">ii", 400, 1083), b"abc"],
    ids=["empty", "zeros", "ones", "after the end", "no batch", "another offset", "short"],
)
def test_an_index_that_is_wrong_is_of_no_matter(tmp_path: Path, content: bytes) -> None:
    index, _ = large(tmp_path, 1000, 50)
    index.write_bytes(content)
    (found,), findings = ends(tmp_path)
    assert (found.log_end_offset, findings) == (50, [])


def test_high_watermarks_are_those_of_the_checkpoint_and_as_old(tmp_path: Path) -> None:
    write_log(tmp_path, {5: commit(5) + commit(6)}, "t-0")
    write_log(tmp_path, {0: commit(0)}, "t-1")
    checkpoint = tmp_path / "replication-offset-checkpoint"
    checkpoint.write_text("0\n1\nt 0 6\n")
    os.utime(checkpoint, ns=(0, 1_700_000_000_123_000_000))
    (first, second), findings = ends(tmp_path)
    assert findings == []
    assert (first.log_start_offset, first.high_watermark, first.log_end_offset) == (5, 6, 7)
    assert first.high_watermark_timestamp_ms == 1_700_000_000_123
    assert (second.high_watermark, second.high_watermark_timestamp_ms) == (None, None)


@pytest.mark.parametrize(("kind", "is_told"), [("tar", True), ("gztar", True), ("zip", False)])
def test_archives_tell_what_directories_tell(tmp_path: Path, kind: str, is_told: bool) -> None:
    folder = tmp_path / "data"
    shutil.copytree(TOPICS / "kafka-4.3" / "segments", folder)
    marks = folder / "replication-offset-checkpoint"
    marks.write_text("0\n1\n__transaction_state 1 43\n")
    os.utime(marks, ns=(0, 1_700_000_000_000_000_000))
    archive = Path(shutil.make_archive(str(tmp_path / "backup"), kind, folder))
    found, findings = ends(archive)
    assert findings == []
    expected, _ = ends(folder)
    assert expected[-1].high_watermark_timestamp_ms == 1_700_000_000_000
    assert [replace(each, place=None) for each in found] == [
        replace(each, place=None, high_watermark_timestamp_ms=each.high_watermark_timestamp_ms if is_told else None)
        for each in expected
    ]


def test_a_checkpoint_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0)}, "t-0")
    (tmp_path / "replication-offset-checkpoint").write_text("7\n")
    (found,), findings = ends(tmp_path)
    assert (found.high_watermark, found.log_end_offset) == (None, 1)
    assert findings == [
        f"{tmp_path}/replication-offset-checkpoint: not an offset checkpoint of version 0: line 1 is '7' "
        "(high watermarks are null)"
    ]


def test_single_files_tell_the_end_only_where_they_are_the_last(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0), 1: commit(1), 2: commit(2)}, "t-0")
    files = [tmp_path / "t-0" / f"{base:020}.log" for base in range(3)]
    told = [(each.log_start_offset, each.log_end_offset) for file in files for each in ends(file)[0]]
    assert told == [(None, None), (None, None), (None, 3)]
    (whole,), _ = ends(*files)
    assert (whole.log_start_offset, whole.log_end_offset) == (0, 3)


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0)}, "t-0")
    (tmp_path / "t-0" / f"{7:020}.log").mkdir()
    (found,), findings = ends(tmp_path)
    assert (found.log_start_offset, found.log_end_offset) == (0, None)
    assert findings == [
        f"{tmp_path}/t-0/{7:020}.log: this is a directory, but only regular files are read (it is unknown where the "
        "log ends)"
    ]


# -- the table ---------------------------------------------------------------------------------------------------------


def test_the_table_of_a_directory() -> None:
    result = read_table("log_ends", TOPICS / "kafka-4.3" / "segments")
    assert result.table.num_rows == 11
    assert result.counts.partitions == 11
    (row,) = (
        each for each in result.table.to_pylist() if (each["topic"], each["partition"]) == ("__share_group_state", 1)
    )
    assert row["log_start_offset"] == 11
    one = read_table("log_ends", TOPICS / "kafka-4.3" / "segments", topic="__transaction_state", columns=["topic"])
    assert one.table.to_pydict() == {"topic": ["__transaction_state"] * 2}
    with pytest.raises(LogSourceError, match="there is no log of topic x here, only logs of __consumer_offsets"):
        read_table("log_ends", TOPICS / "kafka-4.3" / "segments", topic="x")


def test_rows_know_where_they_end_and_nothing_else() -> None:
    rows = pa.Table.from_pylist(
        [
            {"topic": "t", "partition": 1, "offset": 8, "key": b"k", "value": b"v"},
            {"topic": "t", "partition": 1, "offset": 6, "key": b"k", "value": b"v"},
            {"topic": "s", "partition": 0, "offset": 0, "key": b"k", "value": b"v"},
        ],
        RAW_SCHEMA,
    )
    found = read_table("log_ends", rows).table.to_pylist()
    assert [(row["topic"], row["partition"], row["log_end_offset"]) for row in found] == [("s", 0, 1), ("t", 1, 9)]
    assert {row[name] for row in found for name in ("log_start_offset", "high_watermark", "topic_id", "place")} == {
        None
    }


def test_saved_rows_and_snapshots_tell_what_they_know(tmp_path: Path) -> None:
    segments = TOPICS / "kafka-4.3" / "segments"
    logs = [log for topic in Segments(segments).topics() for log in Segments(segments).partitions(topic)]
    rows = [row for log in logs for row in log.batches(Context(), RAW_SCHEMA.names)]
    pq.write_table(pa.Table.from_batches(rows), tmp_path / "rows.parquet")
    take_snapshot(Segments(segments), tmp_path / "snapshot")

    def told(source: Path, *names: str) -> list[tuple[Any, ...]]:
        table = read_table("log_ends", source).table
        return [*zip(*(table[name].to_pylist() for name in ("topic", "partition", *names)), strict=True)]

    known = ("log_end_offset", "log_start_offset", "topic_id")
    expected = told(segments, *known)
    # The last record of one log is a control record that is not a row.
    ends = [(log.topic, log.partition, (end_of_rows(rows, log.topic, log.partition))) for log in logs]
    assert told(tmp_path / "rows.parquet", "log_end_offset") == ends
    found = told(tmp_path / "snapshot", *known)
    assert [row[:3] for row in found] == ends
    assert [row[3:] for row in found] == [row[3:] for row in expected]
    assert told(tmp_path / "rows.parquet", "log_start_offset", "topic_id") == [
        (*row[:2], None, None) for row in expected
    ]


def end_of_rows(batches: list[pa.RecordBatch], topic: str, partition: int) -> int:
    places = ((each["topic"][0].as_py(), each["partition"][0].as_py(), each["offset"][-1].as_py()) for each in batches)
    return int(max(last for *place, last in places if place == [topic, partition])) + 1


def test_it_is_not_made_of_records() -> None:
    asked: list[tuple[dict[str, Any], str]] = [
        ({"group": "g"}, "log_ends has no column that names a group: leave out group"),
        ({"as_of": 5}, "log_ends shows logs as they are now: leave out as_of"),
    ]
    for options, message in asked:
        with pytest.raises(ValueError, match=message):
            read_table("log_ends", TOPICS / "kafka-4.3" / "segments", **options)
