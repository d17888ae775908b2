"""Segments. The first byte of an input says whether checksums are corrected; the others are the file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from tests.log.logs import segment_cases, with_right_crc
from tests.log.test_mutations import read as read_in_every_way
from tools.guided.target import DATA, Target

_HEAD: Final = 17
_LONGEST: Final = 2000


def read(data: bytes) -> None:
    """Read a file with every reader, and check that they agree. Raises AssertionError, or any error that a damaged file
    must not cause."""
    if data:
        read_in_every_way(file_of(data))


def file_of(data: bytes) -> bytes:
    """The bytes of the file of an input."""
    return _repaired(data[1:]) if data[0] & 1 else data[1:]


def _repaired(data: bytes) -> bytes:
    """The file with the right checksum in each complete entry, so that the content of entries is read."""
    out, at = bytearray(), 0
    while at + _HEAD + 4 <= len(data):
        size = struct.unpack_from(">i", data, at + 8)[0]
        if not _HEAD <= size <= len(data) - at - 12:
            break
        entry = data[at : at + 12 + size]
        out += with_right_crc(entry) if entry[16] <= 2 else entry
        at += len(entry)
    return bytes(out) + data[at:]


def _seeds() -> Iterator[bytes]:
    found = [bytes.fromhex(case["segment_hex"]) for case in segment_cases()["segments"]]
    found += [file.read_bytes() for file in sorted(DATA.glob("topics/kafka-*/segments/*/*.log"))[::4]]
    for data in found:
        for flag in (b"\x00", b"\x01"):
            yield flag + data[:_LONGEST]


TARGET: Final = Target(lambda: list(_seeds()), read)
