"""Where batches are in a segment file, by the offset index beside it (`OffsetIndex`).

An entry is eight bytes: the last offset of a batch, less the base offset of the file, and the position at which that
batch starts. A broker writes one every `index.interval.bytes`, and makes the index of the newest file as large as it
may get: zeros follow the entries, while the broker runs and after some clean stops.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import itemgetter
from struct import Struct
from typing import Final

from kafka_records_engine.log.opened import SegmentFile
from kafka_records_engine.log.places import Place

_ENTRY: Final = Struct(">iI")
_PIECE: Final = 64 * 1024
"""An index that is larger is looked at entry by entry: it may be ten megabytes of zeros."""

_delta, _position = itemgetter(0), itemgetter(1)


class OffsetIndex:
    """The offset index of one segment file; without entries where there is none, or one that cannot be read."""

    def __init__(self, segment: SegmentFile, folder: Place | None) -> None:
        self._base = segment.base_offset or 0
        self._entries: Sequence[tuple[int, int]] = ()
        if folder is not None and segment.base_offset is not None and segment.path.endswith(".log"):
            try:
                self._entries = _entries(folder.child(f"{segment.base_offset:020}.index"))
            except OSError:
                self._entries = ()

    def position_of(self, offset: int) -> int:
        """A position at which a batch starts, at or before the one that holds `offset`: that of the last entry that
        does not lie after it, or 0. Whoever reads there checks that a batch does start there."""
        after = bisect_right(self._entries, offset - self._base, key=_delta)
        return self._entries[after - 1][1] if after else 0

    def offset_from(self, position: int) -> int | None:
        """The last offset of the first batch that has an entry and starts at `position` or later; None where no entry
        lies there."""
        found = bisect_left(self._entries, position, key=_position)
        return self._base + self._entries[found][0] if found < len(self._entries) else None


def _entries(place: Place) -> list[tuple[int, int]]:
    """The entries of an index up to the first one of zeros. Raises OSError."""
    file = place.opened()
    try:
        size = file.size - file.size % _ENTRY.size
        low, high = 0, size // _ENTRY.size
        while size > _PIECE and low < high:
            middle = (low + high) // 2
            file.seek(middle * _ENTRY.size)
            entry = file.read(_ENTRY.size)
            low, high = (middle + 1, high) if any(entry[4:]) else (low, middle)
        file.seek(0)
        data = file.read(low * _ENTRY.size if size > _PIECE else size)
    finally:
        file.close()
    entries = list(_ENTRY.iter_unpack(data[: len(data) - len(data) % _ENTRY.size]))
    return entries[: next((number for number, each in enumerate(entries) if not each[1]), len(entries))]
