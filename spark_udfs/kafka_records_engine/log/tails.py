"""The last part of a log, batch by batch: which records are left to read from an offset on, and since when.

Only heads of batches are read. Markers of transactions are no records to read, nor are the records of transactions
that were aborted, which `.txnindex` lists (`AbortedTxn`); records from the first open transaction on are kept from
readers with `read_committed`. Further back than TAIL_BYTES the time index beside a file has some of its offsets with
the latest time of a record up to there (`TimeIndex`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from struct import Struct
from typing import Final

from kafka_records_engine.log._scanning import nonsense_at
from kafka_records_engine.log.batches import ENTRY_HEAD, BatchHead, read_head
from kafka_records_engine.log.log_end import indexed_position
from kafka_records_engine.log.opened import LogFile, OpenLog, Readable, SegmentFile
from kafka_records_engine.log.places import Place

TAIL_BYTES: Final = 128 * 1024
"""At least so many bytes at the end of a log are looked at batch by batch."""

_MOST_FILES: Final = 8
_WINDOW: Final = 16 * 1024
_LARGE_WINDOW: Final = 256 * 1024
_HEAD: Final = 61
_TO_MAGIC: Final = 17
_SAMPLES: Final = 32
"""How many entries of a time index are taken, one as far from the next as the other."""
_SIZE: Final = Struct(">i")
_TIME_ENTRY: Final = Struct(">qi")
_ABORTED: Final = Struct(">hqqqq")


@dataclass(frozen=True, slots=True)
class LogTail:
    """What is left to read at the end of a log."""

    samples: Sequence[tuple[int, int]]
    """Offsets, ascending, each with a time in milliseconds since 1970: the last record of a batch to read and its
    latest time, or an entry of a time index. After the last of them is nothing to read."""
    exact_from: int
    """From this offset on each batch with records to read is one of `samples`."""
    open_from: int | None = None
    """Where the first transaction begins that is open, as far as it was looked for."""


def tail_of(log: OpenLog, folder: Place) -> LogTail | None:
    """The tail of a log; None where it cannot be told, because a batch cannot be read or later files are missing.
    Raises OSError."""
    if not log.segments or log.ends_early:
        return None
    heads: list[BatchHead] = []
    files: list[SegmentFile] = []
    left = TAIL_BYTES
    for segment in reversed(log.segments):
        if segment.file is None or segment.base_offset is None:
            return None
        begin = segment.size - left
        position = indexed_position(segment, folder, begin)
        of_file = _heads(segment.file, position, segment.size, begin)
        if of_file is None:
            return None
        heads[:0] = of_file
        files.append(segment)
        left -= segment.size - position
        if left <= 0 or len(files) == _MOST_FILES or segment.hole_before:
            break
    first = files[-1].base_offset or 0
    exact_from = max(heads[0].offset if heads and heads[0].position else first, log.log_start)
    aborted = [each for segment in files for each in _aborted(folder, segment)]
    open_from = _open_from(heads)
    exact = [
        (head.last_offset, head.max_timestamp)
        for head in heads
        if not head.is_control
        and head.count != 0
        and (open_from is None or head.offset < open_from)
        and not _is_aborted(head, aborted)
    ]
    earlier = [each for segment in reversed(files) for each in _times(folder, segment) if each[0] < exact_from]
    return LogTail([*_ascending(earlier), *exact], exact_from, open_from)


def _heads(file: LogFile, position: int, length: int, begin: int) -> list[BatchHead] | None:
    """The heads of all entries that end after `begin`, looked for from `position` on; None where one cannot be told
    from the next."""
    found: list[BatchHead] = []
    size = 0
    while position < length:
        file.seek(position)
        # Without an index all heads before are passed over, and small batches are many.
        window = file.read(_LARGE_WINDOW if begin - position > _LARGE_WINDOW and 0 < size < _HEAD * 32 else _WINDOW)
        data = window + bytes(_HEAD)
        is_last = position + len(window) >= length
        at = 0
        while len(window) - at >= (_TO_MAGIC if is_last else _HEAD):
            size = ENTRY_HEAD + int(_SIZE.unpack_from(data, at + 8)[0])
            if ENTRY_HEAD < size <= begin - position - at:
                at += size
                continue
            if nonsense_at(window, at, len(window)) is not None:
                return None if any(window[at : at + _HEAD]) else found
            if position + at + size > length:
                return found  # an append that was cut short
            if position + at + size > begin:
                found.append(read_head(data, at, position + at))
            at += size
        if not at:
            return found  # less than the head of a batch is left
        position += at
    return found


def _open_from(heads: Sequence[BatchHead]) -> int | None:
    """Where the first transaction begins that has no marker."""
    first: dict[int, int] = {}
    for head in heads:
        if head.is_control:
            first.pop(head.producer_id, None)
        elif head.is_transactional:
            first.setdefault(head.producer_id, head.offset)
    return min(first.values(), default=None)


def _aborted(folder: Place, segment: SegmentFile) -> Iterator[tuple[int, int, int]]:
    """Producer, first and last offset of the transactions that were aborted in a file."""
    data = _beside(folder, segment, "txnindex")
    if data is None:
        return
    with closing(data) as index:
        index.seek(0)
        entries = index.read(index.size - index.size % _ABORTED.size)
    for _, producer, first, last, _ in _ABORTED.iter_unpack(entries):
        yield producer, first, last


def _is_aborted(head: BatchHead, aborted: Sequence[tuple[int, int, int]]) -> bool:
    return head.is_transactional and any(
        producer == head.producer_id and first <= head.offset <= last for producer, first, last in aborted
    )


def _times(folder: Place, segment: SegmentFile) -> Iterator[tuple[int, int]]:
    """Some offsets of a file, each with the latest time of a record up to it."""
    data = _beside(folder, segment, "timeindex")
    if data is None:
        return
    with closing(data) as index:
        low, high = 0, index.size // _TIME_ENTRY.size
        # A broker makes the index of the newest file as large as it may get: zeros are after the entries.
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if any(_time_entry(index, middle)) else (low, middle)
        for number in sorted({low - 1 - low * step // _SAMPLES for step in range(_SAMPLES)} if low else ()):
            timestamp, delta = _time_entry(index, number)
            yield (segment.base_offset or 0) + delta, timestamp


def _time_entry(index: Readable, number: int) -> tuple[int, int]:
    index.seek(number * _TIME_ENTRY.size)
    data = index.read(_TIME_ENTRY.size)
    timestamp, delta = _TIME_ENTRY.unpack(data) if len(data) == _TIME_ENTRY.size else (0, 0)
    return int(timestamp), int(delta)


def _ascending(samples: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    last = -1
    for offset, timestamp in samples:
        if offset > last and timestamp >= 0:
            yield offset, timestamp
            last = offset


def _beside(folder: Place, segment: SegmentFile, kind: str) -> LogFile | None:
    """A file of a segment beside its records; None where there is none."""
    if not segment.path.endswith(".log"):
        return None
    place = folder.child(f"{segment.base_offset:020}.{kind}")
    try:
        return place.opened() if place.kind == "file" else None
    except OSError:
        return None
