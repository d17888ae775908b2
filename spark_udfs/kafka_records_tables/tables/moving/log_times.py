"""Looks up when records were written, for many offsets at once, from files and commits."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commit_order import running_maximum, stable_order

NONE: Final = np.iinfo(np.int64).min
"""Represents null in vectors."""

LATE: Final = np.iinfo(np.int64).max

_NARROW: Final = 2**40
"""Values with a smaller difference are used unchanged, because there are fewer than eight million logs."""


class Samples:
    """Offsets in some logs, each with a time by which the record existed. Logs are numbered from 0."""

    def __init__(self, log: INT64, offset: INT64, ms: INT64) -> None:
        order = stable_order(offset - offset.min()) if _has_narrow(offset) else np.argsort(offset, kind="stable")
        order = order[stable_order(log[order])]
        self._log, self._offset, self._ms = log[order], offset[order], ms[order]
        self._by_offset = _Places(self._log, self._offset)
        # This ensures that no record has a later time than the records after it.
        last = int(self._log.max(initial=0))
        self._by_then = -running_maximum(last - self._log[::-1], -self._ms[::-1])[::-1]
        self._latest_ms = running_maximum(self._log, self._ms)
        self._by_time = _Places(self._log, self._latest_ms)

    def next_at(self, log: INT64, offset: INT64) -> tuple[FLAGS, INT64]:
        """Whether a log has a sample at or after an offset, and the time by which the first such record existed; LATE
        if there is none. Negative log numbers have no samples."""
        at = self._by_offset.first_from(log, offset)
        is_there = (at < len(self._log)) & (log >= 0)
        if not len(self._log):
            return is_there, np.full(len(log), LATE, np.int64)
        at = np.where(is_there, at, 0)
        is_there &= self._log[at] == log
        return is_there, np.where(is_there, self._by_then[at], LATE)

    def end_at(self, log: INT64, ms: INT64) -> INT64:
        """The offset after the last sample of a log that existed at a given time; NONE if there is none."""
        if not len(self._log):
            return np.full(len(log), NONE, np.int64)
        at = self._by_time.first_from(log, ms + 1) - 1
        is_there = (at >= 0) & (log >= 0)
        at = np.where(is_there, at, 0)
        is_there &= self._log[at] == log
        return np.where(is_there, self._offset[at] + 1, NONE)

    def last_before(self, log: INT64, ms: INT64) -> tuple[INT64, INT64]:
        """Like `end_at`, but also returns the time by which that sample existed."""
        end = self.end_at(log, ms)
        if not len(self._log):
            return end, end
        at = np.maximum(self._by_time.first_from(log, ms + 1) - 1, 0)
        return end, np.where(end == NONE, NONE, self._latest_ms[at])


class _Places:
    """Values of logs, sorted by log and value, for searching many values at once."""

    def __init__(self, log: INT64, values: INT64) -> None:
        self._distinct = None if _has_narrow(values) else np.unique(values)
        # Do not pass an initial value, because it would count as a value and extend the range back to 1970.
        self._lowest, self._highest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        self._width = 2 + (self._highest - self._lowest if self._distinct is None else len(self._distinct))
        self._keys = log * self._width + self._ranks(values)

    def _ranks(self, values: INT64) -> INT64:
        if self._distinct is None:
            return np.clip(values, self._lowest, self._highest + 1) - self._lowest
        return np.searchsorted(self._distinct, values).astype(np.int64)

    def first_from(self, log: INT64, values: INT64) -> INT64:
        """The index of the first element of a log that is not below a value, or of the element after the log's last
        one."""
        found: INT64 = np.searchsorted(self._keys, log * self._width + self._ranks(values)).astype(np.int64)
        return found


def _has_narrow(values: INT64) -> bool:
    """Whether a log number and a value fit into one number."""
    return len(values) > 0 and int(values.max()) - int(values.min()) < _NARROW


def flattened(lists: Any, *names: str) -> tuple[INT64, list[INT64]]:
    """For a column of lists of structs: the row of each element, and some of its fields, with NONE for null."""
    array = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    rows = pc.list_parent_indices(array).to_numpy().astype(np.int64)
    members = pc.list_flatten(array)
    return rows, [numbers(members.field(name)) for name in names]


def numbers(column: Any) -> INT64:
    """A column of numbers as a vector, with NONE for null."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    found: INT64 = array.cast(pa.int64()).fill_null(NONE).to_numpy(zero_copy_only=False)
    return found
