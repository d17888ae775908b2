"""Counts the records of a log partition and those that a cleaner would drop, and finds where the first open transaction
begins.

A cleaner drops a record if a later one has the same key, or if its transaction was aborted. Records of aborted
transactions replace nothing (`Cleaner.buildOffsetMapForSegment`, `CleanedTransactionMetadata.onBatchRead`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.records.latest import Latest
from kafka_records_tables.coordinator.transactions import ABORTED, COMMITTED, NONE, Resolved, TransactionResolver
from kafka_records_tables.coordinator.transactions import COLUMNS as RESOLVED
from kafka_records_tables.tables.column_types import arrow_schema, record_batch
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.words.loaded_records import COLUMNS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


_KEPT: Final = ("offset", "key", "value")


class RecordCounter(TableReader):
    """The reader of the inputs of `log_files`. Keys are compared as bytes, as by a cleaner. Memory grows with their
    number."""

    every_type = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._latest = Latest(_KEPT)
        self._undecided = Latest(_KEPT)
        """By producer: the records of open transactions and of transactions with an unknown marker."""
        # A record with an unknown outcome counts as committed, because nothing else depends on the outcome here.
        assumed = replace(context, question=replace(context.question, assume="committed"))
        self._resolver = TransactionResolver(assumed, tombstones_at_once=False, last_of_key=True)
        self._records = self._markers = 0
        self._open: dict[int, int] = {}
        """By producer, the first record of its transaction as long as there is no marker."""

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._note_transactions(batch)
        markers = batch.num_rows - batch.column("control").null_count
        self._markers += markers
        self._records += batch.num_rows - markers
        # Only the presence of a value matters.
        has_value = pa.array(batch.column("value").is_valid().to_numpy(zero_copy_only=False))
        has_value = pc.if_else(has_value, True, pa.scalar(None, pa.bool_()))
        rows = batch.select(list(RESOLVED))
        rows = rows.set_column(rows.schema.get_field_index("value"), "value", has_value)
        self._add(self._resolver.take(rows))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        self._add(self._resolver.rest())
        left = [rows for rows in (self._latest.rows(), self._undecided.rows()) if rows is not None]
        columns = {
            "topic": self._context.topic,
            "partition": self._context.partition,
            "records": self._records,
            "markers": self._markers,
            "superseded": self._records - sum(rows.num_rows for rows in left),
            "tombstones": sum(rows.column("value").null_count for rows in left),
            "open_from": min(self._open.values(), default=None),
        }
        yield record_batch(arrow_schema(COLUMNS), columns, 1)

    def _add(self, resolved: Iterable[Resolved]) -> None:
        for outcome, rows in resolved:
            if outcome in (NONE, COMMITTED):
                self._latest.add(rows)
            elif outcome != ABORTED:
                producer = rows.column("producer_id").fill_null(-1).cast(pa.string()).cast(pa.binary())
                key = pc.binary_join_element_wise(producer, rows.column("key").cast(pa.binary()), b":")
                self._undecided.add(rows.set_column(rows.schema.get_field_index("key"), "key", key))

    def _note_transactions(self, batch: pa.RecordBatch) -> None:
        is_marker = batch.column("control").is_valid().to_numpy(zero_copy_only=False)
        # A source without markers may report how a transaction ended (`TransactionResolver.rest`).
        is_over = pc.is_in(batch.column("transaction"), pa.array([NONE, COMMITTED, ABORTED]))
        is_part = pc.fill_null(pc.invert(pc.or_kleene(is_over, pc.is_null(batch.column("transaction")))), False)
        is_part = is_part.to_numpy(zero_copy_only=False) & ~is_marker
        if not is_part.any() and not (self._open and is_marker.any()):
            return
        rows = np.flatnonzero(is_part | is_marker)
        chosen = batch.select(["offset", "producer_id"]).take(pa.array(rows))
        of_rows = zip(is_marker[rows].tolist(), *(column.to_pylist() for column in chosen.columns), strict=True)
        for ends, offset, producer in of_rows:
            if ends:
                self._open.pop(producer, None)
            else:
                self._open.setdefault(producer, offset)
