"""Finds batches in a segment file by the offset index next to it (`OffsetIndex`).

An entry has eight bytes: the last offset of a batch minus the base offset of the file, and the position of the batch. A
broker writes an entry every `index.interval.bytes`. It preallocates the index of the newest file at its maximum size,
so zeros follow the entries while the broker runs and after some clean stops.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import closing
from typing import Final, NamedTuple

from kafka_records_engine.log.files.opened import LogFile, SegmentFile
from kafka_records_engine.log.files.places import Place

_ENTRY: Final = struct.Struct(">iI")


class IndexEntry(NamedTuple):
    """An entry of the index, which describes one batch."""

    last_offset: int
    position: int


class OffsetIndex:
    """The offset index of one segment file. It is empty if the index file is missing or cannot be read.

    Each lookup is a binary search and reads only the entries it needs, because an index may be ten megabytes of zeros.
    """

    def __init__(self, segment: SegmentFile, folder: Place | None) -> None:
        self._base = segment.base_offset or 0
        has_index = segment.base_offset is not None and segment.path.endswith(".log")
        self._place = folder.child(f"{segment.base_offset:020}.index") if folder is not None and has_index else None

    def position_of(self, offset: int) -> int:
        """The position of the batch that contains `offset`, or of an earlier batch; 0 if the index has no such entry.
        The caller must check that a batch really starts there."""
        last, _ = self._around(lambda entry: entry.last_offset <= offset)
        return 0 if last is None else last.position

    def offset_from(self, position: int) -> int | None:
        """The last offset of the first indexed batch that starts at `position` or later; None if there is no such
        batch."""
        _, first = self._around(lambda entry: entry.position < position)
        return None if first is None else first.last_offset

    def last_entry(self) -> IndexEntry | None:
        """The last entry; None if there is none."""
        return self._around(lambda _: True)[0]

    def _around(self, holds: Callable[[IndexEntry], bool]) -> tuple[IndexEntry | None, IndexEntry | None]:
        """The last entry for which `holds` is true and the first one for which it is false, found by binary search."""
        if self._place is None:
            return None, None
        last = first = None
        try:
            with closing(self._place.opened()) as index:
                low, high = 0, index.size // _ENTRY.size
                while low < high:
                    middle = (low + high) // 2
                    entry = self._read(index, middle)
                    if entry is not None and holds(entry):
                        last, low = entry, middle + 1
                    else:
                        first, high = entry, middle
        except (OSError, ValueError, struct.error):  # the broker may truncate the file while we read it
            return None, None
        return last, first

    def _read(self, index: LogFile, number: int) -> IndexEntry | None:
        """An entry of the file; None if it is all zeros."""
        index.seek(number * _ENTRY.size)
        delta, position = _ENTRY.unpack(index.read(_ENTRY.size))
        return IndexEntry(self._base + delta, position) if position else None
