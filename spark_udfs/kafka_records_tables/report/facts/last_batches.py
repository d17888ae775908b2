"""The sizes of the last batches of logs: a table that only the report uses."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table
from kafka_records_tables.tables.passed_columns import PassedColumns

TABLE: Final = Table(
    name="last_batches",
    topic=EVERY_TOPIC,
    about="how large the last batches of logs are",
    helper="ends",
    records=(),
    reads=("topic", "partition", "log_start_offset", "log_end_offset", "batches"),
    columns=(
        Column("topic", "string", "topic"),
        Column("partition", "int32", "partition of the topic"),
        Column(
            "batches",
            "list<struct<offset: int64, timestamp_ms: int64, records: int64, bytes: int64>>",
            "the batches in the last 16 MiB, without markers; null if the source has no files",
        ),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    rules="One row per log partition of the requested topic.",
)


class Reader(PassedColumns):
    table = TABLE
