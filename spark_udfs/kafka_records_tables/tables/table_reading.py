"""Computes one table over one log partition, from raw rows to rows of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.tables.incoming_rows import IncomingRows

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.declaration import Table
    from kafka_records_tables.tables.reader import TableReader


class TableReading:
    """Passes the raw rows of one log partition to a table's reader. Findings go to the context."""

    def __init__(self, table: Table, context: Context) -> None:
        self._table = table
        self._context = context
        self._incoming = None if table.helper == "ends" else IncomingRows(context, table)
        self._reader: TableReader = table.code.Reader(context)
        self.is_over = False
        """Whether all rows of the table have been returned, which may be before the end of the log."""

    def take(self, batch: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
        """Add the raw rows that follow, or None at the end of the log. Returns the rows of the table that are known by
        now."""
        if batch is not None and not self._reader.is_done:
            incoming = self._incoming
            rows = batch if incoming is None else incoming.take(batch)
            if rows is not None:
                yield from self._chosen(self._reader.take(rows))
            if incoming is not None:
                incoming.look_beyond()
        if batch is None or self.wants_no_more:
            yield from self._finish()

    @property
    def wants_no_more(self) -> bool:
        """Whether the rest of the log cannot change the result."""
        return self._reader.is_done or (self._incoming is not None and self._incoming.is_done)

    def _finish(self) -> Iterator[pa.RecordBatch]:
        if self._incoming is not None and not self._reader.is_done:
            self._incoming.finish()
        yield from self._chosen(self._reader.finish())
        self._context.sum_up()
        self.is_over = True

    def _chosen(self, rows: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        return (
            rows_of_groups(self._table, rows, self._context.question.groups)
            if self._table.reader.needs_all_groups
            else rows
        )


def rows_of(table: Table, batches: Iterator[pa.RecordBatch], context: Context) -> Iterator[pa.RecordBatch]:
    """The rows of a table, as batches of `Table.schema` in no particular order.

    `batches` are the raw rows of one log partition, in order, each offset once. `mapInArrow` passes batches in the same
    form.
    """
    reading = TableReading(table, context)
    while not reading.is_over:
        yield from reading.take(None if reading.wants_no_more else next(batches, None))


def rows_of_groups(
    table: Table, found: Iterable[pa.RecordBatch], groups: tuple[str, ...] | None
) -> Iterator[pa.RecordBatch]:
    """The rows about the given groups, or all rows."""
    for rows in found:
        if groups is None:
            yield rows
        elif (chosen := rows.filter(pc.is_in(rows.column(table.group), pa.array(groups, pa.string())))).num_rows:
            yield chosen
