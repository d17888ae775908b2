"""Computes the two checksums of a Kafka log: CRC-32C for record batches (magic 2), CRC-32 for older messages.

CRC-32C (Castagnoli, reflected polynomial 0x82f63b78) comes from the google-crc32c package, which uses a processor
instruction. If that package is missing, as on a cluster with only numpy and pyarrow, a lookup table computes the same
checksum, at about ten megabytes per second instead of several thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from zlib import crc32

__all__ = ["crc32", "crc32c", "crc32c_by_table"]

_POLYNOMIAL: Final = 0x82F63B78


def _table() -> tuple[int, ...]:
    entries = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        entries.append(value)
    return tuple(entries)


_TABLE: Final = _table()


def crc32c_by_table(data: bytes) -> int:
    """CRC-32C of `data`, computed without a library."""
    table = _TABLE
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _fastest() -> Callable[[bytes], int]:
    try:
        from google_crc32c import implementation, value
    except ImportError:
        return crc32c_by_table
    # Without its C extension, google-crc32c is slower than our table.
    chosen: Callable[[bytes], int] = value if implementation == "c" else crc32c_by_table
    return chosen


crc32c: Final = _fastest()
"""CRC-32C of the bytes, as an unsigned 32-bit number (`org.apache.kafka.common.utils.Crc32C`)."""
