"""The producers with open transactions in each log, according to the logs. This table is an input of
`open_transactions`."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table

TABLE: Final = Table(
    name="open_producers",
    topic=EVERY_TOPIC,
    about="who has a transaction open in which log",
    helper="ends",
    records=(),
    reads=(
        "topic",
        "partition",
        "log_end_offset",
        "high_watermark",
        "high_watermark_timestamp_ms",
        "last_stable_offset",
        "open_producers",
        "sizes",
        "cleaner_offset",
    ),
    columns=(
        Column("moment_ms", "int64", "newest time in the logs of the source, in a row of its own"),
        Column("topic", "string", "topic"),
        Column("partition", "int32", "partition of the topic"),
        Column("producer_id", "int64", "producer with the open transaction"),
        Column("first_offset", "int64", "offset at which the transaction begins"),
        Column("since_timestamp_ms", "int64", "time of the first record of the transaction"),
        Column("last_timestamp_ms", "int64", "time of the producer's last batch"),
        Column("last_stable_offset", "int64", "offset at which the first open transaction of the log begins"),
        Column(
            "held_back",
            "int64",
            "number of offsets from last_stable_offset to the end of the log, if this transaction is the first "
            "open one",
        ),
        Column("holds_cleaner", "bool", "whether a cleaner has to stop at the transaction"),
        Column("has_entries", "bool", "whether the source has the topic of transactions"),
        Column("is_asked", "bool", "whether coordinators were asked for the columns after this one"),
        Column("transactional_id", "string", "transactional id with this producer id"),
        Column("state", "string", "state of the transactional id"),
        Column("timeout_ms", "int32", "timeout of the transaction"),
        Column("start_timestamp_ms", "int64", "when the transaction began"),
        Column(
            "partitions",
            "list<struct<topic: string, partitions: list<int32>>>",
            "partitions in which its marker is still to be written",
        ),
    ),
    sort=("topic", "partition", "first_offset"),
    group=None,
    module=__name__,
    rules="This table is an input of `open_transactions`.",
)
