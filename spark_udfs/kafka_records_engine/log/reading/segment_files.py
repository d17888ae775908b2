"""Reads log segment files.

    for log in find_logs([Path("/data")], topic="__consumer_offsets"):
        for rows in read_partition(log, on_finding=print):
            ...

A reader handles one log partition with all its files, because the marker that ends a transaction may be in a later
file. It reads the log as of the time when reading starts (`_opening`), even if a broker continues to write. Files are
read once. With `settle`, each row contains the outcome of its transaction, so files are read twice, because a later
marker decides the outcome. One chunk of a file and one block of rows are in memory at a time.

Damage never raises an error, and never hides the records before it: readers report it with `on_finding` when they reach
it, and continue with the next batch or file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any, Final

import numpy as np

from kafka_records_engine.findings import Finding, OnFinding
from kafka_records_engine.log.files.discovery import METADATA_TOPIC, FoundLog, LogSourceError, find_logs
from kafka_records_engine.log.files.opened import OpenLog, SegmentFile
from kafka_records_engine.log.format.batches import BatchHead, BrokenRecordsError, RawRecord, read_records, record_bytes
from kafka_records_engine.log.format.compression import CODECS
from kafka_records_engine.log.format.control_records import ControlMarker, read_marker
from kafka_records_engine.log.reading._blocks import Block, BlockReader
from kafka_records_engine.log.reading._faults import ControlLeftOut, broken, control_trouble
from kafka_records_engine.log.reading._opening import open_log
from kafka_records_engine.log.reading._transaction_index import (
    Holes,
    OnHole,
    Transaction,
    TransactionIndex,
)
from kafka_records_engine.log.reading._vetting import Vetted, read_vetted
from kafka_records_engine.log.reading.raw_rows import PLACE_FIELDS, RAW_SCHEMA, RowColumns, rebatched

__all__ = [
    "BATCH_ROWS",
    "PLACE_FIELDS",
    "RAW_SCHEMA",
    "FoundLog",
    "LogRecord",
    "LogSourceError",
    "OpenLog",
    "SegmentCounts",
    "SegmentFile",
    "find_logs",
    "open_log",
    "read_log",
    "read_partition",
    "scan",
]

BATCH_ROWS: Final = 10_000
_MOST_AT_ONCE: Final = 10_000


def _ignore(finding: Finding) -> None:
    """Ignore a finding, for callers that only want rows."""


@contextmanager
def _opened(log: FoundLog | OpenLog) -> Iterator[OpenLog]:
    """The open log, which is closed at the end unless it was already open."""
    if isinstance(log, OpenLog):
        yield log
        return
    with open_log(log) as opened:
        yield opened


def read_partition(
    log: FoundLog | OpenLog,
    *,
    below_log_start: bool = False,
    on_finding: OnFinding = _ignore,
    batch_rows: int | None = BATCH_ROWS,
    settle: bool = True,
    columns: Sequence[str] | None = None,
    places: bool = False,
    on_hole: OnHole | None = None,
) -> Iterator[Any]:
    """The records of a log partition as `pyarrow.RecordBatch`es of RAW_SCHEMA, in the order of the log.

    Control records that end a transaction are rows too (`control` is `commit` or `abort`, in agreement with
    `transaction`), and so are those of the quorum in the metadata log (`QUORUM_CONTROLS`). Records below a raised log
    start are left out unless `below_log_start` is set. A record batch has `batch_rows` rows, or fewer at the end or if
    records are very large; None returns batches as they are read, a few megabytes each.

    With `settle`, every row contains the outcome of its transaction, and the files are read twice. Without it, they are
    read once, and rows of transactions are `pending`: the next control row with the same producer id contains the
    outcome. `on_hole` is called if that control row may be missing because something is unreadable or was not
    requested. It is called with the last offset before the gap, before any row after the gap is returned.

    `columns` names the requested columns, in this order. `places` adds the two columns PLACE_FIELDS: the file, and the
    byte in it at which the batch of the record starts. Raises ValueError for a column that does not exist.

    An OpenLog stays open and can be read again, with the same rows every time.
    """
    # Reject an invalid column now, not only when the first row is requested.
    RowColumns("", 0, 0, columns, None)

    def batches() -> Iterator[Any]:
        with _opened(log) as opened:
            numbers = {segment: number for number, segment in enumerate(opened.segments)}
            files = [segment.path for segment in opened.segments] if places else None
            log_start = 0 if below_log_start else opened.log_start
            made = RowColumns(opened.topic, opened.partition, log_start, columns, files)
            for segment, vetted, block in _blocks(opened, on_finding, _no_stats, settle, on_hole):
                yield made.record_batch(block, vetted.chunk, numbers[segment])

    return rebatched(batches(), batch_rows)


def _watched(
    log: OpenLog, on_finding: OnFinding, settle: bool, on_hole: OnHole | None
) -> tuple[TransactionIndex | None, Iterator[tuple[SegmentFile, Vetted]]]:
    """The transaction markers, if requested, and the chunks of all files."""
    for finding in log.findings:
        on_finding(finding)
    index = TransactionIndex(log) if settle else None
    if on_hole is None:
        return index, read_vetted(log, on_finding)
    return index, Holes(on_hole).watched(log, on_finding)


def _blocks(
    log: OpenLog,
    on_finding: OnFinding,
    on_chunk: Callable[[SegmentFile, Vetted], None],
    settle: bool = True,
    on_hole: OnHole | None = None,
) -> Iterator[tuple[SegmentFile, Vetted, Block]]:
    index, chunks = _watched(log, on_finding, settle, on_hole)
    of_quorum = log.topic == METADATA_TOPIC
    readers: dict[str, BlockReader] = {}
    for segment, vetted in chunks:
        on_chunk(segment, vetted)
        if segment.path not in readers:
            readers = {segment.path: BlockReader(segment.path, index, on_finding, of_quorum=of_quorum)}
        for block in readers[segment.path].blocks(vetted):
            yield segment, vetted, block


def _no_stats(segment: SegmentFile, vetted: Vetted) -> None:
    """Do nothing, for readers that do not count."""


# -- one record at a time ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record with its coordinates."""

    topic: str
    partition: int
    file: str
    batch: BatchHead
    record: RawRecord
    transaction: Transaction
    marker: ControlMarker | None
    """The content of a control record; None for ordinary records and for unparsable control records."""

    @property
    def control(self) -> str | None:
        """`commit` or `abort` for the records that end a transaction. In the metadata log, it can also be the name of a
        quorum record."""
        if self.marker is None:
            return None
        return self.marker.control or (self.marker.of_quorum if self.topic == METADATA_TOPIC else None)

    @property
    def is_left_out(self) -> bool:
        """Whether this is a control record that does not end a transaction, and therefore is not a row."""
        return self.batch.is_control and self.control is None


def read_log(
    log: FoundLog | OpenLog,
    *,
    below_log_start: bool = True,
    other_control: bool = True,
    on_finding: OnFinding = _ignore,
    settle: bool = True,
    on_hole: OnHole | None = None,
) -> Iterator[LogRecord]:
    """Every record of a log partition as an object.

    With `other_control`, the result includes records of control batches that do not end a transaction or cannot be
    parsed (`is_left_out`). `read_partition` leaves them out. `settle` and `on_hole` are the same as for
    `read_partition`.
    """
    with _opened(log) as opened:
        log_start = 0 if below_log_start else opened.log_start
        topic, partition = opened.topic, opened.partition
        for path, batch, entry, state in _entries(opened, on_finding, settle, on_hole):
            transaction: Transaction = "none" if batch.is_control else state()
            records = _records(path, batch, entry, on_finding, of_quorum=topic == METADATA_TOPIC)
            # Report findings about a batch before returning its records, unless the batch has very many records.
            for record, marker in chain(list(islice(records, _MOST_AT_ONCE)), records):
                if record.offset < log_start:
                    continue
                if batch.is_control:
                    transaction = _ended(marker)
                found = LogRecord(topic, partition, path, batch, record, transaction, marker)
                if other_control or not found.is_left_out:
                    yield found


def _entries(
    log: OpenLog, on_finding: OnFinding, settle: bool, on_hole: OnHole | None
) -> Iterator[tuple[str, BatchHead, bytes, Callable[[], Transaction]]]:
    """For each usable entry: its file, header and bytes, and a function that returns the outcome of its transaction."""
    index, chunks = _watched(log, on_finding, settle, on_hole)
    for segment, vetted in chunks:
        chunk = vetted.chunk
        usable = set(vetted.usable.tolist())
        for at, (start, size) in enumerate(zip(chunk.entries.tolist(), chunk.sizes.tolist(), strict=True)):
            if at in vetted.findings:
                on_finding(vetted.findings[at])
            if at in usable:
                head = vetted.head(at)
                yield segment.path, head, chunk.data[start : start + size], partial(_state, index, head)


def _state(index: TransactionIndex | None, batch: BatchHead) -> Transaction:
    if not batch.is_transactional:
        return "none"
    return "pending" if index is None else index.state(batch.producer_id, batch.offset)


def _ended(marker: ControlMarker | None) -> Transaction:
    if marker is None or marker.control is None:
        return "none"
    return "committed" if marker.control == "commit" else "aborted"


def _records(
    path: str, batch: BatchHead, entry: bytes, on_finding: OnFinding, *, of_quorum: bool
) -> Iterator[tuple[RawRecord, ControlMarker | None]]:
    """The records of an entry, with markers for those of a control batch. Reports problems with the entry at the
    end."""
    content = record_bytes(batch, entry)
    failure = content.failure
    count = left = 0
    left_out = ControlLeftOut()
    try:
        for record in read_records(batch, content.data):
            marker = None
            if batch.is_control:
                trouble = control_trouble(record.key, record.value, of_quorum=of_quorum)
                if trouble is not None:
                    left_out.add(trouble)
                if trouble is None or trouble[1] == "note":
                    marker = read_marker(record.key, record.value)
            count += 1
            yield record, marker
    except BrokenRecordsError as error:
        failure, left = failure or error.detail, len(content.data) - error.at
    finding = left_out.finding(path, batch)
    if finding is not None:
        on_finding(finding)
    if failure is not None:
        delivered, is_cut = count - left_out.count, content.failure is not None
        on_finding(broken(path, batch, failure, delivered=delivered, left_out=left_out.count, left=left, is_cut=is_cut))


# -- counts ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SegmentCounts:
    """Numbers about the contents of one file. Only usable batches are counted; other batches have findings."""

    file: str
    base_offset: int | None
    log_start: int = 0
    """The log start of the file's log."""
    bytes: int = 0
    """The size of the file when it was opened."""
    batches: int = 0
    records: int = 0
    """The number of readable records, including those of control batches."""
    control_batches: int = 0
    control_left_out: int = 0
    """The number of records in control batches that do not become rows because they do not end a transaction or cannot
    be parsed."""
    transactional_batches: int = 0
    """The number of transactional batches, without control batches."""
    first_offset: int | None = None
    """The offset of the first record."""
    last_offset: int | None = None
    """The offset of the last record of the last batch, even if a cleaner removed that record."""
    missing_offsets: int = 0
    """The number of offsets without a record, from the end of the previous file (or the log start) to `last_offset`. A
    cleaner has removed these records, or they cannot be read."""
    codecs: Counter[str] = field(default_factory=Counter)
    """The number of batches per codec."""
    magics: Counter[int] = field(default_factory=Counter)
    """The number of batches per message format."""
    findings: list[Finding] = field(default_factory=list)


def scan(log: FoundLog | OpenLog) -> list[SegmentCounts]:
    """Read all files of a log partition completely, and return one SegmentCounts per file.

    If no file of a partition can be opened, there is one SegmentCounts for the missing folder or file.
    """
    with _opened(log) as opened:
        return _scanned(opened)


def _scanned(log: OpenLog) -> list[SegmentCounts]:
    found = {each.path: SegmentCounts(each.path, each.base_offset, log.log_start, each.size) for each in log.segments}
    others: list[Finding] = []

    def on_finding(finding: Finding) -> None:
        (found[finding.file].findings if finding.file in found else others).append(finding)

    def on_chunk(segment: SegmentFile, vetted: Vetted) -> None:
        _count(found[segment.path], vetted)

    for segment, _, block in _blocks(log, on_finding, on_chunk, settle=False):
        found[segment.path].records += len(block)
        found[segment.path].control_left_out += block.control_left_out
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
    if not stats and others:
        stats = [SegmentCounts(others[0].file or "", None)]
    if stats:
        stats[0].findings[:0] = others
    return stats


def _count(stats: SegmentCounts, vetted: Vetted) -> None:
    heads, usable = vetted.heads, vetted.usable
    if not len(usable):
        return
    stats.batches += len(usable)
    stats.control_batches += int(heads.is_control[usable].sum())
    stats.transactional_batches += int((heads.is_transactional & ~heads.is_control)[usable].sum())
    for number, times in enumerate(np.bincount(heads.codec[usable]).tolist()):
        if times:
            stats.codecs[CODECS[number] if number < len(CODECS) else f"codec {number}"] += times
    for number, times in enumerate(np.bincount(heads.magic[usable]).tolist()):
        if times:
            stats.magics[number] += times
    last = int(heads.last_offset[usable].max())
    stats.last_offset = last if stats.last_offset is None else max(stats.last_offset, last)
