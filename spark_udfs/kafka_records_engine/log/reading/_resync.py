"""Finds the next batch after bytes that are not a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

import numpy as np

from kafka_records_engine.log.files.opened import Readable
from kafka_records_engine.log.format.batches import ENTRY_HEAD, LARGEST_OFFSET, SMALLEST_SIZES, computed_crc
from kafka_records_runtime.errors import plural

FARTHEST: Final = 1 << 56
"""The limit for offsets in a file whose name is not an offset. Offsets at or above it count as damage, because no log
has ever had that many records."""

SPAN: Final = 1 << 31
"""The limit for the number of offsets in a file, because indexes store offsets relative to the first one as int32."""

TO_MAGIC: Final = 17
"""The number of bytes of an entry up to and including its magic."""
_FIRST_WINDOW: Final = 4096
_LARGEST_WINDOW: Final = 1024 * 1024
_CHECKED: Final = 64 * 1024 * 1024
SMALLEST: Final = np.array(SMALLEST_SIZES, np.int64)
"""The smallest size of an entry by its magic."""
_CRC: Final = Struct(">I")
_CRC_AT: Final = (12, 12, 17)
"""Where the CRC of an entry starts, for magic 0, 1 and 2."""


def offset_bounds(base_offset: int | None) -> tuple[int, int]:
    """The lowest and the highest possible offset of entries in a file named `base_offset`."""
    if base_offset is None:
        return 0, FARTHEST - 1
    return base_offset, min(base_offset + SPAN - 1, LARGEST_OFFSET)


def wrong_offset(head: bytes, base_offset: int | None) -> str | None:
    """The reason why no entry can start with `head` (8 bytes, or fewer at the end of the file); None if an entry
    can."""
    low, high = offset_bounds(base_offset)
    missing = 8 * (8 - len(head))
    first = int.from_bytes(head, "big", signed=True) << missing
    if first <= high and first + (1 << missing) > low:
        return None
    place = "in any log" if base_offset is None else f"in a file named for offset {base_offset}"
    if not missing:
        return f"offset {first} cannot be {place}"
    return f"{plural(len(head), 'byte')} that cannot be the start of an offset {place}"


def length_of(file: Readable) -> int:
    """The current size of an open file in bytes."""
    return file.seek(0, 2)


def zeros_end(file: Readable, position: int) -> int:
    """The position after the run of zeros that starts at `position`."""
    file.seek(position)
    size = _FIRST_WINDOW
    while block := file.read(size):
        if block.count(0) != len(block):
            return position + len(block) - len(block.lstrip(b"\0"))
        position += len(block)
        size = min(2 * size, _LARGEST_WINDOW)
    return position


def zeros_start(file: Readable) -> int:
    """Where the zeros at the end of a file start; the length of the file if it does not end with zeros."""
    end = length_of(file)
    size = _FIRST_WINDOW
    while end:
        position = max(end - size, 0)
        file.seek(position)
        block = file.read(end - position).rstrip(b"\0")
        if block:
            return position + len(block)
        end = position
        size = min(2 * size, _LARGEST_WINDOW)
    return 0


class FoundBatch(NamedTuple):
    """A complete entry with a correct CRC."""

    position: int
    size: int

    @property
    def end(self) -> int:
        return self.position + self.size


class BatchSearch:
    """Searches for complete entries with a correct CRC and an offset that fits the file name.

    If every call is about a later position than the previous one, the work is linear in the size of the file: bytes are
    checked about once, and CRCs of bytes that merely look like an entry are computed over at most 64 MiB plus twice the
    size of the file. `is_used_up` means that this budget is exhausted, so a batch may have been missed.
    """

    def __init__(self, file: Readable, base_offset: int | None) -> None:
        self.is_used_up = False
        self._file = file
        self._low, self._high = offset_bounds(base_offset)
        self._budget = _CHECKED + 2 * length_of(file)
        self._asked = 0
        self._found: FoundBatch | None = None
        self._looked_at = 0
        self._window = _FIRST_WINDOW
        self._candidates: deque[tuple[int, int]] = deque()

    def next_batch(self, position: int) -> FoundBatch | None:
        """The first batch that starts at or after `position`."""
        if position > self._looked_at or position < self._asked:
            self._looked_at, self._window, self._found = position, _FIRST_WINDOW, None
            self._candidates.clear()
        self._asked = position
        if self._found is not None and self._found.position >= position:
            return self._found
        self._found = None
        while self._candidates or self._look_on():
            at, size = self._candidates.popleft()
            if at >= position and self.is_batch(at, size):
                self._found = FoundBatch(at, size)
                break
        return self._found

    def is_batch(self, position: int, size: int) -> bool:
        """Whether the entry of `size` bytes at `position` has a correct CRC; False if the budget is exhausted."""
        if not self.spend(size):
            return False
        self._file.seek(position)
        entry = self._file.read(size)
        return len(entry) == size and is_right(entry)

    def spend(self, size: int) -> bool:
        """Take `size` bytes from the budget. Returns False if the budget has fewer bytes left."""
        if size > self._budget:
            self.is_used_up = True
            return False
        self._budget -= size
        return True

    def _look_on(self) -> bool:
        """Read more of the file until some bytes look like an entry. Returns False at the end of the file."""
        length = length_of(self._file)
        while not self._candidates:
            position = self._looked_at
            self._file.seek(position)
            data = self._file.read(self._window + TO_MAGIC - 1)
            count = len(data) - TO_MAGIC + 1
            if count <= 0:
                return False
            self._candidates.extend(self._looking_right(data, count, position, length))
            self._looked_at += count
            self._window = min(2 * self._window, _LARGEST_WINDOW)
        return True

    def _looking_right(self, data: bytes, count: int, position: int, length: int) -> Iterator[tuple[int, int]]:
        """The position and size of each place in the first `count` bytes of `data` that looks like an entry.

        `data` starts at byte `position` of a file of `length` bytes.
        """
        offsets = np.ndarray((count,), ">i8", data, 0, (1,))
        sizes = np.ndarray((count,), ">i4", data, 8, (1,)).astype(np.int64)
        magics = np.frombuffer(data, np.uint8)[TO_MAGIC - 1 :][:count]
        fits = (magics <= 2) & (offsets >= self._low) & (offsets <= self._high)
        fits &= sizes >= SMALLEST[np.minimum(magics, 2)]
        fits &= sizes + ENTRY_HEAD <= length - position - np.arange(count)
        found = np.flatnonzero(fits)
        return zip((found + position).tolist(), (sizes[found] + ENTRY_HEAD).tolist(), strict=True)


def is_right(entry: bytes) -> bool:
    """Whether these bytes are an entry with a correct CRC, regardless of the size in its header."""
    if len(entry) <= ENTRY_HEAD + 4 or entry[16] > 2 or len(entry) < ENTRY_HEAD + SMALLEST_SIZES[entry[16]]:
        return False
    stored: int = _CRC.unpack_from(entry, _CRC_AT[entry[16]])[0]
    return computed_crc(entry[16], entry) == stored
