"""Finds where the compressed records of a batch end, by the framing of their codec.

Compressed data shows where it ends, independently of the batch's size field. Gzip marks the end in the stream; lz4 and
zstd have block sizes and a last block; snappy has only block sizes. The decompressed output is discarded.

Facts: RFC 1952 and 1951, the LZ4 frame format, RFC 8878 (zstd), the snappy format description, and the framing of
snappy-java's SnappyOutputStream.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from struct import Struct
from typing import Final, Literal, NamedTuple

from kafka_records_engine.log.files.opened import Readable
from kafka_records_engine.log.format.compression import (
    MAX_DECOMPRESSED,
    SNAPPY_MOST_GAIN,
    XERIAL_HEAD,
    XERIAL_HEAD_SIZE,
)

ExtentState = Literal["whole", "cut", "broken"]

_WINDOW: Final = 4096
_PIECE: Final = 64 * 1024
_LZ4_MAGIC: Final = bytes.fromhex("04224d18")
_ZSTD_MAGIC: Final = bytes.fromhex("28b52ffd")
_LARGEST_ZSTD_BLOCK: Final = 128 * 1024
_BIG_INT: Final = Struct(">i")
_INT: Final = Struct("<I")


class Extent(NamedTuple):
    """Where the content of a batch ends. `whole`: the content ends at byte `end` of the file. `cut`: the bytes are
    valid, but the content continues after them. `broken`: the bytes from `end` on are invalid."""

    end: int
    state: ExtentState


class CutError(Exception):
    """The available bytes end in the middle of a value."""


class Window:
    """The bytes of a file up to byte `end`, read a few kilobytes at a time."""

    def __init__(self, file: Readable, end: int) -> None:
        self.end = end
        self._file = file
        self._start = 0
        self._data = b""

    def take(self, position: int, size: int) -> bytes:
        """The `size` bytes at `position`; fewer at the end of the window."""
        at = position - self._start
        size = min(size, self.end - position)
        if size <= 0:
            return b""
        if at < 0 or at + size > len(self._data):
            self._file.seek(position)
            self._start, self._data, at = position, self._file.read(min(max(size, _WINDOW), self.end - position)), 0
        return self._data[at : at + size]

    def exactly(self, position: int, size: int) -> bytes:
        """The `size` bytes at `position`. Raises CutError if there are fewer."""
        data = self.take(position, size)
        if len(data) < size:
            raise CutError
        return data

    def byte(self, position: int) -> int:
        """The byte at `position`. Raises CutError if there is none."""
        at = position - self._start
        if 0 <= at < len(self._data) and position < self.end:
            return self._data[at]
        return self.exactly(position, 1)[0]


class _BrokenError(Exception):
    """The bytes from byte `at` of the file cannot come from any encoder."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def stream_extent(codec: int, window: Window, at: int, spend: Callable[[int], bool]) -> Extent:
    """Find where the compressed records that start at byte `at` end. `codec` is the value of attribute bits 0-2, not 0.

    A snappy stream has no end marker: the result is `cut` if the bytes end, even between two blocks, or `whole` if
    zeros follow a block. `spend` is called with a number of bytes before they are decompressed; if it returns False,
    the stream counts as broken.
    """
    try:
        if codec == 1:
            return _gzip(window, at, spend)
        if codec == 2:
            return _snappy(window, at, spend)
        if codec == 3:
            return Extent(_lz4_end(window, at), "whole")
        if codec == 4:
            return Extent(_zstd_end(window, at), "whole")
    except CutError:
        return Extent(window.end, "cut")
    except _BrokenError as broken:
        return Extent(broken.at, "broken")
    return Extent(at, "broken")


def _gzip(window: Window, at: int, spend: Callable[[int], bool]) -> Extent:
    member = zlib.decompressobj(wbits=31)
    position, made, is_done = at, 0, False
    while not is_done:
        given = window.take(position, _PIECE)
        try:
            piece = member.decompress(given, _PIECE)
        except zlib.error:
            return Extent(position, "broken")
        is_done = member.eof
        used = len(given) - len(member.unused_data if is_done else member.unconsumed_tail)
        position += used
        made += len(piece)
        if made > MAX_DECOMPRESSED or not spend(used):
            return Extent(position, "broken")
        if not given and not piece and not is_done:
            return Extent(position, "cut")
    return Extent(position, "whole")


def _lz4_end(window: Window, at: int) -> int:
    _check_start(window, at, _LZ4_MAGIC)
    flags, descriptor = window.exactly(at + 4, 2)
    if flags >> 6 != 1 or descriptor & 0x8F or descriptor >> 4 < 4:
        raise _BrokenError(at)
    largest = 1 << (8 + 2 * (descriptor >> 4))
    at += 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    while True:
        size: int = _INT.unpack(window.exactly(at, 4))[0]
        if not size:
            break
        if size & 0x7FFFFFFF > largest:
            raise _BrokenError(at)
        at = _behind(window, at + 4, (size & 0x7FFFFFFF) + (4 if flags & 0x10 else 0))
    return _behind(window, at + 4, 4 if flags & 0x04 else 0)


def _zstd_end(window: Window, at: int) -> int:
    _check_start(window, at, _ZSTD_MAGIC)
    flags = window.byte(at + 4)
    if flags & 0x08:
        raise _BrokenError(at)
    is_single = bool(flags & 0x20)
    content_size = (1 if is_single else 0, 2, 4, 8)[flags >> 6]
    at = _behind(window, at + 5, (0 if is_single else 1) + (0, 1, 2, 4)[flags & 0x03] + content_size)
    is_last = False
    while not is_last:
        head = int.from_bytes(window.exactly(at, 3), "little")
        is_last, kind, size = bool(head & 1), (head >> 1) & 3, head >> 3
        if kind == 3 or size > _LARGEST_ZSTD_BLOCK:
            raise _BrokenError(at)
        at = _behind(window, at + 3, 1 if kind == 1 else size)
    return _behind(window, at, 4 if flags & 0x04 else 0)


def _check_start(window: Window, at: int, magic: bytes) -> None:
    start = window.take(at, len(magic))
    if start != magic[: len(start)]:
        raise _BrokenError(at)
    if len(start) < len(magic):
        raise CutError


def _behind(window: Window, at: int, size: int) -> int:
    """The position after the `size` bytes at `at`. Raises CutError if the file ends first."""
    if at + size > window.end:
        raise CutError
    return at + size


# -- snappy ------------------------------------------------------------------------------------------------------------


def _snappy(window: Window, at: int, spend: Callable[[int], bool]) -> Extent:
    start = window.take(at, len(XERIAL_HEAD))
    if start != XERIAL_HEAD[: len(start)]:
        return _bare_block(window, at, spend)
    at = _behind(window, at, XERIAL_HEAD_SIZE)
    while at < window.end:
        size: int = _BIG_INT.unpack(window.exactly(at, 4))[0]
        if not size:
            # The last block is followed by zeros, or by the next batch, whose offset starts with zeros.
            return Extent(at, "whole")
        if size < 0:
            raise _BrokenError(at)
        made, _ = _content_size(window, at + 4)
        if made > size * SNAPPY_MOST_GAIN:
            raise _BrokenError(at)
        at = _behind(window, at + 4, size)
    return Extent(at, "cut")


def _content_size(window: Window, at: int) -> tuple[int, int]:
    """The uncompressed size at the start of a block, and the position where its elements start."""
    size = 0
    for number in range(5):
        byte = window.byte(at + number)
        size |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return size, at + number + 1
    raise _BrokenError(at)


def _bare_block(window: Window, at: int, spend: Callable[[int], bool]) -> Extent:
    size, at = _content_size(window, at)
    made = 0
    while made < size:
        start = at
        tag = window.byte(at)
        kind = tag & 3
        if kind == 0:
            length, at = tag >> 2, at + 1
            if length >= 60:
                width = length - 59
                length, at = int.from_bytes(window.exactly(at, width), "little"), at + width
            length += 1
            at += length
        else:
            width = (1, 2, 4)[kind - 1]
            back = int.from_bytes(window.exactly(at + 1, width), "little")
            length, back = (4 + (tag >> 2 & 7), back | tag >> 5 << 8) if kind == 1 else (1 + (tag >> 2), back)
            at += 1 + width
            if not 0 < back <= made:
                raise _BrokenError(start)
        made += length
        if made > size or made > MAX_DECOMPRESSED or not spend(at - start):
            raise _BrokenError(start)
        if at > window.end:
            raise CutError
    return Extent(at, "whole")
