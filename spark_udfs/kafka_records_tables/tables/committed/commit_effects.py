"""When commits and tombstones take effect: at their place in the log, or at the marker that ends their transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import INT64
from kafka_records_tables.tables.decoded.transactions_settled import ABORTED, COMMITTED, OPEN, Settling, next_markers

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

READS: Final = ("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control")
"""The columns of raw rows that are needed."""

CLOCK: Final = "clock_ms"
"""The column that `with_clock` adds."""

NO_TIME: Final = np.iinfo(np.int64).min
"""In CLOCK, where no record so far has a timestamp."""


class Effect(NamedTuple):
    """Rows that take effect; arrays have an element for each."""

    outcome: str
    """NONE, COMMITTED or UNKNOWN (`transactions_settled`)."""
    rows: pa.RecordBatch
    place: INT64
    """Offset of the record by which it takes effect: its own, or that of the marker. Its own too where the source tells
    that the transaction was committed and has no markers."""
    clock: INT64
    """CLOCK of that record."""

    @property
    def is_transactional(self) -> bool:
        """Whether a transaction wrote the rows."""
        return self.outcome == COMMITTED


def with_clock(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows with CLOCK: the latest timestamp up to a record. As of a moment a record is there exactly if that
    is not later, since such an answer ends before the first record with a later timestamp."""
    latest = NO_TIME
    for batch in batches:
        times = batch.column("timestamp_ms").fill_null(NO_TIME).to_numpy()
        clock = np.maximum.accumulate(np.concatenate([[latest], times]))[1:]
        if len(clock):
            latest = int(clock[-1])
        yield batch.append_column(CLOCK, pa.array(clock, pa.int64()))


def effects(batches: Iterator[pa.RecordBatch], context: Context) -> Iterator[tuple[list[Effect], bool]]:
    """For each of `batches`, which have READS and CLOCK, what has taken effect by its end, and whether rows wait for
    their markers. Rows of aborted and open transactions take none; a tombstone takes effect at once
    (`OffsetMetadataManager.replay`). Rows of one effect are in the order of the log, effects of one batch are in none.

    Raises what `transactions_settled.settled` raises.
    """
    settling = Settling(context, tombstones_at_once=True, last_of_key=False)
    for batch in batches:
        found = []
        for outcome, rows in settling.take(batch):
            if outcome == COMMITTED:
                found.append(_by_markers(rows, batch))
            elif outcome != ABORTED:
                found.append(_at_once(outcome, rows))
        yield found, settling.waits
    yield [_at_once(outcome, rows) for outcome, rows in settling.rest() if outcome not in (ABORTED, OPEN)], False


def _at_once(outcome: str, rows: pa.RecordBatch) -> Effect:
    return Effect(outcome, rows, rows.column("offset").to_numpy(), rows.column(CLOCK).to_numpy())


def _by_markers(rows: pa.RecordBatch, batch: pa.RecordBatch) -> Effect:
    """Rows whose transactions are ended by markers of this batch: each by the first of its producer behind it."""
    markers = batch.filter(pc.is_valid(batch.column("control")))
    ended_by = markers.take(pa.array(next_markers(rows, markers)))
    return Effect(COMMITTED, rows, ended_by.column("offset").to_numpy(), ended_by.column(CLOCK).to_numpy())
