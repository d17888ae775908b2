"""Counts the records of a log partition, those that later ones replace, and where its first open transaction begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.records.latest import Latest
from kafka_records_tables.tables.column_types import arrow_schema, record_batch
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.words.loaded_records import COLUMNS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class RecordCounter(TableReader):
    """The reader of the inputs of `log_files`. Keys are compared as bytes, as a cleaner does; memory follows them."""

    every_type = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._latest = Latest(("offset", "key", "value"))
        self._records = self._markers = 0
        self._open: dict[int, int] = {}
        """By producer the first record of its transaction, as long as no marker has come."""

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._note_transactions(batch)
        is_record = batch.column("control").is_null()
        # Only whether there is a value matters.
        has_value = pa.array(batch.column("value").is_valid().to_numpy(zero_copy_only=False))
        has_value = pc.if_else(has_value, True, pa.scalar(None, pa.bool_()))
        columns = {"offset": batch.column("offset"), "key": batch.column("key"), "value": has_value}
        rows = pa.RecordBatch.from_pydict(columns)
        if batch.column("control").null_count < batch.num_rows:
            rows = rows.filter(is_record)
        self._records += rows.num_rows
        self._markers += batch.num_rows - rows.num_rows
        self._latest.add(rows)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        left = self._latest.rows()
        count = 0 if left is None else left.num_rows
        columns = {
            "topic": self._context.topic,
            "partition": self._context.partition,
            "records": self._records,
            "markers": self._markers,
            "superseded": self._records - count,
            "tombstones": 0 if left is None else left.column("value").null_count,
            "open_from": min(self._open.values(), default=None),
        }
        yield record_batch(arrow_schema(COLUMNS), columns, 1)

    def _note_transactions(self, batch: pa.RecordBatch) -> None:
        is_marker = batch.column("control").is_valid().to_numpy(zero_copy_only=False)
        is_part = pc.fill_null(pc.not_equal(batch.column("transaction"), "none"), False)
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
