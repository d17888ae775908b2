"""The files of logs, what holds back cleaners, and what coordinators must load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.log.reading.segment_files import LogRecord, find_logs, read_log
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_tables import read_table
from tests.log.logs import CAPTURES, TOPICS, batch, commit, is_row, marker, record, write_log
from tests.log.test_tails import unpacked
from tests.tables.consumed import Brokers, Commit, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
OFFSETS = "__consumer_offsets"
OF_FILES = ("segments", "bytes", "cleaner_offset", "cleanable_offset", "dirty_bytes", "dirty_percent", "held_by")


def rows_of(source: Any, **options: Any) -> list[Row]:
    rows: list[Row] = read_table("log_files", source, **options).table.to_pylist()
    return rows


def left_by_a_cleaner(records: list[LogRecord]) -> Iterator[tuple[tuple[Any, ...], LogRecord]]:
    """By offset, each record that is not of an aborted transaction, and whether a later record with its key replaces
    it."""
    in_order = sorted(records, key=lambda each: each.record.offset)
    for place, each in enumerate(in_order):
        if each.control is None:
            producer = each.batch.producer_id if each.batch.is_transactional else None
            of_producer = [later for later in in_order[place:] if later.batch.producer_id == producer]
            ends = [later.control for later in of_producer if later.control is not None]
            outcome = "commit" if producer is None else next(iter(ends), None)
            if outcome != "abort":
                yield (each.record.key, None if outcome else producer), each


@pytest.mark.parametrize("capture", CAPTURES)
def test_captured_topics(capture: str) -> None:
    """Compared with all records, one by one."""
    folder = TOPICS / capture / "segments"
    found = {(row["topic"], row["partition"]): row for row in rows_of(folder)}
    logs = find_logs([folder])
    assert list(found) == [(log.topic, log.partition) for log in logs]
    for log in logs:
        row = found[log.topic, log.partition]
        records = [each for each in read_log(log) if is_row(each) and each.record.offset >= row["log_start_offset"]]
        written = [each for each in records if each.control is None]
        last = {kept: each.record.value for kept, each in left_by_a_cleaner(records)}
        files = sorted(Path(log.folder).glob("*.log"))
        assert (row["segments"], row["bytes"]) == (len(files), sum(file.stat().st_size for file in files))
        assert row["records_to_load"] == len(records)
        assert row["superseded"] == len(written) - len(last)
        percent = 100 * (len(written) - len(last)) // len(written) if written else None
        assert row["superseded_percent"] == percent
        assert row["tombstones"] == sum(value is None for value in last.values())


def commits(first: int, count: int) -> bytes:
    """The same commit, repeated."""
    key, value = Commit("g", "t", 0, 5).record
    return b"".join(batch(record(0, key, value), 1, offset=first + n) for n in range(count))


def cluster(folder: Path, files: dict[int, bytes], cleaned: int | None = None, topic: str = OFFSETS) -> Row:
    write_log(folder, files, f"{topic}-3")
    if cleaned is not None:
        (folder / "cleaner-offset-checkpoint").write_text(f"0\n1\n{topic} 3 {cleaned}\n")
    (row,) = rows_of(folder)
    return row


SIZE = len(commits(0, 1))


@pytest.mark.parametrize(
    ("files", "cleaned", "expected"),
    [
        ({0: 10}, None, ("active_segment", 0, 0, None)),
        ({0: 10, 10: 10, 20: 5}, None, ("cleaner", 20, 20, 100)),
        # The share of dirty bytes must be above one half.
        ({0: 10, 10: 10, 20: 5}, 10, ("dirty_ratio", 20, 10, 50)),
        ({0: 10, 10: 11, 21: 5}, 10, ("cleaner", 21, 11, 52)),
        ({0: 30, 30: 10, 40: 5}, 30, ("dirty_ratio", 40, 10, 25)),
        ({0: 30, 30: 10, 40: 5}, 40, ("active_segment", 40, 0, 0)),
        # The log begins after the place up to which it was cleaned once.
        ({30: 10, 40: 5}, 7, ("cleaner", 40, 10, 100)),
    ],
)
def test_what_holds_a_cleaner_back(
    tmp_path: Path, files: dict[int, int], cleaned: int | None, expected: tuple[str, int, int, int | None]
) -> None:
    row = cluster(tmp_path, {first: commits(first, count) for first, count in files.items()}, cleaned)
    held_by, cleanable, dirty, percent = expected
    assert (row["held_by"], row["cleanable_offset"]) == (held_by, cleanable)
    assert (row["dirty_bytes"], row["dirty_percent"]) == (dirty * SIZE, percent)
    assert (row["cleaner_offset"], row["open_transaction_offset"]) == (cleaned, None)


def test_an_open_transaction_holds_a_cleaner_back(tmp_path: Path) -> None:
    pending = batch(record(0, *Commit("h", "t", 0, 5).record), 1, offset=12, attributes=0x10, producer_id=7)
    files = {0: commits(0, 10), 10: commits(10, 2) + pending, 13: commits(13, 9), 22: commits(22, 1)}
    row = cluster(tmp_path / "open", files, 10)
    assert (row["held_by"], row["cleanable_offset"], row["open_transaction_offset"]) == ("open_transaction", 12, 12)
    # By whole files: the one with the transaction counts up to its end.
    assert row["dirty_bytes"] == 2 * SIZE + len(pending)
    row = cluster(tmp_path / "ended", files | {22: marker(22, 7, 0)}, 10)
    assert (row["held_by"], row["cleanable_offset"], row["open_transaction_offset"]) == ("cleaner", 22, None)
    assert (row["records_to_load"], row["superseded"]) == (23, 21)


def in_transaction(offset: int, group: str, producer: int = 7) -> bytes:
    content = record(0, *Commit(group, "t", 0, 5).record)
    return batch(content, 1, offset=offset, attributes=0x10, producer_id=producer)


@pytest.mark.parametrize(
    ("kind", "superseded"),
    [
        # The last record of g in the transaction remains, and the record of h.
        (1, 2),
        # All three of the transaction are dropped, and the commit before them stays.
        (0, 3),
        # The commit remains, and the last record of each key in the transaction.
        (None, 1),
    ],
)
def test_what_a_cleaner_drops_of_transactions(tmp_path: Path, kind: int | None, superseded: int) -> None:
    content = commits(0, 1) + in_transaction(1, "g") + in_transaction(2, "h") + in_transaction(3, "g")
    content += b"" if kind is None else marker(4, 7, kind)
    row = cluster(tmp_path, {0: content})
    assert row["superseded"] == superseded


def test_an_aborted_record_replaces_none(tmp_path: Path) -> None:
    """The record that was committed stays, and only that of the aborted transaction is dropped."""
    key, _ = Commit("g", "t", 0, 5).record
    ends = batch(record(0, key, None), 1, offset=1, attributes=0x10, producer_id=7)
    row = cluster(tmp_path / "aborted", {0: commits(0, 1) + ends + marker(2, 7, 0)})
    assert (row["records_to_load"], row["superseded"], row["tombstones"]) == (3, 1, 0)
    row = cluster(tmp_path / "committed", {0: commits(0, 1) + ends + marker(2, 7, 1)})
    assert (row["records_to_load"], row["superseded"], row["tombstones"]) == (3, 1, 1)
    row = cluster(tmp_path / "alone", {0: ends + marker(2, 7, 0)})
    assert (row["records_to_load"], row["superseded"], row["tombstones"]) == (2, 1, 0)


def test_an_open_transaction_in_the_newest_file_holds_nothing_back(tmp_path: Path) -> None:
    row = cluster(tmp_path, {0: commits(0, 10), 10: commit(10, 7)}, 10)
    assert (row["held_by"], row["cleanable_offset"], row["open_transaction_offset"]) == ("active_segment", 10, 10)


def test_topics_that_no_cleaner_compacts(tmp_path: Path) -> None:
    row = cluster(tmp_path, {0: commit(0), 1: commit(1)}, topic="orders")
    assert {row[name] for name in OF_FILES[2:]} == {None}
    assert (row["segments"], row["records_to_load"], row["superseded"]) == (2, None, None)
    # A user's compacted topic is recognized by its entry in the file.
    row = cluster(tmp_path, {0: commit(0), 1: commit(1)}, 0, topic="orders")
    assert (row["held_by"], row["cleaner_offset"], row["records_to_load"]) == ("cleaner", 0, None)


def test_the_disk_of_a_broker(tmp_path: Path) -> None:
    found = {(row["topic"], row["partition"]): row for row in rows_of(unpacked("disk.tar.zst", tmp_path))}
    assert found[OFFSETS, 0]["open_transaction_offset"] == 64
    assert [found[OFFSETS, number]["records_to_load"] for number in range(3)] == [65, 45, 52]
    assert found["timed.plain", 0]["segments"] == 2


def test_sources_without_files_say_so(tmp_path: Path) -> None:
    segments = TOPICS / "kafka-4.3" / "segments"
    logs = [log for topic in Segments(segments).topics() for log in Segments(segments).partitions(topic)]
    rows = pa.Table.from_batches([row for log in logs for row in log.batches(Context(), RAW_SCHEMA.names)])
    take_snapshot(Segments(segments), tmp_path / "snapshot")
    expected = rows_of(segments)
    for source in (rows, tmp_path / "snapshot"):
        result = read_table("log_files", source)
        (note,) = [str(each) for each in result.findings if each.reason == "UnmadeChecks"]
        assert "this source has no files of logs" in note
        assert "read the data directory of a broker for them" in note
        found = result.table.to_pylist()
        assert {row[name] for row in found for name in OF_FILES} == {None}
        names = ("topic", "partition", "records_to_load", "superseded", "tombstones")
        assert [[row[name] for name in names] for row in found] == [[row[name] for name in names] for row in expected]


def test_brokers_tell_records_and_no_files() -> None:
    source = Brokers([Commit("g", "orders", 0, number) for number in range(4)], {(OFFSETS, 0): told(0, 4)})
    result = read_table("log_files", source)
    (row,) = result.table.to_pylist()
    assert (row["topic"], row["records_to_load"], row["superseded"], row["segments"]) == (OFFSETS, 4, 3, None)
    assert [each.reason for each in result.findings] == ["UnmadeChecks"]


def test_a_checkpoint_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commits(0, 3)})
    (tmp_path / "cleaner-offset-checkpoint").write_text("1\nx\n")
    result = read_table("log_files", tmp_path)
    (finding,) = result.findings
    assert str(finding).endswith("not an offset checkpoint of version 0: line 1 is '1' (cleaner_offset is null)")
    assert result.table["cleaner_offset"].to_pylist() == [None]


@pytest.mark.spark
def test_both_engines_say_the_same(spark: SparkSession) -> None:
    segments = TOPICS / "kafka-4.3" / "segments"
    assert rows_of(segments, spark=spark) == rows_of(segments)
