"""Finds commits that took effect but changed nothing, because the same offset was already committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import INT64
from kafka_records_tables.coordinator.offsets.commit_order import ends, in_effect_by_number
from kafka_records_tables.coordinator.records.latest import joined
from kafka_records_tables.coordinator.transactions import COMMITTED, NONE, Resolved, TransactionResolver, next_markers

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

COMMITS: Final = pa.schema(
    [
        ("offset", pa.int64()),
        ("producer_id", pa.int64()),
        ("transaction", pa.string()),
        ("control", pa.string()),
        ("value", pa.bool_()),
        ("key", pa.int64()),
        ("committed", pa.int64()),
        ("time", pa.int64()),
    ]
)
"""Commits, tombstones and control rows, with the columns that `TransactionResolver` needs (`offset` is the log offset;
`value` is null for tombstones and control rows, and true otherwise) and their content. `key` is a number for the group,
topic and partition (`KeyNumbers`), `committed` is the committed offset, negative if it cannot be read, and `time` is
when the record was written."""

_NOTHING: Final = pa.RecordBatch.from_pylist([], COMMITS)


class RepeatedCommits:
    """Processes the commits of a log partition in order. Memory grows with the number of existing offsets and of
    commits that wait for their markers. In a source without control rows, it grows with all commits after the first
    transactional one."""

    def __init__(self, context: Context) -> None:
        self._settling = TransactionResolver(context, tombstones_at_once=True, last_of_key=False)
        self._has_markers = False
        self._effects: list[pa.RecordBatch] = []
        """The rows that took effect but were not compared yet, with the `place` where they took effect."""
        self._before: pa.RecordBatch | None = None
        """For each partition, the last row that was compared."""

    def take(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Add the rows of COMMITS that follow. Returns the repeated commits that were found since the last call, in no
        particular order."""
        markers = rows.filter(pc.is_valid(rows.column("control")))
        self._has_markers |= markers.num_rows > 0
        for settled in self._settling.take(rows):
            self._keep(settled, markers)
        # Only the end of the log shows that there are no markers. Without markers, commits took effect where they were
        # written.
        return self._compared() if self._has_markers or not self._settling.waits else _NOTHING

    def rest(self) -> pa.RecordBatch:
        """The remaining repeated commits, at the end of the log."""
        for settled in self._settling.rest():
            self._keep(settled, None)
        return self._compared()

    def keys(self) -> INT64:
        """The keys of all rows in memory."""
        held = [self._before] if self._before is not None else []
        columns = [rows.column("key") for rows in (*held, *self._effects)] + self._settling.waiting("key")
        return np.concatenate([np.zeros(0, np.int64), *(column.to_numpy() for column in columns)])

    def _keep(self, settled: Resolved, markers: pa.RecordBatch | None) -> None:
        outcome, rows = settled
        rows = rows.filter(pc.is_null(rows.column("control")))
        if outcome not in (NONE, COMMITTED) or not rows.num_rows:
            return
        place = rows.column("offset")
        if outcome == COMMITTED and markers is not None:
            place = markers.column("offset").take(pa.array(next_markers(rows, markers)))
        self._effects.append(rows.append_column("place", place))

    def _compared(self) -> pa.RecordBatch:
        if not self._effects:
            return _NOTHING
        new = joined(self._effects)
        self._effects = []
        first_new = 0 if self._before is None else self._before.num_rows
        rows = new if self._before is None else joined([self._before, new])
        place, offsets = (rows.column(name).to_numpy() for name in ("place", "offset"))
        order, keys = in_effect_by_number(rows.column("key").to_numpy(), place, offsets)
        committed = rows.column("committed").to_numpy()[order]
        is_same = np.append(False, (keys[1:] == keys[:-1]) & (committed[1:] == committed[:-1]) & (committed[1:] >= 0))
        repeats: INT64 = order[is_same & (order >= first_new)]
        # A tombstone also deletes the waiting commits of its key, so keep the tombstone as long as any commit waits.
        holds = rows.column("value").is_valid().to_numpy(zero_copy_only=False)[order] | self._settling.waits
        self._before = rows.take(pa.array(order[ends(keys) & holds]))
        return rows.take(pa.array(repeats))
