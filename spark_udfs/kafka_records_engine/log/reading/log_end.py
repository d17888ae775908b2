"""Finds the end of a log from the headers of its last batches, without reading records.

Entries follow one another without a gap, so the sizes in their headers lead to the last one. The offset index next to a
segment file says where to start, a few kilobytes before its end (`OffsetIndex`).
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from kafka_records_engine.log.files.opened import LogFile, SegmentFile
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.format.batches import ENTRY_HEAD, read_head
from kafka_records_engine.log.format.offset_index import OffsetIndex
from kafka_records_engine.log.reading._resync import BatchSearch, length_of, zeros_end
from kafka_records_engine.log.reading._scanning import PAD, entries_of, next_offset, nonsense_at, right_crcs
from kafka_records_engine.log.reading._suspects import Suspects

_WINDOW: Final = 16 * 1024
"""The number of bytes to read at once: many small batches, but not much of a large one."""
_HEAD: Final = 61
_TO_MAGIC: Final = 17
_SIZE: Final = Struct(">i")


class LogEnd(NamedTuple):
    """The end of a log."""

    offset: int
    """The offset after the last complete entry with a correct CRC. If there is none, the offset in the file name."""
    rest_at: int | None = None
    """The position after that entry, if the bytes there are neither a complete entry nor the zeros of a pre-allocated
    file."""
    is_cut: bool = False
    """Whether the bytes at `rest_at` are the beginning of an entry, from a truncated append."""
    timestamp_ms: int | None = None
    """The latest time of a record in the last entry, in milliseconds since 1970; None if there is none."""


def end_of(segment: SegmentFile, folder: Place | None = None) -> LogEnd | None:
    """The end of the last file of a log. `folder` may contain its offset index.

    None if the file could not be opened. Raises OSError.
    """
    file = segment.file
    if file is None:
        return None
    last, at = _last_entry(segment, file, indexed_position(segment, folder))
    end = segment.base_offset or 0
    latest = None if last is None else last.timestamp_ms
    if last is not None:
        # If an entry is invalid, the careful reader finds out which entries are usable.
        end = last.behind if _is_right(file, last) else max(next_offset(segment), end)
    if at >= length_of(file) or zeros_end(file, at) >= length_of(file):
        return LogEnd(end, timestamp_ms=latest)
    search = BatchSearch(file, segment.base_offset)
    return LogEnd(end, at, Suspects(file, segment.base_offset, search, is_last=True).cut_at(at) is not None, latest)


class _Entry(NamedTuple):
    position: int
    size: int
    behind: int
    """The offset after the last record of the entry."""
    timestamp_ms: int


def _last_entry(segment: SegmentFile, file: LogFile, position: int) -> tuple[_Entry | None, int]:
    """The last complete entry at or after `position`, and the position after it."""
    length = length_of(file)
    last: tuple[int, int] | None = None
    while True:
        file.seek(position)
        window = file.read(_WINDOW)
        at = 0
        trouble = None
        while len(window) - at >= _TO_MAGIC and trouble is None:
            trouble = nonsense_at(window, at, len(window))
            size = ENTRY_HEAD + int(_SIZE.unpack_from(window, at + 8)[0])
            if trouble is None and position + at + size > length:
                trouble = "the entry is cut short"
            if trouble is None:
                last = position + at, size
                at += size
        if trouble is None and at:
            position += at
            continue
        found = _behind_trouble(segment, file, position + at)
        if found is None:
            break
        position = found
    if last is None:
        return None, position + at
    file.seek(last[0])
    head = read_head(file.read(min(last[1], _HEAD)), 0, last[0])
    return _Entry(*last, head.last_offset + 1, head.max_timestamp), position + at


def _behind_trouble(segment: SegmentFile, file: LogFile, position: int) -> int | None:
    """The start of the next batch after a place where none can start; None at the end of the file."""
    length = length_of(file)
    if position >= length or zeros_end(file, position) >= length:
        return None
    search = BatchSearch(file, segment.base_offset)
    found = Suspects(file, segment.base_offset, search, is_last=True).next_behind(position)
    return None if found is None else found.position


def _is_right(file: LogFile, entry: _Entry) -> bool:
    file.seek(entry.position)
    data = file.read(entry.size)
    entries, end = entries_of(data + bytes(PAD), 0, len(data))
    return bool(len(entries)) and bool(right_crcs(data + bytes(PAD), entries, end)[0])


def indexed_position(segment: SegmentFile, folder: Place | None) -> int:
    """The position of the last batch in the offset index; 0 if there is no index or it belongs to another file."""
    entry = OffsetIndex(segment, folder).last_entry()
    if entry is None or segment.file is None:
        return 0
    position = entry.position
    segment.file.seek(position)
    data = segment.file.read(_HEAD)
    if len(data) < _HEAD or nonsense_at(data, 0, len(data)) is not None:
        return 0
    head = read_head(data, 0, position)
    return position if head.offset <= entry.last_offset <= head.last_offset else 0
