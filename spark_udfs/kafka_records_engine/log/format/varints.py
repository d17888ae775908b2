"""Zigzag varints, the numbers inside records of magic 2: read one at a time, or a whole vector of them at once.

Each byte carries seven bits of the number, lowest group first; its high bit is set if more bytes follow. Zigzag keeps
small negative numbers short (`org.apache.kafka.common.utils.ByteUtils`). A varint has at most 5 bytes and 32 bits, a
varlong at most 10 bytes and 64 bits. Higher bits are dropped, as in Java.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kafka_records_engine.numpy_types import FLAGS, INT64

LONGEST_VARLONG: Final = 10
"""The maximum number of bytes in a varlong. A vector step reads this many bytes from every position."""


class VarintError(ValueError):
    """An unterminated varint: the data ends inside it (`truncated`), or it has more bytes than its type allows."""

    def __init__(self, truncated: bool) -> None:
        super().__init__("ends inside a varint" if truncated else "has a varint that does not end")
        self.truncated = truncated


def read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read the zigzag varint (int32) that starts at `position`. Returns its value and the position after it.

    Raises VarintError if the varint does not end before `end`.
    """
    value, position = _read(data, position, end, 5)
    value &= 0xFFFFFFFF
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read the zigzag varlong (int64) that starts at `position`. Returns its value and the position after it.

    Raises VarintError if the varlong does not end before `end`.
    """
    value, position = _read(data, position, end, LONGEST_VARLONG)
    value &= 0xFFFFFFFFFFFFFFFF
    return (value >> 1) ^ -(value & 1), position


def _read(data: bytes, position: int, end: int, longest: int) -> tuple[int, int]:
    value = shift = 0
    for at in range(position, position + longest):
        if at >= end:
            raise VarintError(truncated=True)
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
    raise VarintError(truncated=False)


def read_varlongs(data: NDArray[np.uint8], positions: INT64) -> tuple[INT64, INT64, FLAGS | None]:
    """Read the zigzag varlong at each of `positions`. Returns the values, the positions after them, and flags for
    unterminated varlongs.

    Every position must be at least `LONGEST_VARLONG` bytes away from the end of `data`. The flags are None in the usual
    case, in which all varlongs are terminated.
    """
    first = data[positions]
    goes_on = first >= 0x80
    many = int(np.count_nonzero(goes_on))
    if not many:
        unsigned = first.astype(np.int64)
        return (unsigned >> 1) ^ -(unsigned & 1), positions + 1, None
    if many < len(positions) // _SPARSE:
        unsigned = first.astype(np.int64)
        values, ends = (unsigned >> 1) ^ -(unsigned & 1), positions + 1
        longer = np.flatnonzero(goes_on)
    else:
        # Most record sizes have two bytes, so read two bytes for every number instead of selecting numbers with a
        # second byte.
        second = data[positions + 1]
        low = (first & 0x7F).astype(np.int16)
        low |= np.where(goes_on, second & 0x7F, np.uint8(0)).astype(np.int16) << 7
        values, ends = ((low >> 1) ^ -(low & 1)).astype(np.int64), positions + 1 + goes_on
        longer = np.flatnonzero(goes_on & (second >= 0x80))
        if not longer.size:
            return values, ends, None
    values[longer], ends[longer], open_ = _read_long(data, positions[longer])
    if open_ is None:
        return values, ends, None
    endless = np.zeros(len(positions), np.bool_)
    endless[longer[open_]] = True
    return values, ends, endless


_SPARSE: Final = 8
"""If fewer than one in this many numbers has a second byte, those numbers are selected and read separately."""


def _read_long(data: NDArray[np.uint8], positions: INT64) -> tuple[INT64, INT64, INT64 | None]:
    """Read varlongs of any length. The last result contains the indices of unterminated ones; None if there are
    none."""
    groups = (data[positions] & 0x7F).astype(np.uint64)
    ends = positions + 1
    open_ = np.arange(len(positions))
    for step in range(1, LONGEST_VARLONG):
        byte = data[positions[open_] + step]
        groups[open_] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * step)
        ends[open_] += 1
        open_ = open_[byte >= 0x80]
        if not open_.size:
            break
    values = ((groups >> np.uint64(1)) ^ (np.uint64(0) - (groups & np.uint64(1)))).view(np.int64)
    return values, ends, open_ if open_.size else None
