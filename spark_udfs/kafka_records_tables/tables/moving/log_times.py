"""When records of logs were written, as far as files and commits tell, looked up for many offsets at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.tables.committed.commit_order import running_maximum

NONE: Final = np.iinfo(np.int64).min
"""Stands for null in vectors."""

LATE: Final = np.iinfo(np.int64).max


class Samples:
    """Offsets of some logs, each with a time at which its record was there. Logs have numbers from 0 on."""

    def __init__(self, log: INT64, offset: INT64, ms: INT64) -> None:
        order = np.lexsort((offset, log))
        self._log, self._offset, self._ms = log[order], offset[order], ms[order]
        self._distinct = np.unique(self._offset)
        self._keys = self._log * (len(self._distinct) + 1) + np.searchsorted(self._distinct, self._offset)
        # A record was there no later than any after it.
        last = int(self._log.max(initial=0))
        self._by_then = -running_maximum(last - self._log[::-1], -self._ms[::-1])[::-1]
        self._latest = running_maximum(self._log, self._ms)

    def next_at(self, log: INT64, offset: INT64) -> tuple[FLAGS, INT64]:
        """Whether a log has a sample at an offset or after it, and by when the first of them was there at the latest;
        LATE where there is none. A log below 0 has none."""
        wanted = log * (len(self._distinct) + 1) + np.searchsorted(self._distinct, offset)
        at = np.searchsorted(self._keys, wanted)
        is_there = (at < len(self._keys)) & (log >= 0)
        at = np.where(is_there, at, 0)
        if not len(self._keys):
            return is_there, np.full(len(log), LATE, np.int64)
        is_there &= self._log[at] == log
        return is_there, np.where(is_there, self._by_then[at], LATE)

    def end_at(self, log: INT64, ms: INT64) -> INT64:
        """The offset after the last sample of a log that was there at a time; NONE where none was."""
        if not len(self._keys):
            return np.full(len(log), NONE, np.int64)
        distinct = np.unique(self._latest)
        width = len(distinct) + 1
        keys = self._log * width + np.searchsorted(distinct, self._latest)
        at = np.searchsorted(keys, log * width + np.searchsorted(distinct, ms, side="right"), side="left") - 1
        is_there = (at >= 0) & (log >= 0)
        at = np.where(is_there, at, 0)
        is_there &= self._log[at] == log
        return np.where(is_there, self._offset[at] + 1, NONE)


def flattened(lists: Any, *names: str) -> tuple[INT64, list[INT64]]:
    """Of a column of lists of structs, the row of each element, and some members of it; NONE for null."""
    array = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    rows = pc.list_parent_indices(array).to_numpy().astype(np.int64)
    members = pc.list_flatten(array)
    return rows, [numbers(members.field(name)) for name in names]


def numbers(column: Any) -> INT64:
    """A column of numbers as a vector; NONE for null."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    found: INT64 = array.cast(pa.int64()).fill_null(NONE).to_numpy(zero_copy_only=False)
    return found
