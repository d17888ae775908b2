"""How the transactions in a log partition ended.

A transactional record is decided by the next control marker of its producer in the same partition, matched by
producer id alone (`OffsetMetadataManager.replayEndTransactionMarker`; KIP-98). The marker may stand in a later file,
so the markers are looked up before the records are read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from operator import itemgetter
from typing import Final, Literal

import numpy as np

from kafka_records_arrow.batches import BrokenRecordsError, read_batch, read_marker, read_records, record_bytes
from kafka_records_arrow.discovery import LogPartition
from kafka_records_arrow.problems import SegmentProblem
from kafka_records_arrow.scanning import Chunk, read_chunks
from kafka_records_arrow.vetting import Vetted, placed, read_vetted

Transaction = Literal["none", "committed", "aborted", "open", "unknown"]

TRANSACTIONS: Final[tuple[Transaction, ...]] = ("none", "committed", "aborted", "open", "unknown")
"""none: not part of a transaction. committed, aborted: its marker was read. open: the log ends before a marker.
unknown: bytes that cannot be read, or files that were not asked for, may hide the marker."""


class TransactionIndex:
    """The markers of one log partition, and the places where one may be missing."""

    def __init__(self) -> None:
        self._markers: dict[int, list[tuple[int, Transaction]]] = {}
        self._holes: list[int] = []
        self._last = -1

    def add_marker(self, offset: int, producer_id: int, ended: Transaction) -> None:
        insort(self._markers.setdefault(producer_id, []), (offset, ended))

    def add_hole(self) -> None:
        """Something unreadable follows what was seen so far."""
        self._holes.append(self._last)

    def seen(self, last_offset: int) -> None:
        self._last = max(self._last, last_offset)

    def state(self, producer_id: int, offset: int) -> Transaction:
        """How the transaction ended that the producer had open at `offset`."""
        markers = self._markers.get(producer_id, [])
        at = bisect_right(markers, offset, key=itemgetter(0))
        hole = bisect_left(self._holes, offset)
        if hole < len(self._holes) and (at == len(markers) or self._holes[hole] < markers[at][0]):
            return "unknown"
        return markers[at][1] if at < len(markers) else "open"


def index_transactions(log: LogPartition) -> TransactionIndex:
    """Read the markers of all files of `log`; problems are left for the reading of the records to report.

    A log without transactional batches is only hopped through; otherwise the CRC of every batch is checked, because a
    marker that cannot be trusted decides nothing.
    """
    index = TransactionIndex()
    if not any(_has_transactions(chunk) for chunk in _all_chunks(log)):
        return index

    def report(problem: SegmentProblem) -> None:
        if problem.severity == "damage":
            index.add_hole()

    for _, vetted in read_vetted(log, report):
        _add_chunk(index, vetted)
    if log.ends_early:
        index.add_hole()
    return index


def _all_chunks(log: LogPartition) -> Iterator[Chunk]:
    for segment, is_last, _ in placed(log):
        yield from read_chunks(segment.path, segment.base_offset, is_last, lambda problem: None)


def _has_transactions(chunk: Chunk) -> bool:
    low_attributes = np.frombuffer(chunk.data, np.uint8)[chunk.entries + 22]
    return bool(((chunk.magics == 2) & ((low_attributes & 0x30) != 0)).any())


def _add_chunk(index: TransactionIndex, vetted: Vetted) -> None:
    heads = vetted.heads
    is_usable = np.zeros(len(heads.offset), np.bool_)
    is_usable[vetted.usable] = True
    behind = np.maximum.accumulate(np.where(is_usable, heads.last_offset, -1))
    for at in np.flatnonzero(heads.is_control | ~is_usable).tolist():
        if at:
            index.seen(int(behind[at - 1]))
        if not is_usable[at] or not _add_control_batch(index, vetted.chunk, at):
            index.add_hole()
    index.seen(int(behind[-1]))


def _add_control_batch(index: TransactionIndex, chunk: Chunk, at: int) -> bool:
    """Whether the batch could be read to its end."""
    start = int(chunk.entries[at])
    entry = chunk.data[start : start + int(chunk.sizes[at])]
    batch = read_batch(entry, 0, 0)
    content = record_bytes(batch, entry)
    try:
        for record in read_records(batch, content.data):
            marker = read_marker(record.key, record.value)
            if marker.control is not None:
                ended: Transaction = "committed" if marker.control == "commit" else "aborted"
                index.add_marker(record.offset, batch.producer_id, ended)
    except BrokenRecordsError:
        return False
    return content.failure is None
