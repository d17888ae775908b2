"""Where the logs of a source begin and end."""

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
        Column("topic", "string", "topic"),
        Column("topic_id", "string", "id of the topic, in Kafka's 22 characters; null if the source does not tell"),
        Column("partition", "int32", "partition of the topic"),
        Column("log_start_offset", "int64", "offset at which the log starts; null if the source does not tell"),
        Column("log_end_offset", "int64", "offset after the last record; of saved rows, after the last of them"),
        Column("high_watermark", "int64", "offset after the last record that consumers may read; null as above"),
        *timestamps("high_watermark", "when the high watermark had this value; null if there is none"),
        Column("last_stable_offset", "int64", "start of the first open transaction, or else the high watermark"),
        Column("place", "string", "folder of the log, or the broker that leads the partition and told all this"),
        Column(
            "is_cut",
            "bool",
            "whether bytes that are not a whole batch come after the last record, so that the log ends there or "
            "later; null if no file shows it",
        ),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    essential=("topic", "partition", "log_start_offset", "log_end_offset", "place"),
    details=("is_cut", "topic_id", "place", "high_watermark_timestamp"),
    rules="""\
One row per log partition of every topic in the source, or of the one that is asked for. Records are not read.

Running brokers tell it as of now: the leader of a partition answers ListOffsets, which needs the right DESCRIBE on the
topic. In a directory the log start is that of `log-start-offset-checkpoint`, which lists raised ones only, or else the
name of the first segment file. The log end follows from the heads of the last batches. An append that was cut short
does not count, and neither does damage at the end of the last file: both are found, and `is_cut` is true. The high
watermark is what the broker wrote last into `replication-offset-checkpoint`, which happens every few seconds and when
it stops: its timestamp is that of the file. No file tells the last stable offset.

Single segment files without the others of their log tell no log start, nor a log end unless they are the last. A
snapshot tells the log start and the topic id that its sources knew last, saved rows neither of them; the log end of
both is that of their rows.
""",
)
