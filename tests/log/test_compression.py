"""Every codec: valid, with other framing, truncated, broken, and with a wrong size."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from random import Random
from struct import pack
from time import process_time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_records_engine.log.format import compression
from kafka_records_engine.log.format.compression import Decompressed, decompress
from tests.log.logs import case, entries_of

TEXT = b"".join(b"group-%d committed;" % number for number in range(20_000))
XERIAL = bytes.fromhex("82534e41505059000000000100000001")
NAMES = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


def snappy_block(data: bytes) -> bytes:
    block: bytes = pa.compress(data, "snappy", asbytes=True)
    return block


def framed(data: bytes, size: int = 32 * 1024) -> bytes:
    """As snappy-java writes it."""
    blocks = [snappy_block(data[at : at + size]) for at in range(0, len(data), size)]
    return XERIAL + b"".join(pack(">i", len(block)) + block for block in blocks)


def streamed(codec: str, data: bytes) -> bytes:
    """A frame without its content size."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def packed(codec: int, data: bytes) -> bytes:
    if codec == 1:
        return gzip.compress(data)
    return framed(data) if codec == 2 else streamed(NAMES[codec], data)


@pytest.mark.parametrize("codec", NAMES)
@given(data=st.binary(max_size=200) | st.integers(0, len(TEXT)).map(lambda size: TEXT[:size]))
def test_what_went_in_comes_out(codec: int, data: bytes) -> None:
    assert decompress(codec, packed(codec, data)) == Decompressed(data)


@pytest.mark.parametrize("codec", [1, 3, 4])
def test_several_frames_follow_one_another(codec: int) -> None:
    assert decompress(codec, packed(codec, TEXT) + packed(codec, b"more")) == Decompressed(TEXT + b"more")


def test_snappy_streams_follow_one_another() -> None:
    assert decompress(2, framed(TEXT) + framed(b"more")) == Decompressed(TEXT + b"more")


def test_snappy_without_a_frame() -> None:
    assert decompress(2, snappy_block(TEXT)) == Decompressed(TEXT)


def test_bytes_behind_a_gzip_member_are_left_alone() -> None:
    assert decompress(1, gzip.compress(TEXT) + b"\0\0\0") == Decompressed(TEXT)


def test_lz4_of_magic_0_has_a_wrong_checksum() -> None:
    (entry,) = entries_of(case("magic 0 lz4 three records"))
    frame = entry[entry.index(bytes.fromhex("04224d18")) :]
    assert frame[6] == 0x1A
    found = decompress(3, frame, magic=0)
    assert found.failure is None
    assert len(found.data) == 166
    assert decompress(3, frame, magic=1) == Decompressed(b"", "the lz4 data is broken: ERROR_headerChecksum_invalid")


def test_lz4_checksum_with_all_optional_parts() -> None:
    # Version 1, independent blocks, content size and dictionary id: 14 bytes are under the checksum.
    header = bytes([0x69, 0x40]) + pack("<Q", 3) + pack("<I", 0)
    body = pack("<I", 0x80000003) + b"abc" + pack("<I", 0)
    frame = bytes.fromhex("04224d18") + header + b"?" + body
    assert decompress(3, frame, magic=0) == Decompressed(b"abc")


@pytest.mark.parametrize("data", [b"", b"\x04\x22", bytes.fromhex("04224d18604082")[:6]])
def test_lz4_too_short_for_a_checksum(data: bytes) -> None:
    assert decompress(3, data, magic=0).failure is not None


# -- broken input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codec", "data", "failure"),
    [
        (1, b"", "the gzip data is empty"),
        (1, b"plain text", "the gzip data is broken: decompressing data: incorrect header check"),
        (1, gzip.compress(b"abc", mtime=0)[:-4], "the gzip data ends too early"),
        (2, b"", "the snappy data ends inside its first field, the length of its content"),
        (
            2,
            b"\xff\xff\xff\xff\x0f",
            "5 bytes of snappy data cannot decompress to the 4294967295 bytes that they claim",
        ),
        (2, b"\x05\xff\xff", "the snappy data is broken"),
        (2, XERIAL + b"\0\0", "the snappy data ends inside the field with the length of a block"),
        (2, XERIAL + pack(">i", 9) + b"12", "a snappy block claims to have 9 bytes, but 2 are left"),
        (2, XERIAL + pack(">i", -1), "a snappy block claims to have -1 bytes, but 0 are left"),
        (3, b"", "the lz4 data is empty"),
        (3, b"plain text", "the lz4 data is broken: ERROR_frameType_unknown"),
        (3, streamed("lz4", b"abc")[:-4], "the lz4 data ends too early"),
        (4, b"", "the zstd data is empty"),
        (4, b"plain text", "the zstd data is broken: Unknown frame descriptor"),
        (4, streamed("zstd", b"abc")[:-3], "the zstd data ends too early"),
        (5, b"", "codec 5 is unknown"),
    ],
)
def test_broken_input(codec: int, data: bytes, failure: str) -> None:
    assert decompress(codec, data).failure == failure


@pytest.mark.parametrize("codec", NAMES)
def test_what_precedes_the_break_survives(codec: int) -> None:
    data = packed(codec, TEXT)
    cut = decompress(codec, data[: len(data) - 10])
    assert cut.failure is not None
    assert len(cut.data) > len(TEXT) // 2
    assert TEXT.startswith(cut.data)


@pytest.mark.parametrize("codec", NAMES)
@given(at=st.integers(0), bit=st.integers(0, 7))
def test_flipped_bits_never_raise(codec: int, at: int, bit: int) -> None:
    data = bytearray(packed(codec, TEXT[:5000]))
    data[at % len(data)] ^= 1 << bit
    found = decompress(codec, bytes(data), limit=100_000)
    assert len(found.data) <= 100_000


@pytest.mark.parametrize("codec", NAMES)
def test_bombs_stop_at_the_limit(codec: int) -> None:
    found = decompress(codec, packed(codec, bytes(1_000_000)), limit=100_000)
    assert found.failure == "it decompresses to more than 100000 bytes"
    assert found.data == bytes(100_000)


def test_one_huge_snappy_block_is_not_begun() -> None:
    assert decompress(2, snappy_block(bytes(1_000_000)), limit=100_000) == Decompressed(
        b"", "it decompresses to more than 100000 bytes"
    )


# -- what it costs -----------------------------------------------------------------------------------------------------


class _Counted:
    """A zlib decompressor that counts its input bytes, and the bytes that zlib copies."""

    total = 0

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits=wbits)

    def decompress(self, data: bytes, most: int) -> bytes:
        made = self._inner.decompress(data, most)
        _Counted.total += len(data) + len(self._inner.unconsumed_tail) + len(self._inner.unused_data)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _CountedZlib:
    error = zlib.error
    decompressobj = _Counted


def gzip_work(monkeypatch: pytest.MonkeyPatch, data: bytes) -> int:
    monkeypatch.setattr(_Counted, "total", 0)
    monkeypatch.setattr(compression, "zlib", _CountedZlib)
    assert decompress(1, data).failure is None
    total = _Counted.total
    monkeypatch.undo()
    return total


@pytest.mark.parametrize(
    "make",
    [
        lambda size: gzip.compress(b"") * (size // 20),
        lambda size: gzip.compress(b"some") * (size // 24),
        lambda size: gzip.compress(Random(0).randbytes(size), 1),
        lambda size: gzip.compress(bytes(20 * size), 1),
    ],
    ids=["empty members", "small members", "a large member", "a member of zeros"],
)
def test_the_work_of_gzip_is_linear(monkeypatch: pytest.MonkeyPatch, make: Callable[[int], bytes]) -> None:
    size = 1 << 19
    once = gzip_work(monkeypatch, make(size))
    assert gzip_work(monkeypatch, make(2 * size)) < 2.2 * once
    assert once < 40 * size


EMPTY = {
    1: gzip.compress(b"", mtime=0),
    2: pack(">i", 1) + b"\0",
    3: streamed("lz4", b""),
    4: streamed("zstd", b""),
    5: bytes.fromhex("502a4d18") + bytes(4),
}


@pytest.mark.parametrize(
    ("codec", "empty"), [(1, 1), (2, 2), (3, 3), (3, 5), (4, 4), (4, 5)], ids=lambda number: str(number)
)
def test_the_time_for_empty_frames_is_linear(codec: int, empty: int) -> None:
    # Quadratic work takes sixteen times as long for four times as much.
    def least(count: int) -> float:
        data = (XERIAL if codec == 2 else b"") + EMPTY[empty] * count + (packed(codec, b"end") if codec != 2 else b"")
        times = []
        for _ in range(3):
            started = process_time()
            assert decompress(codec, data) == Decompressed(b"end" if codec != 2 else b"")
            times.append(process_time() - started)
        return min(times)

    assert least(80_000) < 10 * least(20_000) + 0.01
