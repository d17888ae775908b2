"""Reads `history`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.coordinator.offsets.commit_effects import NO_TIME, Clock, Effects
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.offset_spans import OffsetSpans
from kafka_records_tables.coordinator.records.decoded_records import filter_record_types, nulled, numbers_of, schemas
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.history import TABLE
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(TableReader):
    def __init__(self, context: Context) -> None:
        known = schemas(context, "consumer_offsets")
        self._context = context
        self._types = numbers_of(known, COMMITS)
        self._clock = Clock()
        self._effects = Effects(context)
        self._spans = OffsetSpans(known, context)

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows = filter_record_types(self._clock.added(batch), self._types, self._context, _NOT_USED)
        if rows.num_rows:
            yield from self._batches(self._spans.add(*self._effects.take(rows)))

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._batches(self._spans.add(self._effects.rest(), waits=False))
        yield from self._batches(self._spans.rest())

    def _batches(self, spans: Iterator[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        for columns in spans:
            yield _batch(columns, self._context)


_NOT_USED: Final = "not used: its group and topic are unknown"


def _batch(columns: dict[str, Any], context: Context) -> Any:
    for name in ("valid_from", "valid_to", "commit"):
        times = nulled(columns[f"{name}_timestamp_ms"], NO_TIME)
        columns |= {f"{name}_timestamp_ms": times, f"{name}_timestamp": instants(times)}
    columns["log_partition"] = context.partition
    return record_batch(TABLE.schema, columns, len(columns["group_id"]))
