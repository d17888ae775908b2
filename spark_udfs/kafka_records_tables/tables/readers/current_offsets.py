"""Reads `current_offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.last_commits import NOT_USED, LastCommits
from kafka_records_tables.coordinator.transactions import Resolved, TransactionResolver
from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.commit_columns import commit_columns
from kafka_records_tables.tables.current_offsets import TABLE
from kafka_records_tables.tables.record_reader import RecordReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(RecordReader):
    last_of_key = True

    def __init__(self, context: Context) -> None:
        super().__init__(context, "consumer_offsets", COMMITS, NOT_USED)
        self._commits = LastCommits(self.schemas)
        self._settling = TransactionResolver(context, tombstones_at_once=True, last_of_key=True)

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._settled(self._settling.take(rows))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        self._settled(self._settling.rest())
        last = self._commits.deciding(self.context)
        if last is not None and last.is_usable.any():
            columns = commit_columns(last.found, last.types, self.context)
            yield record_batch(TABLE.schema, columns, last.found.rows.num_rows).filter(pa.array(last.is_usable))

    def _settled(self, settled: Iterable[Resolved]) -> None:
        for outcome, rows in settled:
            self._commits.add(outcome, rows)
