"""Reads `features`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.tables.cluster.broker_replay import ClusterReplay
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.features import TABLE
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(TableReader):
    every_type = True

    def __init__(self, context: Context) -> None:
        self._replay = ClusterReplay(context, TABLE.records)

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._replay.take(batch)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        self._replay.finish()
        features = self._replay.features
        changed = pa.array([at for _, at in features.values()], pa.int64())
        columns = {
            "feature": pa.array([*features], pa.string()),
            "level": pa.array([level for level, _ in features.values()], pa.int16()),
            "changed_timestamp": instants(changed),
            "changed_timestamp_ms": changed,
        }
        yield record_batch(TABLE.schema, columns, len(features))
