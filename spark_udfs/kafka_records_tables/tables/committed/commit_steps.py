"""What commits did to committed offsets, in the order in which they took effect: that of the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.tables.committed.commits import COMMITS, commit_columns, report_undecided
from kafka_records_tables.tables.committed.last_commits import NOT_USED
from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords, numbers_of, of_types
from kafka_records_tables.tables.decoded.latest import joined
from kafka_records_tables.tables.decoded.transactions_settled import (
    ABORTED,
    COMMITTED,
    OPEN,
    UNKNOWN,
    Settled,
    Settling,
    next_markers,
)

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

READS: Final = ("offset", "key", "value", "producer_id", "transaction", "control")
"""The columns of raw rows that are needed."""

STEPS: Final = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("topic_id", pa.string()),
        ("commit_timestamp_ms", pa.int64()),
        ("producer_id", pa.int64()),
        ("log_offset", pa.int64()),
        ("counted_at", pa.int64()),
    ]
)
"""A commit, or a tombstone (`offset` is null). `producer_id` is that of its transaction, null where there is none.
`log_offset` is where the record stands, `counted_at` where it took effect: there, or at the marker of its
transaction, or there too where the source tells that it was committed and has no markers."""

_NOT_COMPARED: Final = "left out: offsets before and behind it are compared with each other"


class CommitSteps:
    """Settles and decodes the commits of one log partition; memory follows the rows that were not yet asked for."""

    def __init__(self, schemas: Mapping[int, RecordSchema], context: Context) -> None:
        self._schemas = schemas
        self._context = context
        self._types = numbers_of(schemas, COMMITS)
        # Without control rows the commits of one producer may be of several transactions, and each is a step.
        self._settling = Settling(context, tombstones_at_once=True, last_of_key=False)
        self._waiting: list[pa.RecordBatch] = []
        self.count = 0
        """Rows that `steps` would give."""

    def take(self, batch: pa.RecordBatch) -> None:
        """Add raw rows behind those before, with READS; rows of other types are passed over."""
        for rows in of_types(iter([batch]), self._types, self._context, NOT_USED):
            markers = rows.filter(pc.is_valid(rows.column("control")))
            for settled in self._settling.take(rows):
                self._keep(settled, markers)

    def end(self) -> None:
        """Add what no marker decides: there are no more rows."""
        for settled in self._settling.rest():
            self._keep(settled, None)

    @property
    def waits_from(self) -> int | None:
        """Offset of the first commit that waits for its marker; None where none does."""
        return self._settling.waits_from

    def steps(self) -> pa.RecordBatch:
        """What took effect since the last call, as STEPS. All that comes later takes effect behind it. Reports commits
        that cannot be read, or of which nobody can tell whether they took effect."""
        if not self._waiting:
            return pa.RecordBatch.from_pylist([], STEPS)
        found = DecodedRecords(joined(self._waiting), self._schemas)
        self._waiting, self.count = [], 0
        rows, context = found.rows, self._context
        found.report(context, lambda row: _NOT_COMPARED if found.has_key[row] else NOT_USED)
        is_unknown = pc.is_null(rows.column("counted_at")).to_numpy(zero_copy_only=False)
        usable = found.has_key & ~found.has_error
        told = commit_columns(found, self._types, context)
        report_undecided(found, self._types, usable & is_unknown, context, _NOT_COMPARED, what="a commit")
        told["producer_id"] = pc.if_else(
            rows.column("is_transactional"), rows.column("producer_id"), pa.scalar(None, pa.int64())
        )
        told["counted_at"] = rows.column("counted_at")
        chosen = pa.RecordBatch.from_arrays([told[field.name] for field in STEPS], schema=STEPS)
        return chosen.filter(pa.array(usable & ~is_unknown))

    def _keep(self, settled: Settled, markers: pa.RecordBatch | None) -> None:
        """Keep rows with the place where they take effect; null where nobody knows whether they do."""
        outcome, rows = settled
        if outcome in (ABORTED, OPEN) or not rows.num_rows:
            return
        counted_at = rows.column("offset")
        if outcome == UNKNOWN:
            counted_at = pa.nulls(rows.num_rows, pa.int64())
        elif outcome == COMMITTED and markers is not None:
            counted_at = markers.column("offset").take(pa.array(next_markers(rows, markers)))
        kept = [name for name in (*READS, "file", "position", "base_offset") if name in rows.schema.names]
        is_transactional = pa.repeat(pa.scalar(outcome == COMMITTED), rows.num_rows)
        rows = rows.select(kept).append_column("counted_at", counted_at)
        self._waiting.append(rows.append_column("is_transactional", is_transactional))
        self.count += rows.num_rows
