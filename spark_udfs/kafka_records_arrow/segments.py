"""Reading log segment files.

    for log in find_logs([Path("/data")], topic="__consumer_offsets"):
        for rows in read_partition(log, on_problem=print):
            ...

One log partition with all its files is the unit of work, because the marker that ends a transaction may stand in a
later file. Each partition is read twice: once for its markers (a hop from head to head unless it has transactions),
once for its records. Memory holds a chunk of a file and one block of rows.

What is wrong with a file never raises and never hides what precedes it: it is handed to `on_problem` as a
SegmentProblem when reading gets there, counted and printable, and reading goes on with the next batch or file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from kafka_records_arrow.batches import (
    Batch,
    BrokenRecordsError,
    ControlMarker,
    Record,
    computed_crc,
    read_batch,
    read_marker,
    read_records,
    record_bytes,
)
from kafka_records_arrow.blocks import Block, BlockReader
from kafka_records_arrow.compression import CODECS
from kafka_records_arrow.discovery import LogPartition, SegmentFile, find_logs
from kafka_records_arrow.findings import broken, control_problem, disorder, wrong_crc
from kafka_records_arrow.heads import Heads
from kafka_records_arrow.problems import LogSourceError, OnProblem, SegmentProblem
from kafka_records_arrow.rows import RAW_SCHEMA, rebatched, record_batch
from kafka_records_arrow.scanning import Chunk, read_chunks
from kafka_records_arrow.transactions import Transaction, TransactionIndex, index_transactions

__all__ = [
    "BATCH_ROWS",
    "RAW_SCHEMA",
    "LogBatch",
    "LogPartition",
    "LogRecord",
    "LogSourceError",
    "SegmentFile",
    "SegmentProblem",
    "SegmentStats",
    "find_logs",
    "read_batches",
    "read_log",
    "read_partition",
    "scan",
]

BATCH_ROWS: Final = 10_000


def _ignore(problem: SegmentProblem) -> None:
    """For callers that ask for rows only."""


def read_partition(
    log: LogPartition,
    *,
    below_log_start: bool = False,
    on_problem: OnProblem = _ignore,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[Any]:
    """The records of a log partition as `pyarrow.RecordBatch`es of RAW_SCHEMA, in the order of the log.

    Control records that end a transaction are rows too (`control` is commit or abort, and `transaction` says the
    same). Records below a raised log start are left out unless `below_log_start`. A record batch has `batch_rows`
    rows, fewer at the end and where records are very large.
    """
    log_start = 0 if below_log_start else log.log_start
    blocks = (block for _, block in _blocks(log, on_problem, _no_stats))
    return rebatched((record_batch(block, log.topic, log.partition, log_start) for block in blocks), batch_rows)


def _blocks(
    log: LogPartition, on_problem: OnProblem, on_chunk: Callable[[SegmentFile, Chunk, Heads], None]
) -> Iterator[tuple[SegmentFile, Block]]:
    for problem in log.problems:
        on_problem(problem)
    index = index_transactions(log)
    overlap = _Overlap(on_problem)
    for segment, is_last in _with_place(log):
        reader = BlockReader(segment.path, index, on_problem)
        for chunk in read_chunks(segment.path, segment.base_offset, is_last, on_problem):
            heads = Heads(chunk)
            overlap.see(segment, chunk, heads)
            on_chunk(segment, chunk, heads)
            for block in reader.blocks(chunk, heads):
                yield segment, block


def _no_stats(segment: SegmentFile, chunk: Chunk, heads: Heads) -> None:
    """For readers that count nothing."""


def _with_place(log: LogPartition) -> Iterator[tuple[SegmentFile, bool]]:
    """Each file, and whether the log ends with it."""
    for segment in log.segments:
        yield segment, segment is log.segments[-1] and not log.ends_early


class _Overlap:
    """Notes files whose offsets do not follow on those of the file before them."""

    def __init__(self, report: OnProblem) -> None:
        self._report = report
        self._path = ""
        self._path_before = ""
        self._last = -1

    def see(self, segment: SegmentFile, chunk: Chunk, heads: Heads) -> None:
        """`chunk` is the next one of `segment`."""
        valid = np.flatnonzero(heads.is_valid)
        if not valid.size:
            return
        if segment.path != self._path:
            first = int(heads.offset[valid[0]])
            self._path_before, self._path = self._path, segment.path
            if first <= self._last:
                what = f"its offsets start at {first}, but {self._path_before} goes up to {self._last}"
                self._report(
                    SegmentProblem(segment.path, None, None, what, "records of both files are delivered", "note")
                )
        self._last = max(self._last, int(heads.last_offset[valid].max()))


# -- one record at a time ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogBatch:
    """A batch (magic 2), a message or a wrapper of messages (magic 0 and 1) with the records that could be read."""

    file: str
    batch: Batch
    records: tuple[Record, ...]
    transaction: Transaction
    markers: tuple[ControlMarker | None, ...] = ()
    """For a control batch what each record says; None for one that does not parse."""

    @property
    def base_offset(self) -> int:
        """The offset of the first record; for magic 2 the one of the batch, which it keeps when that is cleaned."""
        return self.records[0].offset if self.batch.magic < 2 and self.records else self.batch.offset


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record with its coordinates."""

    topic: str
    partition: int
    file: str
    batch: Batch
    record: Record
    transaction: Transaction
    marker: ControlMarker | None
    """What a control record says; None for ordinary records and for one that does not parse."""

    @property
    def control(self) -> str | None:
        """commit or abort for the records that end a transaction."""
        return self.marker.control if self.marker else None


def read_batches(log: LogPartition, *, on_problem: OnProblem = _ignore) -> Iterator[LogBatch]:
    """Every batch of a log partition whose CRC is right, empty ones included, in the order of the log.

    The plain counterpart of `read_partition`: same records, same problems, one Python object each. It also keeps
    control records that end no transaction.
    """
    for problem in log.problems:
        on_problem(problem)
    index = index_transactions(log)
    overlap = _Overlap(on_problem)
    for segment, is_last in _with_place(log):
        before = -1
        for chunk in read_chunks(segment.path, segment.base_offset, is_last, on_problem):
            overlap.see(segment, chunk, Heads(chunk))
            for start, size in zip(chunk.entries.tolist(), chunk.sizes.tolist(), strict=True):
                entry = chunk.data[start : start + size]
                batch = read_batch(entry, 0, chunk.position + start)
                computed = computed_crc(batch.magic, entry)
                if computed != batch.crc:
                    on_problem(wrong_crc(segment.path, batch, computed))
                    continue
                if batch.offset <= before:
                    on_problem(disorder(segment.path, batch, before))
                before = batch.last_offset
                yield _log_batch(segment.path, batch, entry, index, on_problem)


def read_log(
    log: LogPartition, *, below_log_start: bool = True, on_problem: OnProblem = _ignore
) -> Iterator[LogRecord]:
    """Every record of a log partition as an object; control records that end no transaction included."""
    for each in read_batches(log, on_problem=on_problem):
        markers = each.markers or (None,) * len(each.records)
        for record, marker in zip(each.records, markers, strict=True):
            if below_log_start or record.offset >= log.log_start:
                yield LogRecord(log.topic, log.partition, each.file, each.batch, record, each.transaction, marker)


def _log_batch(path: str, batch: Batch, entry: bytes, index: TransactionIndex, on_problem: OnProblem) -> LogBatch:
    content = record_bytes(batch, entry)
    failure = content.failure
    records = []
    left_out = 0
    markers: list[ControlMarker | None] = []
    try:
        for record in read_records(batch, content.data):
            records.append(record)
            if batch.is_control:
                problem = control_problem(path, batch, record.key, record.value)
                if problem is not None:
                    on_problem(problem)
                    left_out += 1
                damaged = problem is not None and problem.severity == "damage"
                markers.append(None if damaged else read_marker(record.key, record.value))
    except BrokenRecordsError as error:
        failure = failure or error.detail
    if failure is not None:
        on_problem(broken(path, batch, failure, len(records) - left_out, left_out))
    transaction: Transaction = "none"
    if batch.is_control:
        ends = [marker.control for marker in markers if marker is not None and marker.control]
        if ends:
            transaction = "committed" if ends[-1] == "commit" else "aborted"
    elif batch.is_transactional:
        transaction = index.state(batch.producer_id, batch.offset)
    return LogBatch(path, batch, tuple(records), transaction, tuple(markers))


# -- counts ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SegmentStats:
    """What one file holds. Batches with a wrong CRC are not counted among its batches, but in its problems."""

    file: str
    base_offset: int | None
    bytes: int = 0
    """Bytes of whole entries and of what is reported behind them: the size of the file."""
    batches: int = 0
    records: int = 0
    """Records that can be read, those of control batches included."""
    control_batches: int = 0
    transactional_batches: int = 0
    """Control batches not counted."""
    first_offset: int | None = None
    """Base offset of the first record."""
    last_offset: int | None = None
    """Last offset of the last batch, whose record may be gone."""
    missing_offsets: int = 0
    """Offsets without a record from the end of the file before (or the start of the log) to `last_offset`: what a
    cleaner took away, and what cannot be read."""
    codecs: Counter[str] = field(default_factory=Counter)
    """Batches per codec."""
    magics: Counter[int] = field(default_factory=Counter)
    """Batches per message format."""
    problems: list[SegmentProblem] = field(default_factory=list)


def scan(log: LogPartition) -> list[SegmentStats]:
    """Read all files of a log partition to their ends and count, one SegmentStats per file."""
    found = {segment.path: SegmentStats(segment.path, segment.base_offset) for segment in log.segments}
    others: list[SegmentProblem] = []

    def on_problem(problem: SegmentProblem) -> None:
        (found[problem.file].problems if problem.file in found else others).append(problem)

    def on_chunk(segment: SegmentFile, chunk: Chunk, heads: Heads) -> None:
        _count(found[segment.path], chunk, heads)

    for segment, block in _blocks(log, on_problem, on_chunk):
        found[segment.path].records += len(block)
        if len(block) and found[segment.path].first_offset is None:
            found[segment.path].first_offset = int(block.base_offset[block.rows.batch[0]])
    stats = list(found.values())
    expected = None
    for each in stats:
        expected = (
            (each.base_offset if each.base_offset is not None else each.first_offset) if expected is None else expected
        )
        if each.last_offset is not None and expected is not None:
            each.missing_offsets = max(each.last_offset + 1 - expected - each.records, 0)
            expected = each.last_offset + 1
        each.bytes += sum(problem.bytes for problem in each.problems)
    if stats:
        stats[0].problems[:0] = others
    return stats


def _count(stats: SegmentStats, chunk: Chunk, heads: Heads) -> None:
    valid = heads.is_valid
    count = int(valid.sum())
    stats.bytes += int(chunk.sizes[valid].sum())
    if not count:
        return
    stats.batches += count
    stats.control_batches += int((heads.is_control & valid).sum())
    stats.transactional_batches += int((heads.is_transactional & ~heads.is_control & valid).sum())
    for number, times in enumerate(np.bincount(heads.codec[valid]).tolist()):
        if times:
            stats.codecs[CODECS[number] if number < len(CODECS) else f"codec {number}"] += times
    for number, times in enumerate(np.bincount(heads.magic[valid]).tolist()):
        if times:
            stats.magics[number] += times
    last = int(heads.last_offset[valid].max())
    stats.last_offset = last if stats.last_offset is None else max(stats.last_offset, last)
