"""The ends of all logs, and the times by which some of their records existed: a table that only the report uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table
from kafka_records_tables.tables.lagging.unread_columns import asked_of_logs
from kafka_records_tables.tables.moving.log_times import NONE, numbers

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

TABLE: Final = Table(
    name="log_samples",
    topic=EVERY_TOPIC,
    about="where logs start and end, and times by which some of their records were written",
    helper="view",
    records=(),
    reads=(),
    columns=(
        Column("topic", "string", "topic"),
        Column("partition", "int32", "partition of the topic"),
        Column("topic_id", "string", "id of the topic; null if the source does not report it"),
        Column("log_start_offset", "int64", "offset at which the log starts"),
        Column("log_end_offset", "int64", "offset after the last record"),
        Column(
            "samples",
            "list<struct<offset: int64, timestamp_ms: int64>>",
            "a sample of batches: the last offset of each, and the latest time up to that offset; null if no "
            "file shows it",
        ),
        Column("exact_from", "int64", "offset from which `samples` has every batch"),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    inputs=("log_ends",),
    rules="One row per log partition of every topic in the source.",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[pa.RecordBatch]:
    """A row for each log that is found in files."""
    ends = parts["log_ends"].combine_chunks()
    if not ends.num_rows:
        return
    start, end = numbers(ends["log_start_offset"]), numbers(ends["log_end_offset"])
    samples: list[list[dict[str, int]] | None] = [None] * ends.num_rows
    exact: list[int | None] = [None] * ends.num_rows
    known = np.flatnonzero((end != NONE) & (start != NONE))
    for asked, rows, _ in asked_of_logs(ends, start, end, known, context, with_tail=True):
        tail = asked.tail
        if tail is not None:
            pairs = zip(tail.offsets.tolist(), tail.times_ms.tolist(), strict=True)
            samples[rows[0]] = [{"offset": offset, "timestamp_ms": at} for offset, at in pairs]
            exact[rows[0]] = tail.exact_from
    names = ("topic", "partition", "topic_id", "log_start_offset", "log_end_offset")
    columns = {name: ends[name].combine_chunks() for name in names}
    for name, values in (("samples", samples), ("exact_from", exact)):
        columns[name] = pa.array(values, TABLE.schema.field(name).type)
    yield record_batch(TABLE.schema, columns, ends.num_rows)
