"""The commits whose transactions are open at the end of the log: unstable offsets, as a group coordinator calls
them."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.commit_columns import committed
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="pending_offsets",
    topic=OFFSETS,
    about="every commit whose transaction is open: what a group waits for",
    helper="latest",
    records=COMMITS,
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        *committed(),
        Column("producer_id", "int64", "producer of the open transaction"),
        *timestamps("since", "log timestamp of its first commit for this partition; null if the source has none"),
        *LOG_PLACE,
        Column("since_log_offset", "int64", "offset of the first commit of this partition in the transaction"),
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
One row per group, topic, partition and producer with a commit in a transaction that has no marker up to the end of the
log, and with no tombstone of that partition after the commit: a tombstone drops what is pending
(`OffsetMetadataManager.replay`, `replayEndTransactionMarker`). Of several commits in one transaction the last one is
the row; `since_timestamp` and `since_log_offset` are those of the first.

A client that asks a coordinator for stable offsets gets UNSTABLE_OFFSET_COMMIT for these partitions, and waits
(KIP-447). Plain commits do not change that. When the transaction commits, the row becomes the committed offset unless a
commit after it is there already. open_transactions says who holds it back.

A commit has no row, and a finding names it, if its value cannot be decoded, or if damage or a missing file may hide the
marker of its transaction.
""",
)
