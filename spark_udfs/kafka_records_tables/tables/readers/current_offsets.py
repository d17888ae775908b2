"""Reads `current_offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.coordinator.offsets.last_commits import NOT_USED
from kafka_records_tables.coordinator.records.decoded_records import report_without_type
from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.commit_columns import commit_columns
from kafka_records_tables.tables.current_offsets import TABLE
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.settled_commits import SettledCommits

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(TableReader):
    last_of_key = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._commits = SettledCommits(context)

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        report_without_type(batch, self._context, NOT_USED)
        self._commits.take(batch)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        last = self._commits.rest().last
        if last is not None and last.is_usable.any():
            columns = commit_columns(last.found, last.types, self._context)
            yield record_batch(TABLE.schema, columns, last.found.rows.num_rows).filter(pa.array(last.is_usable))
