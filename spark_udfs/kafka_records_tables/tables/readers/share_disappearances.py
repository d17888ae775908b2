"""Reads `share_disappearances`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.coordinator.records.decoded_records import schemas
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.share_disappearances import TABLE
from kafka_records_tables.tables.tombstones.share_tombstones import ShareTombstones

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.tombstones.share_tombstones import ExplainedEnd


_ROWS: Final = 8192


class Reader(TableReader):
    needs_all_groups = True
    uses_topics = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tombstones = ShareTombstones(schemas(context, "share_group_state"), context)

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._tombstones.take(batch)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        found = self._tombstones.explained()
        while some := list(islice(found, _ROWS)):
            yield _batch(some, self._context)


def _batch(every: Sequence[ExplainedEnd], context: Context) -> Any:
    schema = TABLE.schema
    told: dict[str, list[Any]] = {name: [] for name in schema.names}
    for each in every:
        group_id, topic_id, partition = each.event.key
        state = each.before
        row = {
            "group_id": group_id,
            "topic_id": topic_id,
            "topic": context.log.topics.names.get(topic_id),
            "partition": partition,
            "cause": " or ".join(each.cause),
            "confidence": each.confidence,
            "possible_causes": list(each.possible),
            "evidence": [shown._asdict() for shown in each.evidence],
            "state_epoch": None if state is None else state.state_epoch,
            "start_offset": None if state is None else state.start_offset,
            "state_log_offset": None if state is None else state.log_offset,
            "log_timestamp_ms": each.event.timestamp_ms,
            "write_offset": each.write_offset,
            "log_partition": context.partition,
            "log_offset": each.event.offset,
        }
        for name, value in row.items():
            told[name].append(value)
    columns = {name: pa.array(told[name], schema.field(name).type) for name in row}
    columns["log_timestamp"] = instants(columns["log_timestamp_ms"])
    return record_batch(schema, columns, len(every))
