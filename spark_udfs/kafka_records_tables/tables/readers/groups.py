"""Reads `groups`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED, GroupRecords
from kafka_records_tables.tables.groups import TABLE
from kafka_records_tables.tables.record_reader import RecordReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


_OF_A_GROUP: Final = tuple(name for name in TABLE.names if name != "log_partition")


class Reader(RecordReader):
    last_of_key = True

    def __init__(self, context: Context) -> None:
        super().__init__(context, "consumer_offsets", TABLE.records, NOT_USED)
        self._records = GroupRecords(self.schemas)

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._records.add(rows)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        listed = self._records.replayed(self.context).groups.rows()
        if listed:
            columns = dict(zip(_OF_A_GROUP, map(list, zip(*listed, strict=True)), strict=True))
            columns["log_partition"] = [self.context.partition] * len(listed)
            yield pa.RecordBatch.from_pydict(columns, schema=TABLE.schema)
