"""Reads `partitions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.tables.cluster.partition_replay import PartitionReplay
from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.partitions import TABLE
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(TableReader):
    every_type = True

    def __init__(self, context: Context) -> None:
        self._replay = PartitionReplay(context)

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._replay.take(batch)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        columns = self._replay.finish()
        yield record_batch(TABLE.schema, {**columns}, len(columns["topic"]))
