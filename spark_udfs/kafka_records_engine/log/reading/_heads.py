"""The headers of all entries of a chunk as vectors, one for each field."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kafka_records_engine.log.reading._scanning import Chunk
from kafka_records_engine.numpy_types import FLAGS, INT64

_PRODUCERLESS: Final = -1


class Heads:
    """The headers of all entries of a chunk: one int64 vector per field, with an element per entry.

    Fields that magic 0 and 1 do not have are -1, as in `batches.BatchHead`, except `count`, which is meaningless for
    them.
    """

    def __init__(self, chunk: Chunk) -> None:
        self._data = chunk.data
        self._entries = chunk.entries
        self._sizes = chunk.sizes
        self.magic = chunk.magics
        self.is_valid = chunk.right
        """For each entry, whether its CRC is right."""
        self.is_old = self.magic < 2
        self._any_old = bool(self.is_old.any())

    def _field(self, at: int, dtype: str, old: INT64 | int = _PRODUCERLESS) -> INT64:
        values = self._raw(at, dtype)
        return np.where(self.is_old, old, values) if self._any_old else values

    def _raw(self, at: int, dtype: str) -> INT64:
        """The big-endian number at byte `at` of every entry. The padding of `Chunk.data` allows this for short entries
        too."""
        width = np.dtype(dtype).itemsize
        everywhere: NDArray[Any] = np.ndarray((len(self._data) - width + 1,), dtype, self._data, 0, (1,))
        indexes = np.minimum(self._entries + at, len(everywhere) - 1) if self._any_old else self._entries + at
        return everywhere[indexes].astype(np.int64)

    @cached_property
    def offset(self) -> INT64:
        return self._raw(0, ">i8")

    @cached_property
    def leader_epoch(self) -> INT64:
        return self._field(12, ">i4")

    @cached_property
    def attributes(self) -> INT64:
        return self._field(21, ">i2", self._raw(17, ">i1") if self._any_old else -1)

    @cached_property
    def last_offset(self) -> INT64:
        """The last offset of every entry, limited to the largest int64 (`overflows`)."""
        return np.where(self.overflows, np.iinfo(np.int64).max, self.offset + self._last_delta)

    @cached_property
    def overflows(self) -> FLAGS:
        flags: FLAGS = (self.offset > 0) & (self._last_delta > 0) & (self.offset + self._last_delta < 0)
        return flags

    @cached_property
    def _last_delta(self) -> INT64:
        return self._field(23, ">i4", 0)

    @cached_property
    def base_timestamp(self) -> INT64:
        return self._field(27, ">i8")

    @cached_property
    def max_timestamp(self) -> INT64:
        return self._field(35, ">i8")

    @cached_property
    def producer_id(self) -> INT64:
        return self._field(43, ">i8")

    @cached_property
    def producer_epoch(self) -> INT64:
        return self._field(51, ">i2")

    @cached_property
    def base_sequence(self) -> INT64:
        return self._field(53, ">i4")

    @cached_property
    def count(self) -> INT64:
        return self._field(57, ">i4")

    @cached_property
    def codec(self) -> INT64:
        return self.attributes & 0x07

    @cached_property
    def is_transactional(self) -> FLAGS:
        return self._flag(0x10)

    @cached_property
    def is_control(self) -> FLAGS:
        return self._flag(0x20)

    @cached_property
    def stored_crc(self) -> INT64:
        return self._field(17, ">u4", self._raw(12, ">u4") if self._any_old else -1)

    def _flag(self, bit: int) -> FLAGS:
        has: FLAGS = np.logical_and((self.attributes & bit) != 0, ~self.is_old)
        return has
