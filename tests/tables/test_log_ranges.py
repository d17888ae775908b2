"""Parts of log partitions: together they have all rows, and each has the outcomes of its transactions."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.log.reading.segment_files import find_logs, read_partition
from kafka_records_engine.sources import Context, LogPartition
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_tables import TABLES
from kafka_records_tables.engines.checked_request import request_of
from kafka_records_tables.engines.log_ranges import LogRange, parts_of
from kafka_records_tables.engines.raw_outcomes import raw_rows, raw_rows_of
from kafka_records_tables.engines.request import TableRequest
from kafka_records_tables.engines.spark_tasks import DamageFound
from kafka_records_tables.engines.spread_tasks import spread
from tests.log.logs import changed, commit, marker, write_log
from tools.segments.plan import Plan
from tools.write_segments import write_segments

OFFSETS = "__consumer_offsets"


def raw(log: LogPartition) -> pa.Table:
    """The raw rows with outcomes, in the order of the log."""
    context = Context(log.topic, log.partition)
    batches = list(raw_rows_of(log, context))
    return pa.Table.from_batches(batches, RAW_SCHEMA).sort_by("offset")


def cut_at(log: LogPartition, cuts: Sequence[int]) -> list[LogPartition]:
    return [LogRange(log, start, end, 1) for start, end in zip([None, *cuts], [*cuts, None], strict=True)]


def joined(parts: Sequence[LogPartition]) -> pa.Table:
    return pa.concat_tables([raw(part) for part in parts]).sort_by("offset")


@pytest.fixture(scope="module")
def with_transactions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of several files in which a transaction is open nearly everywhere."""
    segments = tmp_path_factory.mktemp("ranges")
    plan = Plan(partitions=2, records=4000, keys=300, transactions=0.4, aborted=0.3, segment_bytes=60_000)
    write_segments(segments, plan, processes=1)
    return segments


def test_rows_read_once_are_those_of_the_reader_that_reads_twice(topics_dir: Path, with_transactions: Path) -> None:
    words = set()
    for place in (*topics_dir.glob("*/segments"), with_transactions):
        for log in find_logs([place]):
            expected = pa.Table.from_batches(read_partition(log), RAW_SCHEMA)
            (found,) = (each for each in Segments(place).partitions(log.topic) if each.partition == log.partition)
            assert raw(found).equals(expected)
            words |= set(expected["transaction"].to_pylist())
    assert words >= {"none", "committed", "aborted"}


def test_parts_are_the_whole(topics_dir: Path, with_transactions: Path) -> None:
    chance = random.Random(7)
    compared = 0
    for place in (*topics_dir.glob("*/segments"), with_transactions):
        source = Segments(place)
        for log in (log for topic in source.topics() for log in source.partitions(topic)):
            whole = raw(log)
            if whole.num_rows < 2:
                continue
            offsets = range(whole["offset"][0].as_py() + 1, whole["offset"][-1].as_py() + 1)
            cuts = sorted(set(chance.choices(offsets, k=6)))
            assert joined(cut_at(log, cuts)).equals(whole), (log, cuts)
            compared += whole.num_rows
    assert compared > 5000


@pytest.mark.parametrize("size", [1000, 20_000, 60_000, 1_000_000])
def test_cuts_lie_where_files_or_batches_begin(with_transactions: Path, size: int) -> None:
    log, _ = Segments(with_transactions).partitions(OFFSETS)
    starts = {each.as_py() for each in raw(log)["base_offset"]}
    cuts = log.cuts(size)
    assert set(cuts) <= starts
    assert cuts == sorted(set(cuts))
    assert log.size // size // 3 <= len(cuts) <= 2 * log.size // size
    assert bool(cuts) == (size < log.size)
    parts = parts_of(log, size)
    assert len(parts) == len(cuts) + 1
    assert joined(parts).equals(raw(log))


def answer(request: TableRequest, log: LogPartition) -> Iterator[pa.RecordBatch]:
    return request.answer(log, request.context(log.topic, log.partition))


def test_a_table_of_facts_has_the_same_rows_in_parts(topics_dir: Path, with_transactions: Path) -> None:
    facts = [table for table in TABLES.values() if table.helper == "facts"]
    assert facts
    compared = 0
    for table in facts:
        request = request_of(table)
        for place in (*topics_dir.glob("*/segments"), with_transactions):
            source = Segments(place)
            if table.topic not in source.topics():
                continue
            for log in source.partitions(table.topic):
                whole, parts = (
                    pa.Table.from_batches([rows for each in logs for rows in answer(request, each)], table.schema)
                    for logs in ([log], parts_of(log, max(log.size // 5, 1)))
                )
                assert parts.sort_by("log_offset").equals(whole.sort_by("log_offset")), (table.name, log)
                compared += whole.num_rows
    assert compared > 2000


def test_damage_between_a_record_and_its_marker_is_seen_across_a_cut(tmp_path: Path) -> None:
    broken = changed(commit(3), 66, b"\xff", crc=False)
    data = commit(0) + commit(1, 7) + commit(2, 8) + broken + marker(4, 7, 1) + commit(5) + marker(6, 8, 0)
    write_log(tmp_path, {0: data}, "t-0")
    (log,) = Segments(tmp_path).partitions("t")
    words = {row["offset"]: row["transaction"] for row in raw(log).to_pylist()}
    assert words == {0: "none", 1: "unknown", 2: "unknown", 4: "committed", 5: "none", 6: "aborted"}
    for at in range(1, 7):
        assert joined(cut_at(log, [at])).equals(raw(log)), at


def test_damage_ends_a_task_or_stands_in_its_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_log(tmp_path, {0: commit(0) + changed(commit(1), 66, b"\xff", crc=False) + commit(2)}, "t-0")
    (log,) = Segments(tmp_path).partitions("t")
    with pytest.raises(DamageFound, match=r'batch at offset 1: .*; mode "PERMISSIVE" continues, and standard error of'):
        list(raw_rows(log, is_failfast=True))
    offsets = [row["offset"] for batch in raw_rows(log, is_failfast=False) for row in batch.to_pylist()]
    assert offsets == [0, 2]
    (said,) = caplog.messages
    assert "batch at offset 1: " in said


@dataclass(frozen=True)
class Counting:
    """A log partition that records how far it was read."""

    log: LogPartition
    furthest: list[int]

    topic, partition, size, in_memory = "t", 0, 1, False

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        for batch in self.log.batches(context, columns, start, end):
            for row in range(batch.num_rows):
                self.furthest.append(batch.column("offset")[row].as_py())
                yield batch.slice(row, 1)


def test_who_reads_a_part_reads_on_no_further_than_the_last_marker_that_is_missing(tmp_path: Path) -> None:
    data = commit(0, 7) + commit(1, 8) + marker(2, 8, 1) + commit(3) + marker(4, 7, 0)
    data += b"".join(map(commit, range(5, 40)))
    write_log(tmp_path, {0: data}, "t-0")
    (log,) = Segments(tmp_path).partitions("t")
    for start, end, furthest, words in (
        (0, 2, 4, ["aborted", "committed"]),
        (1, 2, 2, ["committed"]),
        (0, 5, 4, ["aborted", "committed", "committed", "none", "aborted"]),
        (5, 20, 19, ["none"] * 15),
    ):
        counting = Counting(log, [])
        part = LogRange(counting, start, end, 1)
        rows = raw(part)
        assert rows["transaction"].to_pylist()[: end - start] == words
        assert max(counting.furthest) == furthest
        alone = raw(replace(part, looks_behind=False))
        assert alone["offset"].to_pylist() == list(range(start, end))
        assert set(alone["transaction"].to_pylist()) - set(words) <= {"open"}


def test_what_cannot_be_cut_stays_whole(with_transactions: Path, tmp_path: Path) -> None:
    log, _ = Segments(with_transactions).partitions(OFFSETS)
    (rows,) = ArrowRows(raw(log)).partitions(OFFSETS)
    assert parts_of(rows, 1) == [rows]
    folder = write_log(tmp_path, {0: commit(0) + commit(1)}, "t-0")
    (tmp_path / "t-0" / "no offset.log").write_bytes(commit(2) + commit(3))
    named = Segments([tmp_path / "t-0" / "no offset.log"], "t").partitions("t")
    assert [log.cuts(10) for log in named] == [[]], folder


def test_neighbouring_tasks_ask_different_brokers() -> None:
    @dataclass(frozen=True)
    class Led:
        size: int
        leader: int
        topic: str = "t"
        partition: int = 0

    logs = [Led(9, 1), Led(8, 1), Led(7, 1), Led(6, 2), Led(5, 2), Led(1, 3)]
    found = [(log.size, log.leader) for log in spread(logs)]  # type: ignore[arg-type, attr-defined]
    assert found == [(9, 1), (6, 2), (1, 3), (8, 1), (5, 2), (7, 1)]
