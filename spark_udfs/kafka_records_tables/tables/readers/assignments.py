"""Reads `assignments`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED, GroupRecords
from kafka_records_tables.coordinator.groups.record_names import PARTS
from kafka_records_tables.tables.assignments import _NAMES, TABLE
from kafka_records_tables.tables.group_rows.assignment_rows import PICKED, assignment_rows
from kafka_records_tables.tables.group_rows.named_topics import NamedTopics
from kafka_records_tables.tables.record_reader import RecordReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


_UNREAD: Final = "ConsumerGroupRegularExpression"


class Reader(RecordReader):
    last_of_key = True
    uses_topics = True

    def __init__(self, context: Context) -> None:
        super().__init__(context, "consumer_offsets", TABLE.records, NOT_USED)
        with_values = tuple(name for name in PARTS if name != _UNREAD)
        self._records = GroupRecords(self.schemas, with_values=with_values, columns=("timestamp_ms",))
        self._topics = NamedTopics(self.schemas, _NAMES)

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._records.add(self._topics.taken(rows))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        context = self.context
        groups = self._records.replayed(context, "its assignments have no rows", picked=PICKED).groups.by_id
        names = self._topics.names(context, groups.values())
        return assignment_rows(groups, names, context.partition, TABLE.schema)
