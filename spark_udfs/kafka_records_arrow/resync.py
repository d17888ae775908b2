"""Finding the next batch behind bytes that are none."""

from __future__ import annotations

from typing import BinaryIO, Final

import numpy as np

from kafka_records_arrow.batches import ENTRY_HEAD, LARGEST_OFFSET, SMALLEST_SIZES, computed_crc, read_batch

FARTHEST: Final = 1 << 56
"""Offsets from here on are held for damage in a file whose name says nothing: no log has had that many records."""

SPAN: Final = 1 << 31
"""A file holds offsets less than this far behind its first, since its indexes count in int32."""

_TO_MAGIC: Final = 17
_FIRST_WINDOW: Final = 4096
_LARGEST_WINDOW: Final = 1024 * 1024
_CHECKED: Final = 64 * 1024 * 1024
_SMALLEST: Final = np.array(SMALLEST_SIZES, np.int64)


def offset_bounds(base_offset: int | None) -> tuple[int, int]:
    """The lowest and the highest offset that an entry may start with in a file named for `base_offset`."""
    if base_offset is None:
        return 0, FARTHEST - 1
    return base_offset, min(base_offset + SPAN - 1, LARGEST_OFFSET)


def wrong_offset(head: bytes, base_offset: int | None) -> str | None:
    """Why no entry starts with the bytes `head` (its first 8, or fewer where the file ends); None if one may."""
    low, high = offset_bounds(base_offset)
    missing = 8 * (8 - len(head))
    first = int.from_bytes(head, "big", signed=True) << missing
    if first <= high and first + (1 << missing) > low:
        return None
    place = "in any log" if base_offset is None else f"in a file named for offset {base_offset}"
    return f"offset {first} cannot stand {place}" if not missing else f"bytes with which no offset {place} starts"


def length_of(file: BinaryIO) -> int:
    """How many bytes an open file has now."""
    return file.seek(0, 2)


def zeros_end(file: BinaryIO, position: int) -> int:
    """Where the zeros end that start at `position`."""
    file.seek(position)
    size = _FIRST_WINDOW
    while block := file.read(size):
        if block.count(0) != len(block):
            return position + len(block) - len(block.lstrip(b"\0"))
        position += len(block)
        size = min(2 * size, _LARGEST_WINDOW)
    return position


class BatchSearch:
    """Looks for whole entries with a right CRC and an offset that fits the name of the file.

    The work stays linear in the size of the file: every byte is looked at once, and the CRCs of what merely looks like
    an entry are computed over at most 64 MiB and twice the size of the file together.
    """

    def __init__(self, file: BinaryIO, base_offset: int | None) -> None:
        self._file = file
        self._low, self._high = offset_bounds(base_offset)
        self._budget = _CHECKED + 2 * length_of(file)

    def next_batch(self, position: int) -> int | None:
        """Where the first batch starts at or behind `position`."""
        length = length_of(self._file)
        window = _FIRST_WINDOW
        while True:
            self._file.seek(position)
            data = self._file.read(window + _TO_MAGIC - 1)
            count = len(data) - _TO_MAGIC + 1
            if count <= 0:
                return None
            for at, size in self._candidates(data, count, length - position):
                if size <= self._budget and self._is_batch(position + at, size):
                    return position + at
            position += count
            window = min(2 * window, _LARGEST_WINDOW)

    def _candidates(self, data: bytes, count: int, left: int) -> list[tuple[int, int]]:
        """Index and size of what looks like an entry in the first `count` bytes of `data`, `left` bytes before the end
        of the file."""
        offsets = np.ndarray((count,), ">i8", data, 0, (1,))
        sizes = np.ndarray((count,), ">i4", data, 8, (1,)).astype(np.int64)
        magics = np.frombuffer(data, np.uint8)[_TO_MAGIC - 1 :][:count]
        fits = (magics <= 2) & (offsets >= self._low) & (offsets <= self._high)
        fits &= sizes >= _SMALLEST[np.minimum(magics, 2)]
        fits &= sizes + ENTRY_HEAD <= left - np.arange(count)
        found = np.flatnonzero(fits)
        return list(zip(found.tolist(), (sizes[found] + ENTRY_HEAD).tolist(), strict=True))

    def _is_batch(self, position: int, size: int) -> bool:
        self._budget -= size
        self._file.seek(position)
        entry = self._file.read(size)
        return len(entry) == size and is_right(entry)


def is_right(entry: bytes) -> bool:
    """Whether the CRC of a whole entry is right."""
    return computed_crc(entry[16], entry) == read_batch(entry, 0, 0).crc
