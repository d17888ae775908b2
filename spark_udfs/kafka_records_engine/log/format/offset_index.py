"""Where batches are in a segment file, by the offset index next to it (`OffsetIndex`).

An entry is eight bytes: the last offset of a batch, less the base offset of the file, and the position at which that
batch starts. A broker writes one every `index.interval.bytes`, and makes the index of the newest file as large as it
may get: zeros follow the entries, while the broker runs and after some clean stops.
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
    """A batch that the index names."""

    last_offset: int
    position: int


class OffsetIndex:
    """The offset index of one segment file; without entries if there is none, or one that cannot be read.

    Each question looks up as many entries as a binary search does: an index may be ten megabytes of zeros.
    """

    def __init__(self, segment: SegmentFile, folder: Place | None) -> None:
        self._base = segment.base_offset or 0
        has_index = segment.base_offset is not None and segment.path.endswith(".log")
        self._place = folder.child(f"{segment.base_offset:020}.index") if folder is not None and has_index else None

    def position_of(self, offset: int) -> int:
        """A position at which a batch starts, at or before the one that holds `offset`: that of the last entry that
        does not lie after it, or 0. Whoever reads there checks that a batch does start there."""
        last, _ = self._around(lambda entry: entry.last_offset <= offset)
        return 0 if last is None else last.position

    def offset_from(self, position: int) -> int | None:
        """The last offset of the first batch that has an entry and starts at `position` or later; None if no entry lies
        there."""
        _, first = self._around(lambda entry: entry.position < position)
        return None if first is None else first.last_offset

    def last_entry(self, most: int | None = None) -> IndexEntry | None:
        """The last entry, or the last one at the position `most` or before it; None if there is none."""
        return self._around(lambda entry: most is None or entry.position <= most)[0]

    def _around(self, holds: Callable[[IndexEntry], bool]) -> tuple[IndexEntry | None, IndexEntry | None]:
        """The last entry for which something holds, and the first one for which it does not, which it does for none
        after it."""
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
        except (OSError, ValueError, struct.error):  # the broker may truncate the file meanwhile
            return None, None
        return last, first

    def _read(self, index: LogFile, number: int) -> IndexEntry | None:
        """An entry of the file; None for zeros."""
        index.seek(number * _ENTRY.size)
        delta, position = _ENTRY.unpack(index.read(_ENTRY.size))
        return IndexEntry(self._base + delta, position) if position else None
