"""Reads `deletable_offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.tables.deletable_offsets import _NAMES, TABLE
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.removal.deletable_rows import deletable_rows
from kafka_records_tables.tables.removal.held_offsets import HeldCollector

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(TableReader):
    tells_open = True

    def __init__(self, context: Context) -> None:
        self._partition = context.partition
        self._held = HeldCollector(context, _NAMES, with_commits=True)

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._held.take(batch)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        return deletable_rows(TABLE.schema, self._held.held(), self._partition)
