"""Reads `partitions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.tables.cluster.metadata_reader import MetadataReader
from kafka_records_tables.tables.cluster.partition_replay import PartitionReplay
from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.partitions import TABLE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(MetadataReader[PartitionReplay]):
    def __init__(self, context: Context) -> None:
        super().__init__(PartitionReplay(context))

    def _rows(self) -> pa.RecordBatch:
        columns = self._replay.columns()
        return record_batch(TABLE.schema, {**columns}, len(columns["topic"]))
