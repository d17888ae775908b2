"""Reads `log_tails`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.log_tails import TABLE
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(TableReader):
    def __init__(self, context: Context) -> None:
        pass

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield record_batch(TABLE.schema, {name: batch.column(name) for name in TABLE.names}, batch.num_rows)
