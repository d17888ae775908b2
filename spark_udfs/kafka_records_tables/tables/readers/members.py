"""Reads `members`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_tables.tables.decoded.decoded_records import filter_record_types
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
from kafka_records_tables.tables.decoded.decoded_records import numbers_of, schemas
from kafka_records_tables.tables.members import TABLE
from kafka_records_tables.tables.replay.group_records import NOT_USED, GroupRecords
from kafka_records_tables.tables.replay.group_replay import CURRENT, GROUP, MEMBER, REGEX
from kafka_records_tables.tables.replay.member_rows import PICKED, member_rows


def reader(context: Context) -> TableReader:
    """A reader of one log partition."""
    return _Reader(context)


class _Reader(TableReader):
    def __init__(self, context: Context) -> None:
        known = schemas(context, "consumer_offsets")
        self._context = context
        self._types = numbers_of(known, TABLE.records)
        self._records = GroupRecords(known, with_values=("ConsumerGroupRegularExpression",), columns=("timestamp_ms",))

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._records.add(filter_record_types(batch, self._types, self._context, NOT_USED))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        null = "what it would tell is null in the rows of members; the members of a classic group have no rows"
        kept = (GROUP, MEMBER, CURRENT, REGEX)
        replay = self._records.replayed(self._context, null, picked=PICKED, kept=kept).replay
        return member_rows(replay.groups, self._context.partition, TABLE.schema)
