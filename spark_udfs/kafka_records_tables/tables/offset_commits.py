"""Every commit of an offset and every tombstone, as they are in the log."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.commit_columns import committed
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="offset_commits",
    topic=OFFSETS,
    about="every commit and every deletion of an offset that the log still holds",
    helper="facts",
    records=COMMITS,
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        *committed("; null for a tombstone"),
        *timestamps(
            "expire",
            "when the offset expires, if a client before Kafka 2.1 set that (value version 1); otherwise null",
        ),
        Column("is_tombstone", "bool", "whether the record deletes the offset"),
        Column(
            "transaction",
            "string",
            "none, committed, aborted, open (the log ends before its marker) or unknown",
            ("none", "committed", "aborted", "open", "unknown"),
        ),
        Column("producer_id", "int64", "producer of the transaction; null if there is none"),
        *timestamps("log", "when the record was written"),
        *LOG_PLACE,
    ),
    sort=("group_id", "topic", "partition", "log_partition", "log_offset"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "offset", "is_tombstone"),
    details=(
        "topic_id",
        "leader_epoch",
        "metadata",
        "commit_timestamp",
        "expire_timestamp",
        "producer_id",
        "log_partition",
        "log_offset",
    ),
    rules="""\
One row per record that commits or deletes an offset (types 0 and 1), including commits of aborted and open
transactions.

A cleaner removes replaced records and, later, tombstones; a finding says from which offset on the rows are complete.
""",
)
