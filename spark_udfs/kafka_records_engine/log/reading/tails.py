"""Reads the last part of a log batch by batch to find which records are left to read, and how old they are.

Before the last TAIL_BYTES, only some offsets are known, from the time index next to a file. For each, the index
contains the latest time of a record up to that offset (`TimeIndex`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from struct import Struct
from typing import Final

import numpy as np

from kafka_records_engine.log.files.opened import LogFile, OpenLog, Readable, SegmentFile
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.format.offset_index import OffsetIndex
from kafka_records_engine.log.reading.head_walk import WalkedHeads
from kafka_records_engine.numpy_types import FLAGS, INT64

TAIL_BYTES: Final = 128 * 1024
"""The approximate number of bytes at the end of a log that are read batch by batch."""

_MOST_FILES: Final = 8
"""If there are more files than this, neither their headers nor their time indexes are read."""
_SAMPLES: Final = 32
"""The number of entries to take from a time index, evenly spaced."""
_TIME_ENTRY: Final = Struct(">qi")


@dataclass(frozen=True, slots=True, eq=False)
class LogTail:
    """The records to read at the end of a log."""

    offsets: INT64
    """Offsets, ascending: the last record of a batch to read, or an entry of a time index. Nothing is left to read
    after the last one."""
    times_ms: INT64
    """For each offset, the latest time of a record up to it, in milliseconds since 1970."""
    exact_from: int
    """From this offset, `offsets` contains every batch with records to read."""


def exact_tail(opened: OpenLog, folder: Place | None) -> int:
    """The first offset from which a tail contains every batch."""
    bases = [each.base_offset for each in opened.segments if each.base_offset is not None]
    if not bases:
        return 0
    of_files = bases[-_MOST_FILES] if len(bases) > _MOST_FILES else bases[0]
    return max(first_in_bytes(opened, folder, TAIL_BYTES), of_files, opened.log_start)


def first_in_bytes(opened: OpenLog, folder: Place | None, most: int) -> int:
    """The offset after which about `most` bytes of the log are left; 0 if the whole log is smaller."""
    left = 0
    for segment in reversed(opened.segments):
        if left + segment.size > most:
            offset = OffsetIndex(segment, folder).offset_from(segment.size - (most - left))
            following = [each.base_offset for each in opened.segments if each.base_offset is not None]
            later = [each for each in following if each > (segment.base_offset or 0)]
            return offset if offset is not None else min(later, default=segment.base_offset or 0)
        left += segment.size
    return 0


def batch_times(heads: WalkedHeads) -> INT64:
    """The time of each batch: the time of its first record or, if the header does not contain it, the latest time."""
    first, most = heads.first_timestamp, heads.max_timestamp
    times: INT64 = np.where(heads.is_append_time | (first < 0), most, first)
    return times


def tail_of(opened: OpenLog, folder: Place | None, heads: WalkedHeads, is_to_read: FLAGS, exact_from: int) -> LogTail:
    """The tail of a log, from the headers of its batches.

    `heads` must start at `exact_from` or before; `is_to_read` flags the batches with records to read. Raises OSError.
    """
    chosen = np.flatnonzero(is_to_read & (heads.last >= exact_from))
    earlier: list[tuple[int, int]] = []
    if folder is not None:
        for segment in opened.segments[-_MOST_FILES:]:
            earlier += [each for each in _times(folder, segment) if each[0] < exact_from]
    before = np.array([*_ascending(earlier)], np.int64).reshape(-1, 2)
    return LogTail(
        np.concatenate([before[:, 0], heads.last[chosen]]),
        np.concatenate([before[:, 1], heads.max_timestamp[chosen]]),
        exact_from,
    )


def latest_time(folder: Place, segment: SegmentFile) -> int | None:
    """The latest timestamp in a file according to its time index, in milliseconds since 1970; None if the index is
    empty. Raises OSError."""
    times = [timestamp for _, timestamp in _times(folder, segment, samples=1)]
    return times[-1] if times and times[-1] >= 0 else None


def _times(folder: Place, segment: SegmentFile, samples: int = _SAMPLES) -> Iterator[tuple[int, int]]:
    """Some offsets of a file, each with the latest time of a record up to it."""
    data = _time_index(folder, segment)
    if data is None:
        return
    with closing(data) as index:
        low, high = 0, index.size // _TIME_ENTRY.size
        # A broker preallocates the index of the newest file at its maximum size, so zeros follow the entries.
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if any(_time_entry(index, middle)) else (low, middle)
        for number in sorted({low - 1 - low * step // samples for step in range(samples)} if low else ()):
            timestamp, delta = _time_entry(index, number)
            yield (segment.base_offset or 0) + delta, timestamp


def _time_entry(index: Readable, number: int) -> tuple[int, int]:
    index.seek(number * _TIME_ENTRY.size)
    data = index.read(_TIME_ENTRY.size)
    timestamp, delta = _TIME_ENTRY.unpack(data) if len(data) == _TIME_ENTRY.size else (0, 0)
    return int(timestamp), int(delta)


def _ascending(samples: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    last = -1
    for offset, timestamp in samples:
        if offset > last and timestamp >= 0:
            yield offset, timestamp
            last = offset


def _time_index(folder: Place, segment: SegmentFile) -> LogFile | None:
    if not segment.path.endswith(".log"):
        return None
    place = folder.child(f"{segment.base_offset:020}.timeindex")
    try:
        return place.opened() if place.kind == "file" else None
    except OSError:
        return None
