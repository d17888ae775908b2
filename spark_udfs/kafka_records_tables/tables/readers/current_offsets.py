"""Reads `current_offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.tables.committed.commits import COMMITS, commit_columns
from kafka_records_tables.tables.decoded.decoded_records import filter_record_types
from kafka_records_tables.tables.decoded.transactions_settled import Settled, Settling
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.committed.last_commits import NOT_USED, LastCommits
from kafka_records_tables.tables.current_offsets import TABLE
from kafka_records_tables.tables.decoded.decoded_records import numbers_of, schemas


def reader(context: Context) -> TableReader:
    """A reader of one log partition."""
    return _Reader(context)


class _Reader(TableReader):
    def __init__(self, context: Context) -> None:
        records = schemas(context, "consumer_offsets")
        self._context = context
        self._types = numbers_of(records, COMMITS)
        self._commits = LastCommits(records)
        self._settling = Settling(context, tombstones_at_once=True, last_of_key=True)

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        rows = filter_record_types(batch, self._types, self._context, NOT_USED)
        if rows.num_rows:
            self._add(self._settling.take(rows))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        self._add(self._settling.rest())
        last = self._commits.deciding(self._context)
        if last is not None and last.is_usable.any():
            columns = commit_columns(last.found, last.types, self._context)
            yield record_batch(TABLE.schema, columns, last.found.rows.num_rows).filter(pa.array(last.is_usable))

    def _add(self, settled: Iterable[Settled]) -> None:
        for outcome, rows in settled:
            self._commits.add(outcome, rows)
