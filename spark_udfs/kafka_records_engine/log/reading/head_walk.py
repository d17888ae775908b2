"""Reads the batch headers in a log, starting at an offset, without reading the records.

Small batches are read many at a time, because reading single headers would cost more. Of a large batch, only the header
is read, and the marker if it is a control batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from struct import Struct
from typing import Any, Final

import numpy as np

from kafka_records_engine.log.files.opened import LogFile, OpenLog, SegmentFile
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.format.batches import (
    ENTRY_HEAD,
    RECORDS_AT,
    BrokenRecordsError,
    read_head,
    read_records,
    record_bytes,
)
from kafka_records_engine.log.format.control_records import read_marker
from kafka_records_engine.log.format.offset_index import OffsetIndex
from kafka_records_engine.log.reading._heads import Heads
from kafka_records_engine.log.reading._resync import TO_MAGIC, length_of
from kafka_records_engine.log.reading._scanning import PAD, Chunk, entries_of, nonsense_at
from kafka_records_engine.numpy_types import FLAGS, INT64

_CHUNK: Final = 1024 * 1024
_LARGE: Final = 8 * 1024
"""If batches are larger than this on average, only headers are read."""
_MARKER: Final = 78
"""The size of a control batch as brokers write it: a header and one marker (`EndTransactionMarker`)."""
_STRIDE: Final = _MARKER + 2
_MARKER_TYPE: Final = RECORDS_AT + 8
_SOME: Final = 64
"""The number of headers of large batches to read before checking the average size again."""
_SIZE: Final = Struct(">i")

COMMIT: Final = 1
ABORT: Final = 0
NO_MARKER: Final = -1


@dataclass(slots=True)
class WalkedHeads:
    """Batch headers in log order, one element each. `trouble` says why reading ended early."""

    base: INT64
    last: INT64
    count: INT64
    """The number of records. For an old wrapper of compressed messages, the number of offsets since the previous
    entry."""
    is_control: FLAGS
    is_transactional: FLAGS
    marker: INT64
    """COMMIT or ABORT for the marker of a transaction, otherwise NO_MARKER."""
    producer: INT64
    first_timestamp: INT64
    """The time of the first record; -1 if the header does not contain it."""
    max_timestamp: INT64
    is_append_time: FLAGS
    """Whether all records have the time `max_timestamp`."""
    size: INT64
    """The number of bytes of the batch in the file; 0 if the source has no files."""
    trouble: str | None = None
    place: tuple[str, int] | None = None
    """The file and the byte where `trouble` occurred."""

    def __len__(self) -> int:
        return len(self.base)


class _Trouble(Exception):
    def __init__(self, what: str, position: int) -> None:
        super().__init__(what)
        self.what = what
        self.position = position


def walk(opened: OpenLog, folder: Place | None, start: int, end: int, *, most: int | None = None) -> WalkedHeads:
    """The headers of all batches with offsets from `start` up to `end`, or of about the first `most` of them.

    CRCs are not checked, because they cover the records. Reading ends at bytes that cannot be a batch.
    """
    parts: list[WalkedHeads] = []
    trouble, place, found = None, None, 0
    files = [each for each in opened.segments if each.base_offset is not None]
    for number, segment in enumerate(files):
        following = files[number + 1].base_offset if number + 1 < len(files) else None
        if following is not None and following <= start:
            continue
        if (segment.base_offset or 0) >= end or (most is not None and found >= most):
            break
        stop = end if following is None else min(end, following)
        try:
            for part in _walked(segment, folder, start, stop, None if most is None else most - found):
                found += len(part)
                parts.append(part)
        except _Trouble as error:
            trouble, place = error.what, (segment.path, error.position)
            break
        except OSError as error:
            trouble, place = f"cannot be read: {error.strerror or error}", (segment.path, 0)
            break
    return replace(_together(parts), trouble=trouble, place=place)


def _walked(
    segment: SegmentFile, folder: Place | None, start: int, stop: int, most: int | None
) -> Iterator[WalkedHeads]:
    """The headers in one file, of batches with offsets from `start` up to `stop` or the end of the file."""
    file = segment.file
    if file is None:
        raise _Trouble(segment.trouble, 0)
    position = _start(segment, file, folder, start)
    length = length_of(file)
    is_large = most is not None
    previous, found = (segment.base_offset or 0) - 1, 0
    while position < length and previous < stop - 1 and (most is None or found < most):
        chunk, behind = _single_heads(file, position, length) if is_large else _whole_entries(file, position)
        if not len(chunk.entries):
            # A truncated batch or zeros are damage unless they are at the end of the log.
            if is_large or position + _claimed(file, position) > length:
                raise _Trouble(_why(file, position), position)
            is_large = True  # the batch does not fit into a chunk
            continue
        part = _heads_of(chunk, file, previous)
        before = np.empty_like(part.last)
        before[0], before[1:] = previous, part.last[:-1]
        falls = np.flatnonzero((part.base <= before) | (part.last < part.base))
        is_wanted = (part.last >= start) & (part.base < stop)
        if falls.size:
            is_wanted[falls[0] :] = False
            yield _chosen(part, is_wanted)
            raise _Trouble("the offsets do not increase", _position_in(chunk, int(falls[0]), position))
        previous = int(part.last[-1])
        is_large = behind - position > _LARGE * len(part)
        position = behind
        part = part if is_wanted.all() else _chosen(part, is_wanted)
        found += len(part)
        yield part


def _start(segment: SegmentFile, file: LogFile, folder: Place | None, offset: int) -> int:
    """The position of the batch that contains `offset`, or of an earlier one; 0 if the index has no entry for it."""
    if offset <= (segment.base_offset or 0):
        return 0
    position = OffsetIndex(segment, folder).position_of(offset)
    if position:
        file.seek(position)
        data = file.read(RECORDS_AT)
        if len(data) == RECORDS_AT and nonsense_at(data, 0, len(data)) is None:
            head = read_head(data, 0, position)
            if (segment.base_offset or 0) <= head.offset <= offset:
                return position
    return 0


def _whole_entries(file: LogFile, position: int) -> tuple[Chunk, int]:
    file.seek(position)
    data = file.read(_CHUNK) + bytes(PAD + _STRIDE)
    entries, at = entries_of(data, 0, len(data) - PAD - _STRIDE)
    return _chunk(data, position, entries, np.diff(entries, append=at)), position + at


def _single_heads(file: LogFile, position: int, length: int) -> tuple[Chunk, int]:
    """The concatenated headers of the given batches, without the bytes between them."""
    pieces: list[bytes] = []
    sizes: list[int] = []
    while len(pieces) < _SOME:
        file.seek(position)
        piece = file.read(_STRIDE)
        if len(piece) < TO_MAGIC or nonsense_at(piece, 0, len(piece)) is not None:
            break
        size = ENTRY_HEAD + int(_SIZE.unpack_from(piece, 8)[0])
        if position + size > length:
            break
        pieces.append(piece.ljust(_STRIDE, b"\0"))
        sizes.append(size)
        position += size
    data = b"".join(pieces) + bytes(PAD + _STRIDE)
    return _chunk(data, position - sum(sizes), _STRIDE * np.arange(len(pieces)), np.array(sizes, np.int64)), position


def _chunk(data: bytes, position: int, entries: INT64, sizes: INT64) -> Chunk:
    return Chunk(data, position, entries, sizes, np.ones(len(entries), np.bool_), {})


def _position_in(chunk: Chunk, number: int, position: int) -> int:
    return position + int(chunk.sizes[:number].sum())


def _claimed(file: LogFile, position: int) -> int:
    """The size of a batch according to its header."""
    file.seek(position + ENTRY_HEAD - _SIZE.size)
    size = file.read(_SIZE.size)
    return ENTRY_HEAD + int(_SIZE.unpack(size)[0]) if len(size) == _SIZE.size else ENTRY_HEAD


def _why(file: LogFile, position: int) -> str:
    """Why no batch can start at a position."""
    file.seek(position)
    head = file.read(TO_MAGIC)
    if len(head) == TO_MAGIC and nonsense_at(head, 0, len(head)) is None:
        return "the batch here is longer than the file, or its length is wrong"
    return "no batch can start here"


def _heads_of(chunk: Chunk, file: LogFile, previous: int) -> WalkedHeads:
    heads = Heads(chunk)
    last = heads.last_offset
    base, count, first = heads.offset.copy(), heads.count, heads.base_timestamp
    most = heads.max_timestamp
    if heads.is_old.any():
        before = np.r_[previous, last[:-1]]
        is_wrapper = heads.is_old & ((heads.attributes & 0x07) != 0)
        base = np.where(is_wrapper, before + 1, base)
        count = np.where(heads.is_old, last - base + 1, count)
        stamps = np.array([_old_timestamp(chunk, each) for each in range(len(base))], np.int64)
        first = np.where(heads.is_old, np.where(is_wrapper, -1, stamps), first)
        most = np.where(heads.is_old, stamps, most)
    has_horizon = np.logical_and((heads.attributes & 0x40) != 0, ~heads.is_old)
    return WalkedHeads(
        base=base,
        last=last,
        count=count,
        is_control=heads.is_control,
        is_transactional=heads.is_transactional,
        marker=_markers(chunk, heads, file),
        producer=heads.producer_id,
        first_timestamp=np.where(has_horizon, -1, first),
        max_timestamp=most,
        is_append_time=np.logical_and((heads.attributes & 0x08) != 0, heads.magic > 0),
        size=chunk.sizes.astype(np.int64),
    )


def _old_timestamp(chunk: Chunk, number: int) -> int:
    at = int(chunk.entries[number])
    return read_head(chunk.data, at, 0).max_timestamp if chunk.data[at + 16] < 2 else -1


def _markers(chunk: Chunk, heads: Heads, file: LogFile) -> INT64:
    """For each control batch, how its transaction ended."""
    markers = np.full(len(chunk.entries), NO_MARKER, np.int64)
    ends = np.flatnonzero(heads.is_control & heads.is_transactional)
    is_plain = (chunk.sizes[ends] == _MARKER) & (heads.codec[ends] == 0) & (heads.count[ends] == 1)
    plain = ends[is_plain]
    if plain.size:
        data = np.frombuffer(chunk.data, np.uint8)
        markers[plain] = data[chunk.entries[plain] + _MARKER_TYPE]
    for number in ends[~is_plain].tolist():
        file.seek(_position_in(chunk, number, chunk.position))
        markers[number] = _marker_of(file.read(int(chunk.sizes[number])))
    return markers


def _marker_of(entry: bytes) -> int:
    head = read_head(entry, 0, 0)
    try:
        for record in read_records(head, record_bytes(head, entry).data):
            control = read_marker(record.key, record.value).control
            if control is not None:
                return COMMIT if control == "commit" else ABORT
    except BrokenRecordsError:
        pass
    return NO_MARKER


_ARRAYS: Final = tuple(name for name in WalkedHeads.__slots__ if name not in ("trouble", "place"))


def _chosen(heads: WalkedHeads, which: FLAGS) -> WalkedHeads:
    arrays: list[Any] = [getattr(heads, name)[which] for name in _ARRAYS]
    return WalkedHeads(*arrays)


def _together(parts: list[WalkedHeads]) -> WalkedHeads:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none, no = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return WalkedHeads(none, none, none, no, no, none, none, none, none, no, none)
    arrays: list[Any] = [np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS]
    return WalkedHeads(*arrays)
