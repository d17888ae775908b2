"""Splits a log segment file into entries without parsing their records.

Entries follow one another without gaps (`FileRecords`), so the sizes in their headers lead from one to the next. One
chunk of the file is in memory at a time. The file is never memory-mapped, because the process would die if a live
broker truncated a mapped file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafka_records_engine.findings import Finding, OnFinding, in_file
from kafka_records_engine.log.files.opened import Readable, SegmentFile
from kafka_records_engine.log.format.batches import ENTRY_HEAD, SMALLEST_SIZES, read_head
from kafka_records_engine.log.format.crc import crc32, crc32c
from kafka_records_engine.log.reading._faults import refused
from kafka_records_engine.log.reading._resync import SMALLEST, TO_MAGIC, BatchSearch, length_of, wrong_offset, zeros_end
from kafka_records_engine.log.reading._suspects import HasSize, IsCut, Stands, Suspects
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_runtime.errors import plural

CHUNK: Final = 4 * 1024 * 1024
"""The size of a chunk in bytes. A larger entry becomes a chunk of its own."""

LARGEST_ENTRY: Final = 1024 * 1024 * 1024
"""Entries larger than this are rejected. By default brokers accept a megabyte (`message.max.bytes`)."""

PAD: Final = 16
"""The number of zero bytes appended to every chunk, so that vector operations may read slightly past the last entry."""

_FIRST_REACH: Final = 4096
_EVERYTHING: Final = 1 << 62

_SIZE: Final = Struct(">i")
_OFFSET: Final = Struct(">q")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Complete entries, one after the other: `data` (followed by `PAD` zero bytes), and for each entry its index in
    `data` and its size."""

    data: bytes
    position: int
    """The byte of the file at which `data` starts."""
    entries: INT64
    sizes: INT64
    right: FLAGS
    """For each entry, whether its CRC is right."""
    doubts: Mapping[int, str]
    """For each entry with a wrong CRC, by index, why more records may be lost than its header counts."""

    @property
    def magics(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.data, np.uint8)[self.entries + 16]


def read_chunks(segment: SegmentFile, is_last: bool, on_finding: OnFinding) -> Iterator[Chunk]:
    """The entries of a file, in chunks that are never empty.

    Bytes that are not an entry are reported as damage and skipped up to the next entry with a correct CRC. Two things
    at the end of a file are reported as notes instead: zeros after an entry and, in the last file of a log (`is_last`),
    a truncated append. An unreadable file is also damage.
    """
    if segment.file is None:
        consequence = f"{plural(segment.size, 'byte')} not read" if segment.size else "nothing in it is read"
        on_finding(in_file(segment.path, None, None, segment.trouble, consequence, bytes=segment.size))
        return
    cutter = _Cutter(segment.file, segment.path, segment.base_offset, is_last, on_finding)
    try:
        yield from cutter.chunks()
    except OSError as error:
        left = max(segment.size - cutter.done, 0)
        consequence = f"{plural(left, 'byte')} not read" if left else "the rest of the file is skipped"
        what = f"cannot be read: {error.strerror or error}"
        on_finding(in_file(segment.path, None, None, what, consequence, bytes=left))


class _Examined(NamedTuple):
    """Entries of a chunk up to the first one with an untrusted size, the finding about that entry, and the byte of the
    file where reading continues."""

    entries: INT64
    end: int
    right: FLAGS
    doubts: dict[int, str]
    finding: Finding | None = None
    resume: int | None = None


class _Cutter:
    """Splits one open file into chunks. Everything before byte `done` was delivered or reported."""

    def __init__(
        self, file: Readable, path: str, base_offset: int | None, is_last: bool, on_finding: OnFinding
    ) -> None:
        self.done = 0
        self._file = file
        self._path = path
        self._base_offset = base_offset
        self._is_last = is_last
        self._on_finding = on_finding
        self._search = BatchSearch(file, base_offset)
        self._suspects = Suspects(file, base_offset, self._search, is_last)
        self._follows_right = True
        """Whether the previous entry has a right CRC."""
        self._reach = _EVERYTHING
        """The size of the next chunk in bytes. It is small after an entry with a wrong size and then grows, because
        bytes read after such an entry are read again."""

    def chunks(self) -> Iterator[Chunk]:
        position, carried, wanted = 0, b"", CHUNK
        while True:
            self._file.seek(position + len(carried))
            block = self._file.read(wanted)
            data = b"".join((carried, block, bytes(PAD)))
            end = len(data) - PAD
            start = 0
            while start < end or not block:
                entries, at = entries_of(data, start, min(end, start + self._reach))
                examined = self._examined(data, position, entries, at)
                yield from self._handed_out(data, position, examined)
                resume = examined.resume
                if resume is None:
                    trouble = nonsense_at(data, at, end)
                    needed = _needed(data, at, end) if trouble is None else 0
                    if trouble is not None or (needed and position + at + needed > length_of(self._file)):
                        resume = self._behind(position + at, trouble)
                        if resume is None:
                            return
                    elif at == end and not block:
                        return
                    else:
                        resume = self._inside_large(position + at, needed)
                if resume is not None:
                    self._follows_right = True
                    self.done = resume
                    start = resume - position
                    continue
                self._reach = 2 * max(self._reach, needed)
                if at < end and at + needed <= end:
                    start = at
                    continue
                position, carried, wanted = position + at, data[at:end], max(CHUNK, needed - (end - at))
                break
            else:
                position, carried, wanted = position + start, b"", CHUNK

    def _examined(self, data: bytes, position: int, entries: INT64, end: int) -> _Examined:
        right = right_crcs(data, entries, end)
        doubts: dict[int, str] = {}
        for number in np.flatnonzero(~right).tolist():
            start = int(entries[number])
            behind = int(entries[number + 1]) if number + 1 < len(entries) else end
            follows_right = bool(right[number - 1]) if number else self._follows_right
            verdict = self._suspects.judge(position + start, position + behind, follows_right)
            if isinstance(verdict, Stands):
                if verdict.doubt is not None:
                    doubts[number] = verdict.doubt
                continue
            if isinstance(verdict, HasSize):
                finding, resume = self._wrong_size(position + start, verdict.size), position + start + verdict.size
            elif isinstance(verdict, IsCut):
                finding, resume = self._cut_short(position + start, verdict.end), length_of(self._file)
            else:
                head = self._head(position + start)
                finding, resume = self._skipped(position + start, head, verdict.what, verdict.found), verdict.found
                self._reach = _FIRST_REACH
            return _Examined(entries[:number], start, right[:number], doubts, finding, resume)
        if len(entries):
            self._follows_right = bool(right[-1])
        return _Examined(entries, end, right, doubts)

    def _handed_out(self, data: bytes, position: int, examined: _Examined) -> Iterator[Chunk]:
        entries, end, right, doubts, *_ = examined
        if len(entries):
            yield Chunk(data, position, entries, np.diff(entries, append=end), right, doubts)
            self.done = position + end
        if examined.finding is not None:
            self._on_finding(examined.finding)

    def _inside_large(self, position: int, size: int) -> int | None:
        """The start of the next batch, if it is inside the entry of `size` bytes at `position` and so shows that the
        entry is shorter.

        Large sizes are checked this way before that many bytes are read.
        """
        if size <= min(self._reach, CHUNK):
            return None
        verdict = self._suspects.swallows(position, position + size)
        if verdict is None:
            return None
        self._on_finding(self._skipped(position, self._head(position), verdict.what, verdict.found))
        self._reach = _FIRST_REACH
        return verdict.found

    def _wrong_size(self, position: int, size: int) -> Finding:
        """The finding about an entry whose CRC is right for `size` bytes but wrong for the size in its header."""
        self._file.seek(position)
        head = read_head(self._file.read(size), 0, position)
        what = f"its size says {plural(head.size, 'byte')}, but its CRC is right for {plural(size, 'byte')}"
        return refused(self._path, replace(head, size=size), what)

    def _skipped(self, position: int, head: bytes, what: str, found: int) -> Finding:
        size = found - position
        consequence = f"{plural(size, 'byte')} skipped up to the next batch, an unknown number of records"
        return in_file(self._path, position, self._offset(head), what, consequence, bytes=size)

    # -- what is after the last entry -----------------------------------------------------------------------------

    def _behind(self, position: int, trouble: str | None) -> int | None:
        """Report the bytes at `position`, where no complete entry starts. Returns the position of the next batch; None
        if there is none."""
        length = length_of(self._file)
        left = length - position
        head = self._head(position)
        if not head.strip(b"\0") and zeros_end(self._file, position) >= length:
            self._only_zeros(position, left)
            return None
        wrong = wrong_offset(head[:8], self._base_offset)
        what = wrong or trouble or _torn(head, left)
        found = self._suspects.next_behind(position)
        if found is not None:
            self._on_finding(self._skipped(position, head, what, found.position))
            return found.position
        is_start = position == 0 and (wrong or trouble) is not None
        size = (
            self._suspects.true_size(position)
            if len(head) > ENTRY_HEAD and (not (wrong or trouble) or not position)
            else None
        )
        if size is not None:
            self._on_finding(self._wrong_size(position, size))
            return position + size
        cut = None if is_start else self._suspects.cut_at(position)
        if cut is not None:
            self._on_finding(self._cut_short(position, cut))
            return None
        if self._search.is_used_up:
            what += ", and so many places look like a batch that the search for the next one was stopped"
        elif not (wrong or trouble) and self._is_last:
            what += ", and these are not the beginning of a batch"
        if is_start:
            unread = f"{plural(left, 'byte')} not read"
            self._on_finding(in_file(self._path, 0, None, f"not a log segment: {what}", unread, bytes=left))
        else:
            consequence = f"{plural(left, 'byte')} to the end of the file not read, an unknown number of records"
            self._on_finding(in_file(self._path, position, self._offset(head), what, consequence, bytes=left))
        return None

    def _cut_short(self, position: int, end: int) -> Finding:
        """The note about a truncated append at `position`, which ends at byte `end`."""
        left = length_of(self._file) - position
        head = self._head(position)[: end - position]
        what = _torn(head, end - position)
        if end < position + left:
            what += " and then only zeros"
        consequence = f"an append that was cut short, {plural(left, 'byte')} not read"
        return in_file(self._path, position, self._offset(head), what, consequence, "note", bytes=left)

    def _only_zeros(self, position: int, left: int) -> None:
        if self._is_last:
            what = "only zeros from here"
            consequence = f"pre-allocated, {plural(left, 'byte')} without records"
            self._on_finding(in_file(self._path, position, None, what, consequence, "note", bytes=left))
            return
        what = "only zeros from here, in a file that is not the last of its log"
        consequence = f"{plural(left, 'byte')} not read, an unknown number of records"
        self._on_finding(in_file(self._path, position, None, what, consequence, bytes=left))

    def _head(self, position: int) -> bytes:
        self._file.seek(position)
        return self._file.read(TO_MAGIC)

    def _offset(self, head: bytes) -> int | None:
        """The offset at the start of `head`; None if that offset is impossible in this file."""
        if len(head) < 8 or wrong_offset(head[:8], self._base_offset) is not None:
            return None
        offset: int = _OFFSET.unpack_from(head)[0]
        return offset


def right_crcs(data: bytes, entries: INT64, end: int) -> FLAGS:
    """Whether each entry has a right CRC. The last entry ends at index `end` of `data`."""
    starts = entries.tolist()
    ends = [*starts[1:], end][: len(starts)]
    everywhere: NDArray[Any] = np.ndarray((len(data) - 3,), ">u4", data, 0, (1,))
    is_old = np.frombuffer(data, np.uint8)[entries + 16] < 2
    if not is_old.any():
        stored = everywhere[entries + 17]
        computed = [crc32c(data[start + 21 : stop]) for start, stop in zip(starts, ends, strict=True)]
    else:
        stored = everywhere[np.where(is_old, entries + 12, entries + 17)]
        computed = [
            crc32(data[start + 16 : stop]) if old else crc32c(data[start + 21 : stop])
            for start, stop, old in zip(starts, ends, is_old.tolist(), strict=True)
        ]
    right: FLAGS = stored == np.array(computed, np.int64)
    return right


def entries_of(data: bytes, at: int, end: int) -> tuple[INT64, int]:
    """The indexes at which complete entries start, from index `at` of `data` on, and the index after the last one."""
    indexes: list[int] = []
    append, size_at = indexes.append, _SIZE.unpack_from
    # This loop runs once per batch of a log, so it uses fast local variables.
    last, smallest, head = end - TO_MAGIC, SMALLEST_SIZES[0], ENTRY_HEAD
    while at <= last:
        size = size_at(data, at + 8)[0]
        after = at + head + size
        if size < smallest or after > end:
            break
        append(at)
        at = after
    entries = np.array(indexes, np.int64)
    if not indexes:
        return entries, at
    magics = np.frombuffer(data, np.uint8)[entries + 16]
    sizes = np.diff(entries, append=at) - ENTRY_HEAD
    wrong = np.flatnonzero((magics > 2) | (sizes < SMALLEST[np.minimum(magics, 2)]))
    if wrong.size:
        at = indexes[wrong[0]]
        entries = entries[: wrong[0]]
    return entries, at


def nonsense_at(data: bytes, at: int, end: int) -> str | None:
    """The reason why no entry can start at `at`; None if the available bytes may be the start of an entry."""
    left = end - at
    if left < ENTRY_HEAD:
        return None
    size = _SIZE.unpack_from(data, at + 8)[0]
    if size < SMALLEST_SIZES[0]:
        return f"size {size} is less than the {SMALLEST_SIZES[0]} bytes of the smallest batch"
    if left >= TO_MAGIC:
        magic = data[at + 16]
        if magic > 2:
            return f"magic {magic} is unknown"
        if size < SMALLEST_SIZES[magic]:
            return f"size {size} is less than the {SMALLEST_SIZES[magic]} bytes of the smallest batch of magic {magic}"
    if size > LARGEST_ENTRY:
        return f"size {size} is more than the {LARGEST_ENTRY} bytes that are read as one batch"
    return None


def _needed(data: bytes, at: int, end: int) -> int:
    """The number of bytes from `at` that are needed to continue; 0 at the end of the data."""
    left = end - at
    if not left:
        return 0
    return ENTRY_HEAD + int(_SIZE.unpack_from(data, at + 8)[0]) if left >= ENTRY_HEAD else TO_MAGIC


def _torn(head: bytes, left: int) -> str:
    are = "is" if left == 1 else "are"
    if len(head) < ENTRY_HEAD:
        return f"a batch starts with {ENTRY_HEAD} bytes, but {left} {are} left"
    needed = ENTRY_HEAD + _SIZE.unpack_from(head, 8)[0]
    return f"the batch has {plural(needed, 'byte')}, but {left} {are} left"


def next_offset(segment: SegmentFile) -> int:
    """The offset after the last complete entry of a file that has a correct CRC; 0 if there is none."""
    behind = 0
    for chunk in read_chunks(segment, True, lambda finding: None):
        right = chunk.entries[chunk.right]
        if len(right):
            at = int(right[-1])
            behind = read_head(chunk.data, at, chunk.position + at).last_offset + 1
    return behind
