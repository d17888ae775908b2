"""Decides how to treat an entry with a wrong CRC: either its content or its size field is damaged.

The positions of all later entries depend on the size, which no CRC covers. So a size is trusted only if another entry
starts where this one would end. Otherwise, reading continues at the next sound batch, which may start inside the bytes
of the entry. A record's value may also contain the bytes of another log, which look like batches. They do not count as
batches of this log if the entry around them ends where its size says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from kafka_records_engine.log.files.opened import Readable
from kafka_records_engine.log.format.batches import ENTRY_HEAD, RECORDS_AT, SMALLEST_SIZES, read_head, records_end
from kafka_records_engine.log.format.entry_content import EntryContent
from kafka_records_engine.log.reading._resync import (
    BatchSearch,
    FoundBatch,
    length_of,
    offset_bounds,
    wrong_offset,
    zeros_start,
)

_HEAD: Final = Struct(">qiiB")
_OFFSET: Final = Struct(">q")
_BITS: Final = 31
"""The bits of a size that may be flipped: all but the sign."""
_MOST_HOPS: Final = 100
"""More entries in a row than this cannot be the content of a record."""
_INSIDE: Final = "something that looks like another batch is inside it"
_MOST_ZEROS: Final = 4
"""The maximum number of zeros at the end of compressed records."""
_ZEROS_OF_BATCHES: Final = 16
"""Complete batches end with fewer zeros than this. Such zeros are an empty list, a version, or a count of headers."""
_MOST_LOOKED_THROUGH: Final = 64 * 1024 * 1024
"""The maximum number of bytes at the end of a file in which the end of the last batch is searched."""


@dataclass(frozen=True, slots=True)
class Stands:
    """Verdict: the entry ends where its size says. `doubt` says why more records may be lost than its header counts."""

    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class Swallows:
    """Verdict: the size is wrong. The next batch starts at byte `found` of the file; `what` says how this was
    detected."""

    found: int
    what: str


@dataclass(frozen=True, slots=True)
class HasSize:
    """Verdict: the size is wrong. With `size` bytes, the entry's CRC is correct."""

    size: int


@dataclass(frozen=True, slots=True)
class IsCut:
    """Verdict: the entry is a truncated append to a pre-allocated file. From byte `end`, the file has only zeros."""

    end: int


Verdict = Stands | Swallows | HasSize | IsCut


class Suspects:
    """Judges the entries of one file. Calls must follow the order of the file."""

    def __init__(self, file: Readable, base_offset: int | None, search: BatchSearch, is_last: bool) -> None:
        """`is_last` means that the log ends with this file, so its last append may be truncated."""
        self._file = file
        self._base_offset = base_offset
        self._low, self._high = offset_bounds(base_offset)
        self._search = search
        self._is_last = is_last
        self._contents: EntryContent | None = None
        self._zeros: int | None = None
        self._followed = 0
        """Entries follow one another without gaps up to this byte, regardless of their CRCs."""
        self._sound: tuple[int, bool] = -1, False

    def judge(self, start: int, end: int, follows_right: bool) -> Verdict:
        """The verdict on the entry from byte `start` of the file to byte `end`. `follows_right` means that the previous
        entry has a correct CRC."""
        if start < self._followed:
            return Stands()
        self._search.spend(end - start)
        found = self._search.next_batch(start + 1)
        if self._search.is_used_up:
            return Stands("so many places look like a batch that the search inside it was stopped")
        stops = self._stops(end, found) or end
        if found is None:
            size = self.true_size(start) if follows_right and stops < length_of(self._file) else None
            if size is not None:
                return HasSize(size)
            cut = self._cut_before(start, end)
            if cut is not None:
                return IsCut(cut)
            self._followed = stops
            return Stands()
        if stops == found.position:
            self._followed = stops
            return Stands()
        if not self._search.is_batch(start, found.position - start):
            if found.position >= end:
                if follows_right or self._offset(start) is not None:
                    self._followed = stops
                    return Stands()
            elif self._holds(start, found):
                inside = self._behind_content(start, found)
                if inside is None or inside.position >= end:
                    return Stands(_INSIDE)
                found = inside
            elif self._holds(start, found) is None and not self._is_behind(start, end, found):
                return Stands(_INSIDE)
        return self._swallows(end, found)

    def swallows(self, start: int, end: int) -> Swallows | None:
        """The verdict on an entry whose CRC has not been computed yet.

        Its size is wrong if a batch starts inside it and its CRC is right up to that batch; otherwise the verdict is
        None.
        """
        found = self._search.next_batch(start + 1)
        if found is None or found.position >= end or not self._search.is_batch(start, found.position - start):
            return None
        return self._swallows(end, found)

    def _swallows(self, end: int, found: FoundBatch) -> Swallows:
        if found.position < end and (end == length_of(self._file) or self._size_at(end)):
            what = f"its size leads past the batch that starts at byte {found.position} of the file"
        else:
            what = f"according to its size, a batch starts at byte {end} of the file, but none does"
        return Swallows(found.position, f"its CRC is wrong, and {what}")

    def next_behind(self, start: int) -> FoundBatch | None:
        """The first batch after the bytes at `start`, which are not a complete entry. A batch inside the value of a
        record in these bytes does not count."""
        found = self._search.next_batch(start + 1)
        if found is None or self._search.is_batch(start, found.position - start):
            return found
        return self._behind_content(start, found)

    def _behind_content(self, start: int, found: FoundBatch | None) -> FoundBatch | None:
        """The first batch at or after `found` that is not content of the entry at `start`, as far as can be
        detected."""
        while found is not None and self._holds(start, found):
            found = self._search.next_batch(found.end)
        return found

    def _holds(self, start: int, found: FoundBatch) -> bool | None:
        """Whether `found` is the content of the entry at `start`; None if that is unknown, because more than its header
        is damaged."""
        if self._contents is None or self._contents.start != start:
            self._contents = EntryContent(self._file, start, length_of(self._file), self._search.spend)
        return self._contents.covers(found.position, found.end)

    def cut_at(self, start: int) -> int | None:
        """The end of a truncated append at the end of the log: the bytes from `start` are the beginning of a batch, and
        the file ends or has only zeros after them. None if the bytes are damaged.

        The caller found no batch after `start`, and no size for which the CRC is right.
        """
        if not self._is_last or self._search.is_used_up:
            return None
        length = length_of(self._file)
        if self._is_beginning(start, length):
            return length
        zeros = self._zeros_start()
        is_possible = zeros - start < RECORDS_AT or self._contents_up_to(start, length).extent().state == "broken"
        return zeros if zeros < length and is_possible and self._is_beginning(start, zeros) else None

    def _cut_before(self, start: int, end: int) -> int | None:
        """Like `cut_at`, for an entry that should end at byte `end` according to its size, in a file that continues
        after that byte."""
        if not self._is_last or self._search.is_used_up or end >= length_of(self._file):
            return None
        zeros = self._zeros_start()
        if not start < zeros < end:
            return None
        whole = self._contents_up_to(start, length_of(self._file)).extent()
        if zeros - start >= RECORDS_AT and whole.state == "whole" and whole.end - zeros < _ZEROS_OF_BATCHES:
            return None
        return zeros if self._is_beginning(start, zeros) else None

    def _is_beginning(self, start: int, end: int) -> bool:
        fits = wrong_offset(self._read(start, min(end - start, 8)), self._base_offset) is None
        return fits and self._contents_up_to(start, end).is_beginning()

    def _contents_up_to(self, start: int, end: int) -> EntryContent:
        return EntryContent(self._file, start, end, self._search.spend)

    def _zeros_start(self) -> int:
        if self._zeros is None:
            self._zeros = zeros_start(self._file)
        return self._zeros

    def true_size(self, start: int) -> int | None:
        """The size for which the CRC of the entry at `start` is correct; None if no likely size gives a correct CRC. A
        likely size ends at the end of the file, at its last non-zero byte or at the end of the records, or differs from
        the size in the file by one bit."""
        left = length_of(self._file) - start
        head = self._read(start, RECORDS_AT)
        if len(head) < _HEAD.size or head[_HEAD.size - 1] > 2:
            return None
        smallest = ENTRY_HEAD + SMALLEST_SIZES[head[_HEAD.size - 1]]
        for size in self._likely_sizes(start, left, head):
            if smallest <= size <= left and self._search.is_batch(start, size):
                return size
        return None

    def _likely_sizes(self, start: int, left: int, head: bytes) -> Iterator[int]:
        yield left
        claimed = _HEAD.unpack_from(head)[1] & 0x7FFFFFFF
        yield from sorted(ENTRY_HEAD + size for size in (claimed, *(claimed ^ (1 << bit) for bit in range(_BITS))))
        if left > _MOST_LOOKED_THROUGH:
            return
        data = self._read(start, left)
        batch = read_head(head + bytes(RECORDS_AT), 0, start)
        end = records_end(data, batch.count or 0) if batch.magic == 2 and not batch.codec else None
        yield from () if end is None else (end,)
        end = len(data.rstrip(b"\0"))
        yield from range(end, end + _MOST_ZEROS)

    def _stops(self, at: int, found: FoundBatch | None, most: int | None = None) -> int | None:
        """The end of the sequence of entries that starts at `at`. It is at or before `found` or, without it, the end of
        the file, and before any entry with an impossible offset. None if there are more than `most` entries."""
        stop = length_of(self._file) if found is None else found.position
        high = self._high if found is None else min(self._high, _OFFSET.unpack(self._read(found.position, 8))[0])
        hops = 0
        while at < stop:
            if hops == most:
                return None
            head = self._read(at, _HEAD.size)
            if len(head) < _HEAD.size:
                break
            offset, size, _, magic = _HEAD.unpack(head)
            if not self._low <= offset <= high or magic > 2 or size < SMALLEST_SIZES[magic]:
                break
            if at + ENTRY_HEAD + size > stop:
                break
            at += ENTRY_HEAD + size
            hops += 1
        return at

    def _is_behind(self, start: int, end: int, found: FoundBatch) -> bool:
        """Whether the batch `found` is not content of the surrounding entry's records, if more than that entry's size
        is damaged.

        It is not content if the size leads to no batch, or if its offset is above those of the records and below that
        of the batch to which the size leads.
        """
        if end < length_of(self._file) and not self._size_at(end):
            return True
        last = self._last_offset(start)
        if last is None:
            return True
        if self._offset(found.position, last + 1) is None:
            return False
        if end == length_of(self._file):
            return self._offset(found.position) == last + 1 or self._stops(found.end, None, _MOST_HOPS) in (None, end)
        return not self._is_sound(end) or self._offset(end, self._last_offset(found.position)) is not None

    def _is_sound(self, position: int) -> bool:
        """Whether an entry with a correct CRC and a possible offset starts at `position`."""
        if self._sound[0] != position:
            size = self._size_at(position)
            self._sound = position, bool(size) and self._search.is_batch(position, size)
        return self._sound[1]

    def _size_at(self, position: int) -> int:
        """The size of the entry at `position`; 0 if no entry can start there."""
        head = self._read(position, _HEAD.size)
        if len(head) < _HEAD.size or self._offset(position) is None:
            return 0
        _, size, _, magic = _HEAD.unpack(head)
        left = length_of(self._file) - position - ENTRY_HEAD
        return ENTRY_HEAD + size if magic <= 2 and SMALLEST_SIZES[magic] <= size <= left else 0

    def _offset(self, position: int, low: int | None = None) -> int | None:
        """The offset of the entry at `position`; None if it is impossible in this log or below `low`."""
        head = self._read(position, 8)
        if len(head) < 8 or wrong_offset(head, self._base_offset) is not None:
            return None
        offset: int = _OFFSET.unpack(head)[0]
        return None if low is not None and offset < low else offset

    def _last_offset(self, position: int) -> int | None:
        """The last offset of the entry at `position`; None if its first offset is impossible in this log."""
        if self._offset(position) is None:
            return None
        head = self._read(position, RECORDS_AT)
        is_head = len(head) >= _HEAD.size and head[_HEAD.size - 1] <= 2
        return read_head(head + bytes(RECORDS_AT), 0, position).last_offset if is_head else None

    def _read(self, position: int, size: int) -> bytes:
        self._file.seek(position)
        return self._file.read(size)
