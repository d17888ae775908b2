"""Reads `members`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED, GroupRecords
from kafka_records_tables.tables.group_rows.member_rows import PICKED, member_rows
from kafka_records_tables.tables.members import TABLE
from kafka_records_tables.tables.record_reader import RecordReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(RecordReader):
    last_of_key = True

    def __init__(self, context: Context) -> None:
        super().__init__(context, "consumer_offsets", TABLE.records, NOT_USED)
        with_values = ("ConsumerGroupRegularExpression",)
        self._records = GroupRecords(self.schemas, with_values=with_values, columns=("timestamp_ms",))

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._records.add(rows)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        null = "its values are null in the rows of members, and the members of a classic group have no rows"
        groups = self._records.replayed(self.context, null, picked=PICKED).groups
        return member_rows(groups.by_id, self.context.partition, TABLE.schema)
