"""Rows of the inputs of `checks`, before they are put into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_ROWS = 8192


class CheckRow(NamedTuple):
    """A problem or a fact. The fields are the columns of the same names."""

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


class CheckReader(TableReader):
    """A reader whose rows are CheckRows."""

    every_type = uses_topics = True

    def __init__(self, context: Context, schema: pa.Schema) -> None:
        self._of_log = context
        self._schema = schema
        self._waiting: list[CheckRow] = []

    def checked(self, batch: pa.RecordBatch) -> Iterator[CheckRow]:
        """Process raw rows, and return the rows of the table that are complete."""
        raise NotImplementedError

    def left(self) -> Iterator[CheckRow]:
        """The remaining rows at the end of the log."""
        raise NotImplementedError

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield from self._batches(self.checked(batch))

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._batches(self.left())
        if self._waiting:
            yield _batch(self._waiting, self._of_log, self._schema)

    def _batches(self, rows: Iterable[CheckRow]) -> Iterator[pa.RecordBatch]:
        for row in rows:
            self._waiting.append(row)
            if len(self._waiting) == _ROWS:
                yield _batch(self._waiting, self._of_log, self._schema)
                self._waiting = []


def _batch(rows: list[CheckRow], context: Context, schema: pa.Schema) -> pa.RecordBatch:
    told = dict(zip(CheckRow._fields, zip(*rows, strict=True), strict=True))
    columns: dict[str, Any] = {name: pa.array(values, schema.field(name).type) for name, values in told.items()}
    columns["log_timestamp"] = instants(columns["log_timestamp_ms"])
    return record_batch(schema, {**columns, "log_topic": context.topic, "log_partition": context.partition}, len(rows))
