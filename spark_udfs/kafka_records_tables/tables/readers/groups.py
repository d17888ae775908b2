"""Reads `groups`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafka_records_tables.tables.decoded.decoded_records import filter_record_types
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

from kafka_records_tables.tables.decoded.decoded_records import numbers_of, schemas
from kafka_records_tables.tables.groups import TABLE
from kafka_records_tables.tables.replay.group_records import NOT_USED, GroupRecords

_OF_A_GROUP: Final = tuple(name for name in TABLE.names if name != "log_partition")


def reader(context: Context) -> TableReader:
    """A reader of one log partition."""
    return _Reader(context)


class _Reader(TableReader):
    def __init__(self, context: Context) -> None:
        known = schemas(context, "consumer_offsets")
        self._context = context
        self._types = numbers_of(known, TABLE.records)
        self._records = GroupRecords(known)

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._records.add(filter_record_types(batch, self._types, self._context, NOT_USED))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        listed = self._records.replayed(self._context).replay.rows()
        if listed:
            columns = dict(zip(_OF_A_GROUP, map(list, zip(*listed, strict=True)), strict=True))
            columns["log_partition"] = [self._context.partition] * len(listed)
            yield pa.RecordBatch.from_pydict(columns, schema=TABLE.schema)
