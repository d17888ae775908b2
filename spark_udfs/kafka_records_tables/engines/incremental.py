"""Computes how the rows of a table change with each piece of a log that arrives piece by piece.

Only the table's function implements its rules. It is called twice: with the kept rows, and with the kept and new rows
together. The difference between the two results is the change. Only the groups in a piece are computed. If rows depend
on too many other records, the table's module keeps its own state instead of raw rows (`TableReader.form_of_kept`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS
from kafka_records_engine.sources.arrow_rows import in_log_order
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_tables.coordinator.records.latest import codes_of_same, joined
from kafka_records_tables.coordinator.transactions import ABORTED, NONE
from kafka_records_tables.engines.seen_offsets import UNTOLD_MS, first_lost, last_seen
from kafka_records_tables.table_options import value_of
from kafka_records_tables.tables.declaration import DELETE_RETENTION, USUAL_DELETE_RETENTION
from kafka_records_tables.tables.following.carried_rows import carried, is_by_group
from kafka_records_tables.tables.following.outlived_rows import (
    CarriedKeys,
    forgets_members,
    forgets_offsets,
    without_outlived,
)
from kafka_records_tables.tables.table_reading import rows_of, rows_of_groups

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.engines.request import TableRequest
    from kafka_records_tables.tables.declaration import Table

CHANGE: Final = "change"
"""The column that says what happened to a row: UPSERT or DELETE."""
UPSERT: Final = "upsert"
"""The row is new or has changed."""
DELETE: Final = "delete"
"""The row no longer exists. Its last values are given."""
AS_OF_OFFSET: Final = "as_of_offset"
"""The column with the offset after the last record of the log partition that the table has read."""

_KEPT: Final = "kept"


class OutOfOrder(KafkaRecordsError, ValueError):
    """There are raw rows below `offset`, up to which the log partition was already read."""

    def __init__(self, topic: str, partition: int, offset: int, read_to: int) -> None:
        super().__init__(topic, partition, offset, read_to)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.read_to = read_to

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: a row of offset {self.offset} came after the log was read up to "
            f"{self.read_to}: it was read twice, or comes too late. A stream must have each log partition in order, "
            'as brokers send it; mode "PERMISSIVE" leaves such rows out'
        )


class RecordsLost(KafkaRecordsError, ValueError):
    """A cleaner may have removed records that determine the outcome of earlier records in a log partition."""

    def __init__(self, topic: str, partition: int, read_to: int, missing: int, remedy: str) -> None:
        super().__init__(topic, partition, read_to, missing, remedy)
        self.topic = topic
        self.partition = partition
        self.read_to = read_to
        self.missing = missing
        self.remedy = remedy

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: the log was read up to {self.read_to}, and offset {self.missing} is "
            f"missing in records that come later than delete_retention: a cleaner may have removed tombstones and "
            f"transaction markers before they were read. Give the query a new checkpointLocation, so that it reads "
            f"the log from its start{self.remedy}"
        )


_BY_PERMISSION: Final = (
    '; mode "PERMISSIVE" continues, with an unknown outcome for commits that waited for their markers, and with rows '
    "that may have been deleted"
)


@dataclass(frozen=True, slots=True)
class LogState:
    """The position up to which a log partition was read, and the raw rows kept from earlier pieces, or a single row
    with the state that the table's module keeps (`TableReader.form_of_kept`)."""

    read_to: int
    rows: pa.RecordBatch
    since_ms: int = 0
    """The earliest time at which the oldest kept row may have been read."""
    written_ms: int = UNTOLD_MS
    """The time of the last record read."""


@dataclass(frozen=True)
class NewRows:
    """A piece of a log partition."""

    rows: pa.Table
    """Raw rows in any order. Duplicates are allowed. They have the columns of the kept rows."""
    seen: pa.Table | None = None
    """The offsets of all rows of the piece, including those that the table does not use (`seen_offsets.SEEN`). None if
    unknown; then no record counts as lost."""
    now_ms: int = 0
    """The time at which the piece arrived."""


@dataclass(frozen=True)
class IncrementalTable:
    """Continues the computation of a table over one log partition with the next piece of the log."""

    request: TableRequest
    kind: type[Findings] = Findings
    """The class that collects findings about new records."""
    is_lenient: bool = False
    """Whether to drop rows below the offset up to which the log was read, and to continue after lost records.
    Otherwise, both are errors."""
    delete_retention_ms: int = value_of(DELETE_RETENTION, USUAL_DELETE_RETENTION)
    """The `delete.retention.ms` of the topic."""

    def step(self, partition: int, state: LogState | None, came: NewRows) -> tuple[LogState, pa.RecordBatch]:
        """The new position in the log, and the changes: the columns of the table, CHANGE and AS_OF_OFFSET.

        Raises OutOfOrder, RecordsLost, and the errors of the table.
        """
        topic = self.request.table.topic
        new = _one(in_log_order(came.rows, topic))
        before = state or LogState(0, new.slice(0, 0), came.now_ms)
        new = self._behind(new, partition, before.read_to)
        read_to, written_ms = before.read_to, before.written_ms
        if new.num_rows:
            read_to = new.column("offset")[-1].as_py() + 1
        lost = None
        if came.seen is not None and came.seen.num_rows:
            last, last_ms = last_seen(came.seen)
            if last >= before.read_to:
                read_to, written_ms = last + 1, last_ms
            oldest_ms = came.now_ms - self.delete_retention_ms
            if before.since_ms < oldest_ms:
                lost = first_lost(came.seen, before.read_to, before.written_ms, oldest_ms)
        if lost is None:
            now, told = self._gone_on(partition, state, new, read_to)
            return replace(now, since_ms=before.since_ms, written_ms=written_ms), told
        self._may_be_lost(partition, before, lost)
        # Markers before the lost records end transactions as usual. After the lost records, the outcome of carried
        # records is unknown.
        at = int(np.searchsorted(new.column("offset").to_numpy(), lost))
        between, first = self._gone_on(partition, state, new.slice(0, at), lost)
        now, second = self._gone_on(partition, between, new.slice(at), read_to, hole=before.read_to - 1)
        told = _one(pa.Table.from_batches([first, second]))
        return replace(now, since_ms=came.now_ms, written_ms=written_ms), told

    def _may_be_lost(self, partition: int, before: LogState, missing: int) -> None:
        """Raise RecordsLost, unless nothing depends on lost records or the caller accepts the loss."""
        table = self.request.table
        is_complete = table.helper == "facts" and not before.rows.num_rows
        # The in-memory state of such a table cannot be rebuilt after records are lost.
        can_permit = table.reader.form_of_kept is None
        if not is_complete and not (self.is_lenient and can_permit):
            remedy = _BY_PERMISSION if can_permit else ""
            raise RecordsLost(table.topic, partition, before.read_to, missing, remedy)

    def _gone_on(
        self, partition: int, state: LogState | None, new: pa.RecordBatch, read_to: int, hole: int | None = None
    ) -> tuple[LogState, pa.RecordBatch]:
        """Continue a partition with rows in log order. Their markers end nothing at or before the `hole`."""
        table = self.request.table
        if table.reader.form_of_kept is not None:
            return self._kept_by_table(partition, state, new, read_to)
        old = new.slice(0, 0) if state is None else state.rows
        whole = joined([old, new])
        quiet = self.request.context(table.topic, partition)
        goes_by_group = is_by_group(table)
        touched = self._touched(whole, old.num_rows, quiet) if goes_by_group else np.ones(whole.num_rows, np.bool_)
        before = old.filter(pa.array(touched[: old.num_rows]))
        now = whole.filter(pa.array(touched))
        rows_before = self._rows(before, quiet)
        rows_now = self._rows(now, self._behind_hole(self.kind, partition, hole))
        left = carried(now, table, self._behind_hole(Findings, partition, hole))
        if goes_by_group or forgets_offsets(table) or forgets_members(table):
            left = without_outlived(left, rows_now.column(table.group).combine_chunks(), table, quiet)
        untouched = old.filter(pa.array(~touched[: old.num_rows]))
        kept = joined([untouched, left])
        kept = kept.take(pa.array(np.argsort(kept.column("offset").to_numpy(), kind="stable")))
        return LogState(read_to, kept), changes(table, rows_before, rows_now, read_to)

    def _kept_by_table(
        self, partition: int, state: LogState | None, new: pa.RecordBatch, read_to: int
    ) -> tuple[LogState, pa.RecordBatch]:
        table, request = self.request.table, self.request
        module, groups = table.code, request.question.groups
        quiet = request.context(table.topic, partition)

        def still_open(kept: bytes | None) -> Iterator[pa.RecordBatch]:
            return iter(()) if kept is None else rows_of_groups(table, module.still_open(kept, quiet), groups)

        kept = None if state is None else state.rows.column(_KEPT)[0].as_py()
        rows_before = list(still_open(kept))
        loud = request.context(table.topic, partition, self.kind())
        kept, found = module.go_on(kept, iter([new] if new.num_rows else []), loud)
        rows_now = [*rows_of_groups(table, found, groups), *still_open(kept)]
        before, now = (pa.Table.from_batches(rows, table.schema) for rows in (rows_before, rows_now))
        left = pa.RecordBatch.from_pydict({_KEPT: pa.array([kept], pa.large_binary())})
        return LogState(read_to, left), changes(table, before, now, read_to)

    def _behind_hole(self, kind: type[Findings], partition: int, hole: int | None) -> Context:
        context = self.request.context(self.request.table.topic, partition, kind())
        if hole is not None:
            context.log.add_hole(hole)
        return context

    def _behind(self, new: pa.RecordBatch, partition: int, read_to: int) -> pa.RecordBatch:
        offsets = new.column("offset").to_numpy()
        late = int(np.searchsorted(offsets, read_to))
        if late and not self.is_lenient:
            raise OutOfOrder(self.request.table.topic, partition, int(offsets[0]), read_to)
        return new.slice(late)

    def _touched(self, rows: pa.RecordBatch, old: int, context: Context) -> FLAGS:
        """Flags rows about groups that have new records or wait for a marker."""
        begins = np.arange(rows.num_rows) >= old
        if "transaction" in rows.schema.names:
            ended = pc.is_in(rows.column("transaction"), pa.array([NONE, ABORTED]))
            begins = begins | ~ended.to_numpy(zero_copy_only=False)
        return CarriedKeys(rows, self.request.table, context).of_same_groups(begins)

    def _rows(self, rows: pa.RecordBatch, context: Context) -> pa.Table:
        table = self.request.table
        given = [rows] if rows.num_rows else []
        return pa.Table.from_batches(rows_of(table, iter(given), context), table.schema)


def changes(table: Table, before: pa.Table, now: pa.Table, read_to: int) -> pa.RecordBatch:
    """The changes from the rows `before` to the rows `now`: first the deleted rows, then the new or changed ones."""
    both = pa.concat_tables([before, now])
    codes = codes_of_same([both.column(name).combine_chunks() for name in table.identity])
    first, second = codes[: before.num_rows], codes[before.num_rows :]
    gone = ~np.isin(first, second)
    _, at_first, at_second = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    is_same = _equal(before.take(pa.array(at_first)), now.take(pa.array(at_second)))
    changed = np.ones(now.num_rows, np.bool_)
    changed[at_second[is_same]] = False
    parts = [(DELETE, before.filter(pa.array(gone))), (UPSERT, now.filter(pa.array(changed)))]
    told = [
        part.append_column(CHANGE, pa.repeat(pa.scalar(word), part.num_rows)).append_column(
            AS_OF_OFFSET, pa.repeat(pa.scalar(read_to, pa.int64()), part.num_rows)
        )
        for word, part in parts
    ]
    return _one(pa.concat_tables(told))


def _equal(some: pa.Table, others: pa.Table) -> FLAGS:
    """Flags rows that equal those at the same positions."""
    same = np.ones(some.num_rows, np.bool_)
    for name in some.column_names:
        one, other = some.column(name), others.column(name)
        if pa.types.is_nested(one.type):
            same &= np.fromiter(
                (a == b for a, b in zip(one.to_pylist(), other.to_pylist(), strict=True)), np.bool_, len(same)
            )
            continue
        equal = pc.or_(pc.equal(one, other).fill_null(False), pc.and_(pc.is_null(one), pc.is_null(other)))
        same &= equal.to_numpy()
    return same


def _one(table: pa.Table) -> pa.RecordBatch:
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(
        [column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks) for column in columns],
        schema=table.schema,
    )
