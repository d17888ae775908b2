"""Cutting a log segment file into entries without looking inside them.

A file is a plain row of entries (`FileRecords`), so all it takes is to hop from size to size. A chunk of the file is
in memory at a time; the file is never mapped, because a map of a file that a live broker truncates ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from kafka_records_arrow.batches import ENTRY_HEAD, SMALLEST_SIZES, computed_crc, read_batch
from kafka_records_arrow.problems import OnProblem, SegmentProblem
from kafka_records_arrow.varints import INT64
from kafka_records_runtime.errors import plural

CHUNK: Final = 4 * 1024 * 1024
"""Bytes read at a time; an entry larger than that is read whole."""

LARGEST_ENTRY: Final = 1024 * 1024 * 1024
"""Entries above this size are refused; brokers take a megabyte unless told otherwise (`message.max.bytes`)."""

PAD: Final = 16
"""Zero bytes behind every chunk, so that vectors of positions may look a little further than the last entry."""

_TO_MAGIC: Final = 17
_SIZE: Final = Struct(">i")
_OFFSET: Final = Struct(">q")
_SMALLEST: Final = np.array(SMALLEST_SIZES, np.int64)
_SEARCHED: Final = 2 * 1024 * 1024
_CHECKED: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole entries: `data` (with `PAD` bytes behind them), and for each entry its index in `data` and its size."""

    data: bytes
    position: int
    """Where `data` starts in the file."""
    entries: INT64
    sizes: INT64

    @property
    def magics(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.data, np.uint8)[self.entries + 16]


def read_chunks(path: str, base_offset: int | None, is_last: bool, report: OnProblem) -> Iterator[Chunk]:
    """The entries of a file from its start to where they stop making sense.

    What stands behind the last good entry is reported: as a note if it is zeros or, in the last file of a log
    (`is_last`), an append that was cut short, and as damage otherwise. So is a file that cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            yield from _chunks(file, path, base_offset, is_last, report)
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        report(SegmentProblem(path, None, None, what, "what is left of the file is skipped"))


def _chunks(file: BinaryIO, path: str, base_offset: int | None, is_last: bool, report: OnProblem) -> Iterator[Chunk]:
    position, carried, wanted = 0, b"", CHUNK
    while True:
        block = file.read(wanted)
        data = b"".join((carried, block, bytes(PAD)))
        end = len(data) - PAD
        entries, at = _entries(data, end)
        if len(entries):
            sizes = np.diff(entries, append=at)
            yield Chunk(data, position, entries, sizes)
        if at == end and block:
            position, carried, wanted = position + at, b"", CHUNK
            continue
        if not block and at == end:
            return
        left = end - at
        trouble = _nonsense(data, at, end, base_offset if position + at == 0 else None)
        if trouble is None and block:
            # The entry goes on in the next chunk, unless the file is shorter than the entry claims.
            needed = ENTRY_HEAD + _SIZE.unpack_from(data, at + 8)[0] if left >= ENTRY_HEAD else _TO_MAGIC
            position, carried, wanted = position + at, data[at:end], max(CHUNK, needed - left)
            if needed - left <= CHUNK or needed - left <= _length(file) - file.tell():
                continue
        report(_rest(file, path, position if trouble is None and block else position + at, is_last, trouble))
        return


def _entries(data: bytes, end: int) -> tuple[INT64, int]:
    """The indexes of the whole entries at the start of `data`, and the index behind the last one."""
    at = 0
    indexes: list[int] = []
    append, size_at = indexes.append, _SIZE.unpack_from
    last, smallest = end - _TO_MAGIC, SMALLEST_SIZES[0]
    while at <= last:
        size = size_at(data, at + 8)[0]
        behind = at + ENTRY_HEAD + size
        if size < smallest or behind > end:
            break
        append(at)
        at = behind
    entries = np.array(indexes, np.int64)
    if not indexes:
        return entries, at
    magics = np.frombuffer(data, np.uint8)[entries + 16]
    sizes = np.diff(entries, append=at) - ENTRY_HEAD
    wrong = np.flatnonzero((magics > 2) | (sizes < _SMALLEST[np.minimum(magics, 2)]))
    if wrong.size:
        at = indexes[wrong[0]]
        entries = entries[: wrong[0]]
    return entries, at


def _nonsense(data: bytes, at: int, end: int, named_offset: int | None) -> str | None:
    """Why no entry can start at `at`; None as far as one may.

    `named_offset` is the offset in the name of the file, given for its first entry: an entry lies at most 2^31 - 1
    offsets behind it, since indexes count in int32.
    """
    left = end - at
    if named_offset is not None and left >= 8:
        offset = _OFFSET.unpack_from(data, at)[0]
        if not 0 <= offset - named_offset < 1 << 31:
            return f"offset {offset} cannot stand in a file named for offset {named_offset}"
    size = _SIZE.unpack_from(data, at + 8)[0] if left >= ENTRY_HEAD else None
    if size is not None and size < SMALLEST_SIZES[0]:
        return f"size {size} is less than the {SMALLEST_SIZES[0]} bytes of the smallest batch"
    if size is not None and left >= _TO_MAGIC:
        magic = data[at + 16]
        if magic > 2:
            return f"magic {magic} is unknown"
        if size < SMALLEST_SIZES[magic]:
            return f"size {size} is less than the {SMALLEST_SIZES[magic]} bytes of the smallest batch of magic {magic}"
    if size is not None and size > LARGEST_ENTRY:
        return f"size {size} is more than the {LARGEST_ENTRY} bytes that are read as one batch"
    return None


def _length(file: BinaryIO) -> int:
    here = file.tell()
    length = file.seek(0, 2)
    file.seek(here)
    return length


# -- what stands behind the last entry ---------------------------------------------------------------------------------


def _rest(file: BinaryIO, path: str, position: int, is_last: bool, trouble: str | None) -> SegmentProblem:
    length = _length(file)
    left = length - position
    file.seek(position)
    head = file.read(_TO_MAGIC)
    if not head.strip(b"\0") and _only_zeros(file):
        what, consequence = "nothing but zeros from here on", f"pre-allocated, {plural(left, 'byte')} without records"
        return SegmentProblem(path, position, None, what, consequence, "note", bytes=left)
    offset = _OFFSET.unpack_from(head)[0] if len(head) >= 8 else None
    if trouble is not None:
        if position == 0:
            consequence = f"not a log segment, {plural(left, 'byte')} not read"
            return SegmentProblem(path, 0, None, trouble, consequence, bytes=left)
        consequence = f"{plural(left, 'invalid byte')} at the end of the file, not read"
        return SegmentProblem(path, position, offset, trouble, consequence, bytes=left)
    if len(head) < ENTRY_HEAD:
        what = f"a batch starts with {ENTRY_HEAD} bytes, {left} {'is' if left == 1 else 'are'} left"
    else:
        needed = ENTRY_HEAD + _SIZE.unpack_from(head, 8)[0]
        what = f"the batch has {plural(needed, 'byte')}, {left} {'is' if left == 1 else 'are'} left"
    file.seek(position + 1)
    if is_last and not _holds_batch(file.read(_SEARCHED)):
        consequence = f"an append that was cut short, {plural(left, 'byte')} not read"
        return SegmentProblem(path, position, offset, what, consequence, "note", bytes=left)
    consequence = f"{plural(left, 'invalid byte')} at the end of the file, not read"
    return SegmentProblem(path, position, offset, what, consequence, bytes=left)


def _only_zeros(file: BinaryIO) -> bool:
    while block := file.read(CHUNK):
        if block.count(0) != len(block):
            return False
    return True


def _holds_batch(data: bytes) -> bool:
    """Whether a whole batch with a right CRC stands anywhere in `data`.

    If so, the entry before it was not cut short: its size is wrong, and what follows is lost.
    """
    count = len(data) - ENTRY_HEAD - SMALLEST_SIZES[0]
    if count <= 0:
        return False
    magics = np.frombuffer(data, np.uint8)[16:][:count]
    sizes = np.ndarray((count,), ">i4", data, 8, (1,)).astype(np.int64)
    fits = (magics <= 2) & (sizes >= _SMALLEST[np.minimum(magics, 2)])
    fits &= sizes <= len(data) - ENTRY_HEAD - np.arange(count)
    budget = _CHECKED
    for index in np.flatnonzero(fits).tolist():
        entry = data[index : index + ENTRY_HEAD + int(sizes[index])]
        if computed_crc(entry[16], entry) == read_batch(entry, 0, 0).crc:
            return True
        budget -= len(entry)
        if budget < 0:
            return False
    return False


def next_offset(path: str) -> int:
    """The offset behind the last whole entry of a file; 0 if it has none."""
    behind = 0
    for chunk in read_chunks(path, None, True, lambda problem: None):
        at = int(chunk.entries[-1])
        behind = read_batch(chunk.data, at, chunk.position + at).last_offset + 1
    return behind
