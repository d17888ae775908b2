"""Reads `assignments`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.tables.decoded.decoded_records import filter_record_types
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.replay.records_of_groups import PARTS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
from kafka_records_tables.tables.assignments import _NAMES, _UNREAD, TABLE
from kafka_records_tables.tables.decoded.decoded_records import numbers_of, schemas
from kafka_records_tables.tables.replay.assignment_rows import KEPT, PICKED, assignment_rows
from kafka_records_tables.tables.replay.group_records import NOT_USED, GroupRecords
from kafka_records_tables.tables.replay.named_topics import NamedTopics


def reader(context: Context) -> TableReader:
    """A reader of one log partition."""
    return _Reader(context)


class _Reader(TableReader):
    def __init__(self, context: Context) -> None:
        known = schemas(context, "consumer_offsets")
        with_values = tuple(name for name in PARTS if name != _UNREAD)
        self._context = context
        self._types = numbers_of(known, TABLE.records)
        self._records = GroupRecords(known, with_values=with_values, columns=("timestamp_ms",))
        self._topics = NamedTopics(known, _NAMES)

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._records.add(self._topics.taken(filter_record_types(batch, self._types, self._context, NOT_USED)))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        context = self._context
        replay = self._records.replayed(context, "what it assigns has no rows", picked=PICKED, kept=KEPT).replay
        names = self._topics.names(context, replay.groups.values())
        return assignment_rows(replay.groups, names, context.partition, TABLE.schema)
