"""Rows of the inputs of `checks`, on their way into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from kafka_records_tables.tables.column_types import instants, record_batch

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_ROWS = 8192


class CheckRow(NamedTuple):
    """A problem or a fact; the columns of the same names."""

    check: str | None = None
    level: str | None = None
    detail: str | None = None
    log_offset: int | None = None
    log_timestamp_ms: int | None = None
    group_id: str | None = None
    transactional_id: str | None = None
    member_id: str | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    fact: str | None = None


def batches_of(rows: Iterable[CheckRow], context: Context, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one log partition."""
    waiting: list[CheckRow] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == _ROWS:
            yield _batch(waiting, context, schema)
            waiting = []
    if waiting:
        yield _batch(waiting, context, schema)


def _batch(rows: list[CheckRow], context: Context, schema: pa.Schema) -> pa.RecordBatch:
    told = dict(zip(CheckRow._fields, zip(*rows, strict=True), strict=True))
    columns: dict[str, Any] = {name: pa.array(values, schema.field(name).type) for name, values in told.items()}
    columns["log_timestamp"] = instants(columns["log_timestamp_ms"])
    return record_batch(schema, {**columns, "log_topic": context.topic, "log_partition": context.partition}, len(rows))
