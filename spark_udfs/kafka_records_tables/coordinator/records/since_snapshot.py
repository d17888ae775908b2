"""Finds the records that determine the state of each share partition: its last snapshot, and the updates after it.

Rows are collected. Once there are enough, rows that a later snapshot of the same share partition replaces are dropped.
Memory grows with the number of share partitions and of updates between two snapshots
(`share.coordinator.snapshot.update.records.per.snapshot`, 500 by default), as it does in the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import messages, prefix_column
from kafka_records_engine.numpy_types import FLAGS
from kafka_records_tables.coordinator.records.latest import codes_of, joined

_MOST_ROWS: Final = 65_536
"""Superseded rows are dropped once this many rows have been collected, or twice as many as were kept the last time if
that is more."""


class SinceSnapshot:
    """Keeps the given `columns` of rows, which must include `key` and `offset`. Rows must be added in log order.

    The keys of a snapshot (record type `snapshot`) and of its updates differ only in the record type. The tombstone of
    a snapshot also replaces everything before it.
    """

    def __init__(self, columns: Iterable[str], snapshot: int) -> None:
        self._columns = list(columns)
        self._snapshot = snapshot
        self._rows: list[pa.RecordBatch] = []
        self._count = 0
        self._kept = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add some rows. Every key must have a record type."""
        if batch.num_rows:
            self._rows.append(batch.select([name for name in self._columns if name in batch.schema.names]))
            self._count += batch.num_rows
            if self._count > max(_MOST_ROWS, 2 * self._kept):
                self._squeeze()

    def rows(self) -> pa.RecordBatch | None:
        """The remaining rows, in their order; None if there are none."""
        if not self._rows:
            return None
        self._squeeze()
        return self._rows[0]

    def _squeeze(self) -> None:
        rows = joined(self._rows)
        rows = rows.filter(pa.array(self._counts(rows)))
        self._rows = [rows]
        self._count = self._kept = rows.num_rows

    def _counts(self, rows: pa.RecordBatch) -> FLAGS:
        """Flags for the rows from the last snapshot of their share partition on."""
        keys = rows.column("key")
        types, _ = prefix_column(keys)
        partitions = codes_of([messages(keys)])
        offsets = rows.column("offset").to_numpy()
        is_snapshot = types == self._snapshot
        last = np.full(len(keys) + 1, -1, np.int64)
        np.maximum.at(last, partitions[is_snapshot], offsets[is_snapshot])
        counts: FLAGS = offsets >= last[partitions]
        return counts
