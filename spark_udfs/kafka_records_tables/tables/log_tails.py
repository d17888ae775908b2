"""What is left to read at the ends of logs, and since when: an input of the table progress."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table

TABLE: Final = Table(
    name="log_tails",
    topic=EVERY_TOPIC,
    about="what is left to read at the ends of logs, and since when",
    helper="ends",
    records=(),
    reads=(
        "topic",
        "partition",
        "topic_id",
        "log_start_offset",
        "log_end_offset",
        "high_watermark",
        "high_watermark_timestamp_ms",
        "last_stable_offset",
        "samples",
        "exact_from",
        "open_from",
    ),
    columns=(
        Column("topic", "string", "topic"),
        Column("partition", "int32", "partition of the topic"),
        Column("topic_id", "string", "id of the topic; null where the source does not tell"),
        Column("log_start_offset", "int64", "offset at which the log starts"),
        Column("log_end_offset", "int64", "offset after the last record"),
        Column("high_watermark", "int64", "offset after the last record that consumers may read"),
        Column("high_watermark_timestamp_ms", "int64", "when it was so"),
        Column("last_stable_offset", "int64", "start of the first open transaction, if a broker told it"),
        Column(
            "samples",
            "list<struct<offset: int64, timestamp_ms: int64>>",
            "the last record to read of batches, with the latest time of each; null if no file tells",
        ),
        Column("exact_from", "int64", "from this offset on `samples` has every batch"),
        Column("open_from", "int64", "start of the first open transaction that files show"),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    rules="An input of progress.",
)
