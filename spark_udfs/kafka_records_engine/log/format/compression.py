"""Decompresses record batches, in the on-disk formats of all codecs, with only zlib and pyarrow.

Every decoder returns the bytes that it could read *and* the reason why it stopped, so records before damage are kept.
Memory is limited: decoders produce output in pieces, up to a limit, and sizes in the input are trusted only up to the
codec's highest compression ratio.

Facts: KIP-110 (zstd), `org.apache.kafka.common.compress`, the framing of snappy-java's SnappyOutputStream, the LZ4
frame format; KAFKA-3160 for the header checksum of magic 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from struct import iter_unpack, unpack_from
from typing import Any, Final

import pyarrow as pa

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""Kafka's names of the codecs. The index of a name is the codec's number in attribute bits 0-2."""

MAX_DECOMPRESSED: Final = 256 * 1024 * 1024
"""The maximum number of bytes to which one batch may decompress. By default, a broker accepts batches of up to a
megabyte (`message.max.bytes`), so only a decompression bomb exceeds this limit."""

_PIECE: Final = 64 * 1024
_FIRST_STEP: Final = 256
XERIAL_HEAD: Final = bytes.fromhex("82534e4150505900")
XERIAL_HEAD_SIZE: Final = 16
SNAPPY_MOST_GAIN: Final = 22
"""A snappy copy element turns three bytes into at most 64."""


@dataclass(frozen=True, slots=True)
class Decompressed:
    """Decompressed bytes, and the reason why decompression stopped early; None if the input was complete."""

    data: bytes
    failure: str | None = None


class _BrokenError(Exception):
    """The reason why a decoder cannot continue."""


def decompress(codec: int, data: bytes, *, magic: int = 2, limit: int | None = None) -> Decompressed:
    """Decompress the records of a batch. Bad input never raises an error.

    `codec` is the value of attribute bits 0-2, here 1 to 4. `magic` matters only for lz4. At most `limit` bytes are
    returned, by default MAX_DECOMPRESSED.
    """
    if limit is None:
        limit = MAX_DECOMPRESSED
    if codec == 1:
        pieces = _gzip(data)
    elif codec == 2:
        pieces = _snappy(data, limit)
    elif codec == 3:
        pieces = _stream("lz4", _with_right_lz4_checksum(data) if magic == 0 else data)
    elif codec == 4:
        pieces = _stream("zstd", data)
    else:
        return Decompressed(b"", f"codec {codec} is unknown")
    return _collect(pieces, limit)


def _collect(pieces: Iterator[bytes], limit: int) -> Decompressed:
    first = b""
    more = BytesIO()  # BytesIO returns its bytes without a copy. These bytes may be most of the memory in use.
    size = 0
    failure = None
    try:
        for piece in pieces:
            if not size:
                first = piece
            else:
                if first:
                    more.write(first)
                    first = b""
                more.write(piece)
            size += len(piece)
            if size > limit:
                failure = f"it decompresses to more than {limit} bytes"
                break
    except _BrokenError as broken:
        failure = str(broken)
    if size > limit:
        more.truncate(limit)
    return Decompressed(first[:limit] or more.getvalue(), failure)


# -- gzip --------------------------------------------------------------------------------------------------------------


def _gzip(data: bytes) -> Iterator[bytes]:
    """Decompress members one after another, as Java's GZIPInputStream does, ignoring bytes after the last one."""
    if not data:
        raise _BrokenError("the gzip data is empty")
    view = memoryview(data)
    at = 0
    while True:
        member = zlib.decompressobj(wbits=31)
        # zlib copies unused input and a gzip member may be empty, so the input is passed in small steps.
        step = _FIRST_STEP
        is_done = False
        while not is_done:
            given = view[at : at + step]
            try:
                piece = member.decompress(given, _PIECE)
            except zlib.error as error:
                raise _BrokenError(f"the gzip data is broken: {str(error).removeprefix('Error -3 while ')}") from error
            is_done = member.eof
            at += len(given) - len(member.unused_data if is_done else member.unconsumed_tail)
            step = max(step // 2, _FIRST_STEP) if member.unconsumed_tail else min(2 * step, _PIECE)
            if piece:
                yield piece
            elif not given and not is_done:
                raise _BrokenError("the gzip data ends too early")
        if bytes(view[at : at + 2]) != b"\x1f\x8b":
            return


# -- snappy ------------------------------------------------------------------------------------------------------------


def _snappy(data: bytes, limit: int) -> Iterator[bytes]:
    """Decompress the blocks after snappy-java's 16-byte header or, without such a header, a single bare block."""
    if data[:8] != XERIAL_HEAD:
        yield _snappy_block(data, limit)
        return
    position = XERIAL_HEAD_SIZE
    while position < len(data):
        if data[position : position + 8] == XERIAL_HEAD:  # several streams may be concatenated
            position += XERIAL_HEAD_SIZE
            continue
        if position + 4 > len(data):
            raise _BrokenError("the snappy data ends inside the field with the length of a block")
        (size,) = unpack_from(">i", data, position)
        position += 4
        if size < 0 or position + size > len(data):
            raise _BrokenError(f"a snappy block claims to have {size} bytes, but {len(data) - position} are left")
        yield _snappy_block(data[position : position + size], limit)
        position += size


def _snappy_block(block: bytes, limit: int) -> bytes:
    size = shift = 0
    for at in range(5):
        if at == len(block):
            raise _BrokenError("the snappy data ends inside its first field, the length of its content")
        size |= (block[at] & 0x7F) << shift
        shift += 7
        if block[at] < 0x80:
            break
    if size > len(block) * SNAPPY_MOST_GAIN:
        raise _BrokenError(f"{len(block)} bytes of snappy data cannot decompress to the {size} bytes that they claim")
    if size > limit:
        raise _BrokenError(f"it decompresses to more than {limit} bytes")
    if size == 0:
        return b""
    try:
        content: bytes = _SNAPPY.decompress(block, size, asbytes=True)
    except (OSError, pa.ArrowException) as error:
        raise _BrokenError("the snappy data is broken") from error
    return content


_SNAPPY: Final = pa.Codec("snappy")


# -- lz4 and zstd ------------------------------------------------------------------------------------------------------


def _stream(codec: str, data: bytes) -> Iterator[bytes]:
    """Decompress frames one after another. Blocks of a damaged frame that precede the damage are returned."""
    if not data:
        raise _BrokenError(f"the {codec} data is empty")
    done = 0
    try:
        with _open(codec, data) as stream:
            while piece := stream.read(_PIECE):
                done += len(piece)
                yield piece
        return
    except (OSError, pa.ArrowException) as error:
        detail = _detail(codec, str(error))
    # A failed read does not return the bytes before the failure, so retry with smaller and smaller sizes.
    step = _PIECE // 2
    while step:
        with _open(codec, data) as stream:
            if _skipped(stream, done):
                try:
                    piece = stream.read(step)
                except (OSError, pa.ArrowException):
                    piece = b""
                if piece:
                    done += len(piece)
                    yield piece
        step //= 2
    raise _BrokenError(detail)


def _open(codec: str, data: bytes) -> Any:
    return pa.CompressedInputStream(pa.BufferReader(data), codec)


def _skipped(stream: Any, size: int) -> bool:
    """Skip `size` bytes that were read before."""
    while size:
        got = len(stream.read(min(size, _PIECE)))
        if not got:
            return False
        size -= got
    return True


def _detail(codec: str, error: str) -> str:
    if "Truncated" in error:
        return f"the {codec} data ends too early"
    return f"the {codec} data is broken: {error.rpartition(': ')[2]}"


_LZ4_MAGIC: Final = bytes.fromhex("04224d18")


def _with_right_lz4_checksum(data: bytes) -> bytes:
    """Correct the header checksum of an LZ4 frame.

    Producers of magic 0 wrote a checksum that also covers the magic number of the frame, and Kafka does not check it
    (KAFKA-3160). The library checks it, so the byte is replaced.
    """
    if len(data) < 7 or data[:4] != _LZ4_MAGIC:
        return data
    flags = data[4]
    end = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    if len(data) <= end:
        return data
    return data[:end] + bytes([(_xxh32_short(data[4:end]) >> 8) & 0xFF]) + data[end + 1 :]


def _xxh32_short(data: bytes) -> int:
    """xxHash-32 with seed 0, for fewer than 16 bytes (a frame descriptor has at most 14)."""
    value = (0x165667B1 + len(data)) & _WORD
    words = len(data) // 4
    for (word,) in iter_unpack("<I", data[: 4 * words]):
        value = _rotated(value + word * 0xC2B2AE3D, 17) * 0x27D4EB2F & _WORD
    for byte in data[4 * words :]:
        value = _rotated(value + byte * 0x165667B1, 11) * 0x9E3779B1 & _WORD
    value = (value ^ (value >> 15)) * 0x85EBCA77 & _WORD
    value = (value ^ (value >> 13)) * 0xC2B2AE3D & _WORD
    return value ^ (value >> 16)


_WORD: Final = 0xFFFFFFFF


def _rotated(value: int, bits: int) -> int:
    value &= _WORD
    return ((value << bits) | (value >> (32 - bits))) & _WORD
