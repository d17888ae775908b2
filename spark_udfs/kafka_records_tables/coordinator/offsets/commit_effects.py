"""Determines where commits and tombstones take effect: at their own position in the log, or at the marker that ends
their transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import INT64
from kafka_records_tables.coordinator.transactions import ABORTED, COMMITTED, OPEN, TransactionResolver, next_markers

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

READS: Final = ("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control")
"""The columns of raw rows that this module reads."""

CLOCK: Final = "clock_ms"
"""The column that `Clock` adds."""

NO_TIME: Final = np.iinfo(np.int64).min
"""The value of CLOCK until a record has a timestamp."""


class Effect(NamedTuple):
    """Rows that take effect. Each array has one element per row."""

    outcome: str
    """NONE, COMMITTED or UNKNOWN (see `transactions`)."""
    rows: pa.RecordBatch
    place: INT64
    """Offset of the record at which the row takes effect: the row itself, or the marker of its transaction. If the
    source has no markers but reports that the transaction was committed, it is the row itself."""
    clock: INT64
    """The value of CLOCK when the record was read."""

    @property
    def is_transactional(self) -> bool:
        """Whether the rows were written in a transaction."""
        return self.outcome == COMMITTED


class Clock:
    """Adds the column CLOCK to rows: the latest timestamp of any record up to this one. An answer as of a given time
    ends before the first record with a later timestamp, so it includes exactly the records whose CLOCK is not later
    than that time."""

    def __init__(self) -> None:
        self._latest = NO_TIME

    def added(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows with the column CLOCK. They must follow the rows of the last call."""
        times = batch.column("timestamp_ms").fill_null(NO_TIME).to_numpy()
        clock = np.maximum.accumulate(np.concatenate([[self._latest], times]))[1:]
        if len(clock):
            self._latest = int(clock[-1])
        return batch.append_column(CLOCK, pa.array(clock, pa.int64()))


class Effects:
    """Determines which rows take effect, and when. Commits in aborted and open transactions have no effect; a tombstone
    always takes effect at once (`OffsetMetadataManager.replay`). Raises the errors of
    `transactions.TransactionResolver`."""

    def __init__(self, context: Context) -> None:
        self._settling = TransactionResolver(context, tombstones_at_once=True, last_of_key=False)

    def take(self, batch: pa.RecordBatch) -> tuple[list[Effect], bool]:
        """The rows that have taken effect by the end of a batch, and whether other rows still wait for their markers.
        The batch must have the columns READS and CLOCK. Rows that take effect at the same record are in log order; the
        order is otherwise undefined."""
        found = []
        for outcome, rows in self._settling.take(batch):
            if outcome == COMMITTED:
                found.append(_by_markers(rows, batch))
            elif outcome != ABORTED:
                found.append(_at_once(outcome, rows))
        return found, self._settling.waits

    def rest(self) -> list[Effect]:
        """The rows that take effect at the end of the log, in a source that has no markers but reports how transactions
        ended."""
        return [_at_once(outcome, rows) for outcome, rows in self._settling.rest() if outcome not in (ABORTED, OPEN)]


def _at_once(outcome: str, rows: pa.RecordBatch) -> Effect:
    return Effect(outcome, rows, rows.column("offset").to_numpy(), rows.column(CLOCK).to_numpy())


def _by_markers(rows: pa.RecordBatch, batch: pa.RecordBatch) -> Effect:
    """The rows whose transactions end with markers in this batch, each paired with the next marker of its producer."""
    markers = batch.filter(pc.is_valid(batch.column("control")))
    ended_by = markers.take(pa.array(next_markers(rows, markers)))
    return Effect(COMMITTED, rows, ended_by.column("offset").to_numpy(), ended_by.column(CLOCK).to_numpy())
