"""Reads `timeline`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.groups.group_log import GroupLog
from kafka_records_tables.coordinator.groups.group_states import GroupStates
from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED
from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot, Lots
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.group_rows.commit_moments import CommitMoments
from kafka_records_tables.tables.group_rows.group_history import MORE, GroupHistory
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.tables.timeline import TABLE
from kafka_records_tables.tables.words.timeline_words import MEANINGS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.group_rows.group_history import Moment


class Reader(RecordReader):
    uses_topics = True

    def __init__(self, context: Context) -> None:
        super().__init__(context, "consumer_offsets", TABLE.records, NOT_USED)
        self._lots = Lots()
        self._log = GroupLog(self.schemas, context, more=[MORE], consequence="what it tells of its group has no row")
        self._lives = GroupHistory(context.log.topics.names)
        self._states, self._commits = GroupStates(), CommitMoments(self.schemas)

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return self._rows(self._lots.take(rows))

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._rows(self._lots.rest())
        yield from _of_moments(self._lives.rest(), self.context)

    def _rows(self, lots: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context, states = self.context, self._states
        for batch in lots:
            lot = CommitLot(batch, self.schemas)
            self._log.add(batch, lot)
            events = self._log.up_to(None)
            for event in events:
                states.add(event)
            lot.report(context, NOT_USED)
            for columns in self._commits.columns(lot, events, states):
                yield _batch(columns, context)
            if batch.num_rows:
                states.forget(batch.column("offset")[-1].as_py() + 1)
            yield from _of_moments(self._lives.moments(events), context)


def _of_moments(moments: Iterable[Moment], context: Context) -> Iterator[Any]:
    found = list(moments)
    if found:
        columns = zip(found[0]._fields, zip(*found, strict=True), strict=True)
        yield _batch({name: pa.array(values, TABLE.schema.field(name).type) for name, values in columns}, context)


def _batch(columns: dict[str, Any], context: Context) -> Any:
    at = columns["at_timestamp_ms"]
    columns |= {"at_timestamp": instants(at), "log_partition": context.partition}
    columns["sequence"] = pc.index_in(columns["event"], value_set=pa.array([*MEANINGS]))
    return record_batch(TABLE.schema, columns, len(at))
