"""The number of records in each log: a table that only the report uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.log.reading.unread import UNKNOWN
from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table
from kafka_records_tables.tables.lagging.unread_columns import asked_of_logs
from kafka_records_tables.tables.moving.log_times import NONE, numbers

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

TABLE: Final = Table(
    name="records_left",
    topic=EVERY_TOPIC,
    about="how many records logs have",
    helper="view",
    records=(),
    reads=(),
    columns=(
        Column("topic", "string", "topic"),
        Column("partition", "int32", "partition of the topic"),
        Column("log_start_offset", "int64", "offset at which the log starts"),
        Column("log_end_offset", "int64", "offset after the last record"),
        Column("records", "int64", "number of records, without those of aborted transactions; null if it is unknown"),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    inputs=("log_ends",),
    rules="One row per log partition of every topic in the source.",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[pa.RecordBatch]:
    """A row for each log. The batch headers of large logs are not all read, so their records are not counted."""
    ends = parts["log_ends"].combine_chunks()
    if not ends.num_rows:
        return
    start, end = numbers(ends["log_start_offset"]), numbers(ends["log_end_offset"])
    records: list[int | None] = [None] * ends.num_rows
    known = np.flatnonzero((end != NONE) & (start != NONE))
    for asked, rows, places in asked_of_logs(ends, start, end, known, context):
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            if asked.unread[place] != UNKNOWN:
                records[row] = int(asked.unread[place] + asked.held_back[place])
    names = ("topic", "partition", "log_start_offset", "log_end_offset")
    columns = {name: ends[name].combine_chunks() for name in names}
    columns["records"] = pa.array(records, pa.int64())
    yield record_batch(TABLE.schema, columns, ends.num_rows)
