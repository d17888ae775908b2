"""Reads `assigned_partitions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED, GroupRecords
from kafka_records_tables.coordinator.groups.record_names import PARTS
from kafka_records_tables.coordinator.offsets.committed_topics import CommittedTopics
from kafka_records_tables.tables.assigned_partitions import TABLE
from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.group_rows.assignment_rows import (
    CONSUMED_PICKED,
    Consumed,
    consumed_partitions,
    left_topics,
)
from kafka_records_tables.tables.group_rows.named_topics import names_in_groups
from kafka_records_tables.tables.record_reader import RecordReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


_ROWS: Final = 65_536


class Reader(RecordReader):
    last_of_key = True
    uses_topics = True

    def __init__(self, context: Context) -> None:
        super().__init__(context, "consumer_offsets", TABLE.records, NOT_USED)
        self._topics = CommittedTopics(self.schemas)
        self._records = GroupRecords(self.schemas, with_values=PARTS, columns=("timestamp_ms",))

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._records.add(self._topics.taken(rows))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Return each partition of a group once. The rules of the table `lag` explain how it is used."""
        context = self.context
        told = self._records.replayed(context, "its assignments are ignored", picked=CONSUMED_PICKED)
        groups = told.groups.by_id
        names = {**context.log.topics.names, **names_in_groups(groups.values())}
        left = left_topics(groups, self._topics.found() if groups else ())
        found = chain(consumed_partitions(groups, names), left)
        while some := list(islice(found, _ROWS)):
            columns: dict[str, Any] = dict(zip(Consumed._fields, map(list, zip(*some, strict=True)), strict=True))
            made = {name: pa.array(column, TABLE.schema.field(name).type) for name, column in columns.items()}
            made["log_partition"] = context.partition
            yield record_batch(TABLE.schema, made, len(some))
