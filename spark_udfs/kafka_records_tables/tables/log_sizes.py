"""The file sizes of logs, and the offsets up to which they have been cleaned. This table is an input of `log_files`."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table

TABLE: Final = Table(
    name="log_sizes",
    topic=EVERY_TOPIC,
    about="how large the files of logs are, and up to where they are cleaned",
    helper="ends",
    records=(),
    reads=(
        "topic",
        "partition",
        "log_start_offset",
        "log_end_offset",
        "place",
        "segments",
        "bytes",
        "sizes",
        "cleaner_offset",
    ),
    columns=(
        Column("topic", "string", "topic"),
        Column("partition", "int32", "partition of the topic"),
        Column("log_start_offset", "int64", "offset at which the log starts"),
        Column("log_end_offset", "int64", "offset after the last record"),
        Column("place", "string", "folder of the log"),
        Column("segments", "int64", "number of files with records"),
        Column("bytes", "int64", "bytes of the files with records"),
        Column(
            "sizes",
            "list<struct<offset: int64, bytes: int64, timestamp_ms: int64>>",
            "size of each file, with the offset in its name and the latest time of a record; the time is null for the "
            "newest file",
        ),
        Column("cleaner_offset", "int64", "offset up to which the log is cleaned, from cleaner-offset-checkpoint"),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    rules="This table is an input of `log_files`.",
)
