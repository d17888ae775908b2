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
    from kafka_records_engine.log.reading.unread import Unread
    from kafka_records_engine.numpy_types import INT64
    from kafka_records_engine.sources import Context

PLACE: Final = (Column("topic", "string", "topic"), Column("partition", "int32", "partition of the topic"))
ENDS: Final = (
    Column("log_start_offset", "int64", "offset at which the log starts"),
    Column("log_end_offset", "int64", "offset after the last record"),
)

TABLE: Final = Table(
    name="log_samples",
    topic=EVERY_TOPIC,
    about="where logs start and end, and times by which some of their records were written",
    helper="view",
    records=(),
    reads=(),
    columns=(
        *PLACE,
        Column("topic_id", "string", "id of the topic; null if the source does not report it"),
        *ENDS,
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
    """A row for each log in files."""
    ends = parts["log_ends"].combine_chunks()
    if not ends.num_rows:
        return
    samples: list[list[dict[str, int]] | None] = [None] * ends.num_rows
    exact: list[int | None] = [None] * ends.num_rows
    for asked, rows, _ in unread_from_starts(ends, context, with_tail=True):
        tail = asked.tail
        if tail is not None:
            pairs = zip(tail.offsets.tolist(), tail.times_ms.tolist(), strict=True)
            samples[rows[0]] = [{"offset": offset, "timestamp_ms": at} for offset, at in pairs]
            exact[rows[0]] = tail.exact_from
    yield with_ends(TABLE, ends, {"samples": samples, "exact_from": exact})


def unread_from_starts(
    ends: pa.Table, context: Context, *, with_tail: bool = False
) -> Iterator[tuple[Unread, INT64, INT64]]:
    """All records of the logs in `ends` with a known start and end, as returned by `asked_of_logs`."""
    start, end = numbers(ends["log_start_offset"]), numbers(ends["log_end_offset"])
    known = np.flatnonzero((end != NONE) & (start != NONE))
    return asked_of_logs(ends, start, end, known, context, with_tail=with_tail)


def with_ends(table: Table, ends: pa.Table, made: Mapping[str, list[Any]]) -> pa.RecordBatch:
    """The rows of a table: the values in `made`, and the other columns from `ends`."""
    schema = table.schema
    columns = {name: ends[name].combine_chunks() for name in schema.names if name not in made}
    columns |= {name: pa.array(values, schema.field(name).type) for name, values in made.items()}
    return record_batch(schema, columns, ends.num_rows)
