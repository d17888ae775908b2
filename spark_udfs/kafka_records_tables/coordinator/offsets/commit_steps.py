"""How commits change committed offsets, in the order in which they took effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commits import COMMITS, report_undecided
from kafka_records_tables.coordinator.offsets.decoded_commits import DecodedCommits
from kafka_records_tables.coordinator.offsets.last_commits import NOT_USED
from kafka_records_tables.coordinator.records.decoded_records import filter_record_types, numbers_of
from kafka_records_tables.coordinator.records.latest import joined
from kafka_records_tables.coordinator.records.lot_size import LOT_ROWS
from kafka_records_tables.coordinator.transactions import (
    ABORTED,
    COMMITTED,
    OPEN,
    UNKNOWN,
    Resolved,
    TransactionResolver,
    next_markers,
)

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

READS: Final = ("offset", "key", "value", "producer_id", "transaction", "control")
"""The columns of raw rows that this module reads."""


_KEPT: Final = ("offset", "key", "value", "producer_id", "file", "position", "base_offset")
"""The columns that are kept after a row's transaction has ended."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Commits and tombstones. Each vector has one element per commit or tombstone."""

    keys: pa.RecordBatch
    """The keys, with the columns `decoded_commits.KEY`. A key may occur several times."""
    ids: pa.Array
    """Topic ids as strings. An id may occur several times."""
    key: INT64
    """For each step, the index of its key in `keys`."""
    topic_id: INT64
    """For each step, the index in `ids` of the topic id that the commit names; -1 if it names none."""
    is_value: FLAGS
    """True for a commit. False for a tombstone, which does not use `offset` and `commit_timestamp_ms`."""
    offset: INT64
    commit_timestamp_ms: INT64
    producer_id: INT64
    """The id of the producer that wrote the transaction."""
    is_transactional: FLAGS
    """True for a commit in a transaction; False outside of transactions, or if the producer is unknown."""
    log_offset: INT64
    """The offset of the record in the log."""
    counted_at: INT64
    """The offset at which the step took effect: that of the record, or of the marker of its transaction. If the source
    has no markers but reports that the transaction was committed, it is the offset of the record."""

    @property
    def count(self) -> int:
        """The number of steps."""
        return len(self.key)


class StepLot(NamedTuple):
    """The effects of some rows of the log, which follow the rows of the previous lot."""

    steps: Steps | None
    """The steps; None if nothing took effect."""
    end: int
    """The offset after the last of these rows."""
    waits_from: int
    """The offset of the first commit that still waits for its marker; `end` if no commit waits."""


_NOT_COMPARED: Final = "left out: the offsets before and after it are compared with each other"


class CommitSteps:
    """Resolves the transactions of one log partition's commits, and decodes the commits. Memory grows with the rows not
    yet returned."""

    def __init__(self, schemas: Mapping[int, RecordSchema], context: Context) -> None:
        self._schemas = schemas
        self._context = context
        self._types = numbers_of(schemas, COMMITS)
        # Without control rows, the commits of one producer may belong to several transactions, so each commit counts as
        # a step.
        self._settling = TransactionResolver(context, tombstones_at_once=True, last_of_key=False)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._end = self._kept = 0

    def take(self, batch: pa.RecordBatch) -> Iterator[StepLot]:
        """Add the raw rows that follow; they have the columns READS, and rows of other types are skipped. Once many
        rows have been collected, it yields the steps that took effect. Steps of rows that are added later take effect
        after these.

        Reports unreadable commits, and commits whose effect is unknown.
        """
        chosen = batch.select([name for name in (*_KEPT, "transaction", "control") if name in batch.schema.names])
        rows = filter_record_types(chosen, self._types, self._context, NOT_USED)
        if rows.num_rows:
            markers = rows.filter(pc.is_valid(rows.column("control")))
            for settled in self._settling.take(rows):
                self._keep(settled, markers)
        if batch.num_rows:
            self._rows += batch.num_rows
            self._end = int(batch.column("offset")[-1].as_py()) + 1
            # The caller loops over all keys once per batch, so batches must not be small.
            if self._rows > max(LOT_ROWS, 2 * self._kept):
                yield self._lot()

    def rest(self) -> Iterator[StepLot]:
        """The remaining steps at the end of the log, including commits without a marker."""
        for settled in self._settling.rest():
            self._keep(settled, None)
        yield self._lot()

    def _lot(self) -> StepLot:
        steps = self._steps()
        self._rows, self._kept = 0, 0 if steps is None else max(self._kept, steps.keys.num_rows)
        waits_from = self._settling.waits_from
        return StepLot(steps, self._end, self._end if waits_from is None else waits_from)

    def _steps(self) -> Steps | None:
        if not self._waiting:
            return None
        rows = joined(self._waiting)
        self._waiting = []
        decoded, context = DecodedCommits(rows, self._schemas), self._context
        is_unknown = rows.column("counted_at").is_null().to_numpy(zero_copy_only=False)
        usable = decoded.has_key & ~decoded.has_error
        if not decoded.is_plain:
            decoded.found.report(context, lambda row: _NOT_COMPARED if decoded.has_key[row] else NOT_USED)
        if is_unknown.any():
            report_undecided(decoded.found, self._types, usable & is_unknown, context, _NOT_COMPARED, what="a commit")
        return _steps(decoded, usable & ~is_unknown)

    def _keep(self, settled: Resolved, markers: pa.RecordBatch | None) -> None:
        """Keep rows, each with the position at which it takes effect; null if it is unknown whether it does."""
        outcome, rows = settled
        if outcome in (ABORTED, OPEN) or not rows.num_rows:
            return
        counted_at = rows.column("offset")
        if outcome == UNKNOWN:
            counted_at = pa.nulls(rows.num_rows, pa.int64())
        elif outcome == COMMITTED and markers is not None:
            counted_at = markers.column("offset").take(pa.array(next_markers(rows, markers)))
        kept = [name for name in _KEPT if name in rows.schema.names]
        is_transactional = pa.repeat(pa.scalar(outcome == COMMITTED), rows.num_rows)
        rows = rows.select(kept).append_column("counted_at", counted_at)
        self._waiting.append(rows.append_column("is_transactional", is_transactional))


def _steps(decoded: DecodedCommits, which: FLAGS) -> Steps:
    """The rows that `which` selects."""
    chosen = np.flatnonzero(which)
    rows, values = decoded.rows, decoded.values
    value = decoded.value[chosen]
    is_value = value >= 0
    at = np.where(is_value, value, 0)

    def said(name: str) -> INT64:
        column = values.column(name).fill_null(0).to_numpy()
        return column[at] if len(column) else np.zeros(len(at), np.int64)

    def of_rows(name: str, nothing: int = 0) -> INT64:
        column: INT64 = rows.column(name).fill_null(nothing).to_numpy()[chosen]
        return column

    ids = values.column("topic_id").dictionary_encode()
    id_of_value = np.append(ids.indices.fill_null(-1).to_numpy(), -1).astype(np.int64)
    has_producer = rows.column("producer_id").is_valid().to_numpy(zero_copy_only=False)
    is_transactional = rows.column("is_transactional").to_numpy(zero_copy_only=False)
    return Steps(
        keys=decoded.keys,
        ids=ids.dictionary,
        key=decoded.key[chosen],
        topic_id=id_of_value[value],
        is_value=is_value,
        offset=said("offset"),
        commit_timestamp_ms=said("commit_timestamp_ms"),
        producer_id=of_rows("producer_id"),
        is_transactional=(is_transactional & has_producer)[chosen],
        log_offset=of_rows("offset"),
        counted_at=of_rows("counted_at"),
    )
