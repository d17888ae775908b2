"""Reads `timeline`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.groups.group_states import GroupStates
from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED
from kafka_records_tables.coordinator.records.decoded_records import report_without_type, schemas
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.group_rows.commit_moments import CommitMoments
from kafka_records_tables.tables.group_rows.shared_groups import SharedGroups
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.timeline import TABLE
from kafka_records_tables.tables.words.timeline_words import MEANINGS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.group_rows.group_history import Moment
    from kafka_records_tables.tables.group_rows.shared_groups import LogLot


_NO_ROW: Final = "its events have no rows"


class Reader(TableReader):
    uses_topics = True

    def __init__(self, context: Context) -> None:
        self._context = context
        known = schemas(context, "consumer_offsets")
        self._groups = SharedGroups(context, of_members=True)
        self._states, self._commits = GroupStates(), CommitMoments(known)

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        report_without_type(batch, self._context, NOT_USED)
        return self._rows(self._groups.take(batch))

    def finish(self) -> Iterator[pa.RecordBatch]:
        return self._rows(self._groups.rest())

    def _rows(self, lots: Iterable[LogLot]) -> Iterator[pa.RecordBatch]:
        context, states = self._context, self._states
        for lot in lots:
            for event in lot.transitions:
                states.add(event)
            lot.groups.report(context, _NO_ROW)
            lot.commits.report(context, NOT_USED)
            for columns in self._commits.columns(lot.commits, lot.transitions, states):
                yield _batch(columns, context)
            states.forget(lot.end)
            if lot.moments:
                yield _of_moments(lot.moments, context)


def _of_moments(found: list[Moment], context: Context) -> Any:
    columns = zip(found[0]._fields, zip(*found, strict=True), strict=True)
    return _batch({name: pa.array(values, TABLE.schema.field(name).type) for name, values in columns}, context)


def _batch(columns: dict[str, Any], context: Context) -> Any:
    at = columns["at_timestamp_ms"]
    columns |= {"at_timestamp": instants(at), "log_partition": context.partition}
    columns["sequence"] = pc.index_in(columns["event"], value_set=pa.array([*MEANINGS]))
    return record_batch(TABLE.schema, columns, len(at))
