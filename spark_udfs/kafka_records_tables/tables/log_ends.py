"""The starts and ends of the logs of a source."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table, timestamps

TABLE: Final = Table(
    name="log_ends",
    topic=EVERY_TOPIC,
    about="where the logs of all topics begin and end, by partition",
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
        "place",
        "is_cut",
    ),
    columns=(
        Column("topic", "string", "name of the topic"),
        Column("topic_id", "string", "id of the topic, 22 characters; null if the source has none"),
        Column("partition", "int32", "partition of the topic"),
        Column("log_start_offset", "int64", "first offset of the log; null if unknown"),
        Column("log_end_offset", "int64", "offset after the last record"),
        Column("high_watermark", "int64", "offset after the last record that consumers may read; null if unknown"),
        *timestamps("high_watermark", "when the high watermark had this value; null if that is unknown"),
        Column(
            "last_stable_offset",
            "int64",
            "start of the first open transaction, or else the high watermark; null if no broker reported it",
        ),
        Column("place", "string", "folder of the log, or the broker it was read from"),
        Column(
            "is_cut",
            "bool",
            "whether an incomplete batch follows the last record, so that the log ends there or later; null if the "
            "source has no files",
        ),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    essential=("topic", "partition", "log_start_offset", "log_end_offset", "place"),
    details=("is_cut", "topic_id", "place", "high_watermark_timestamp"),
    rules="""\
One row per log partition of every topic in the source, or of the requested topic. Records are not read.

Running brokers report their logs as of now. In a directory, the high watermark is that of
`replication-offset-checkpoint`, which a broker writes every few seconds and when it stops; no file has the last stable
offset. A truncated append and damage at the end of the last file do not count.

A single segment file has no log start, and has a log end only if it is the last one. In snapshots and saved rows, the
log end is that of the rows.
""",
)
