"""Reads `assigned_partitions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.tables.decoded.decoded_records import filter_record_types
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.replay.records_of_groups import PARTS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

from kafka_records_tables.tables.assigned_partitions import _ROWS, TABLE
from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.decoded.decoded_records import numbers_of, schemas
from kafka_records_tables.tables.replay.assignment_rows import CONSUMED_KEPT, CONSUMED_PICKED, consumed_partitions
from kafka_records_tables.tables.replay.group_records import NOT_USED, GroupRecords
from kafka_records_tables.tables.replay.named_topics import names_in_groups


def reader(context: Context) -> TableReader:
    """A reader of one log partition."""
    return _Reader(context)


class _Reader(TableReader):
    def __init__(self, context: Context) -> None:
        known = schemas(context, "consumer_offsets")
        self._context = context
        self._types = numbers_of(known, TABLE.records)
        self._records = GroupRecords(known, with_values=PARTS, columns=("timestamp_ms",))

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._records.add(filter_record_types(batch, self._types, self._context, NOT_USED))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Each partition of a group once; `lag` says what they are for."""
        context = self._context
        groups = self._records.replayed(
            context, "what it assigns is not looked for", picked=CONSUMED_PICKED, kept=CONSUMED_KEPT
        ).replay.groups
        names = {**context.topic_names, **names_in_groups(groups.values())}
        found = consumed_partitions(groups, names)
        while some := list(islice(found, _ROWS)):
            groups_, topics, partitions = map(pa.array, zip(*some, strict=True))
            columns = {
                "group_id": groups_,
                "topic": topics,
                "partition": partitions,
                "log_partition": context.partition,
            }
            yield record_batch(TABLE.schema, columns, len(some))
