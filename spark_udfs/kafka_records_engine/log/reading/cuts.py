"""Finds offsets at which a log can be split among several readers, with about the same number of bytes for each.

File names contain first offsets, so batch headers are read only in files that are larger than a part. A log may be cut
at any offset, because readers of ranges return each offset once. But a good cut lies between two batches and leads to
parts of about the requested size.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final

from kafka_records_engine.log.files.opened import FrozenFile
from kafka_records_engine.log.format.batches import ENTRY_HEAD, SMALLEST_SIZES
from kafka_records_engine.log.reading._opening import open_log

if TYPE_CHECKING:
    from kafka_records_engine.log.files.discovery import FoundLog

_HEAD: Final = Struct(">qi")
"""Offset and size, the first ENTRY_HEAD bytes of every entry."""
_PIECE: Final = 1024 * 1024


def cuts_of(log: FoundLog, size: int) -> list[int]:
    """Offsets, ascending, at which a log can be cut into parts of about `size` bytes.

    The list is empty if file names are not offsets. A damaged file is not cut after the damage. Remote files are not
    cut at all, because their bytes would have to be fetched.
    """
    found: list[int] = []
    with open_log(log) as opened:
        if any(segment.base_offset is None for segment in opened.segments):
            return []
        filled = 0
        for segment in opened.segments:
            assert segment.base_offset is not None
            if filled and filled + segment.size > size:
                found.append(segment.base_offset)
                filled = 0
            if isinstance(segment.file, FrozenFile) and segment.size > size:
                begin = 0
                for position, offset in _entries(segment.file):
                    if position - begin >= size:
                        found.append(offset)
                        begin = position
                filled = segment.size - begin
            else:
                filled += segment.size
        low = opened.log_start
    ascending: list[int] = []
    for offset in found:
        if offset > (ascending[-1] if ascending else low):
            ascending.append(offset)
    return ascending


def _entries(file: FrozenFile) -> Iterator[tuple[int, int]]:
    """The position and first offset of each entry, as long as they follow one another in order."""
    position, last = 0, -1
    begin, piece = 0, b""
    while True:
        at = position - begin
        if at + ENTRY_HEAD > len(piece):
            file.seek(position)
            begin, piece, at = position, file.read(_PIECE), 0
            if len(piece) < ENTRY_HEAD:
                return
        offset, size = _HEAD.unpack_from(piece, at)
        if size < SMALLEST_SIZES[0] or offset <= last:
            return
        yield position, offset
        position, last = position + ENTRY_HEAD + size, offset
