"""The commits whose transactions are open at the end of the log, which group coordinators call unstable offsets."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.commit_columns import committed
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="pending_offsets",
    topic=OFFSETS,
    about="every commit in an open transaction, for which a group has to wait",
    helper="latest",
    records=COMMITS,
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        *committed(),
        Column("producer_id", "int64", "producer of the transaction"),
        *timestamps(
            "since",
            "log timestamp of the first commit for this partition in the transaction; null if the source has none",
        ),
        *LOG_PLACE,
        Column("since_log_offset", "int64", "log offset of the first commit for this partition in the transaction"),
    ),
    sort=("group_id", "topic", "partition", "log_offset"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "offset", "producer_id"),
    details=(
        "topic_id",
        "leader_epoch",
        "metadata",
        "commit_timestamp",
        "log_partition",
        "log_offset",
        "since_log_offset",
    ),
    rules="""\
One row per group, topic, partition and producer with a commit in a transaction that has no marker at the end of the
log. A later tombstone of the partition removes the row.

A client that asks for stable offsets gets UNSTABLE_OFFSET_COMMIT for these partitions and waits (KIP-447), regardless
of plain commits. `open_transactions` shows the producer of the transaction. A commit that cannot be decoded, or whose
marker may be missing, has a finding instead of a row.""",
)
