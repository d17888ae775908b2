"""Reads `partitions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

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
        found = [*self._replay.finish()]
        columns = {
            "topic": [topic for topic, *_ in found],
            "topic_id": [topic_id for _, topic_id, *_ in found],
            "partition": [number for _, _, number, _ in found],
            **{name: [getattr(state, name) for *_, state in found] for name in _OF_STATE},
        }
        arrays = {name: pa.array(values, TABLE.schema.field(name).type) for name, values in columns.items()}
        yield record_batch(TABLE.schema, arrays, len(found))


_OF_STATE: Final = ("leader", "replicas", "isr", "elr", "leader_epoch")
