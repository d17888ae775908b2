"""The share partitions with their state, as a share coordinator knows it after loading the log."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import Column, Table, timestamps
from kafka_records_tables.topics import SHARE_STATE

_RECORDS: Final = ("ShareSnapshot", "ShareUpdate")

_BATCH: Final = (
    "first_offset: int64, last_offset: int64, delivery_state: int8, delivery_state_name: string, delivery_count: int16"
)

TABLE: Final = Table(
    name="share_partitions",
    topic=SHARE_STATE,
    about="how far each share group is in each partition",
    helper="fold",
    records=_RECORDS,
    reads=("offset", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic_id", "string", "id of the topic, 22 characters; null if the source has none"),
        Column("partition", "int32", "partition of the topic"),
        Column("state_epoch", "int32", "number that grows each time the state is initialized; null if `is_partial`"),
        Column(
            "leader_epoch", "int32", "epoch of the partition leader that last wrote the state; null if there is none"
        ),
        Column("start_offset", "int64", "first offset that is not acknowledged or archived; null until it is decided"),
        Column(
            "delivery_complete_count",
            "int32",
            "number of acknowledged or archived records from the start offset on (since Kafka 4.2)",
        ),
        Column(
            "coordinator_lag",
            "int64",
            "with --source requests, the lag as the coordinator counts it (Kafka 4.2 or later); otherwise null",
        ),
        Column(
            "available_count",
            "int64",
            "number of offsets in available batches",
        ),
        Column("acknowledged_count", "int64", "number of offsets in acknowledged batches"),
        Column(
            "archived_count",
            "int64",
            "number of offsets in archived batches",
        ),
        Column("other_count", "int64", "number of offsets in batches in any other state"),
        Column(
            "batches",
            f"list<struct<{_BATCH}>>",
            "ranges of offsets with the state of their records: 0 available, 2 acknowledged, 4 archived",
        ),
        Column("snapshot_epoch", "int32", "number of the last snapshot"),
        Column("update_count", "int32", "number of updates after the last snapshot"),
        *timestamps("create", "when the state was created; null if `is_partial`"),
        *timestamps("write", "when the last snapshot was written; null if `is_partial`"),
        Column("is_partial", "bool", "whether the log lacks the snapshot that the updates build on"),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
        Column("log_offset", "int64", "offset of the last record of the state"),
        Column("snapshot_log_offset", "int64", "offset of the last snapshot; null if it is not in the log"),
    ),
    sort=("group_id", "topic_id", "partition"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic_id", "partition", "start_offset"),
    details=(
        "batches",
        "state_epoch",
        "leader_epoch",
        "snapshot_epoch",
        "update_count",
        "create_timestamp",
        "write_timestamp",
        "log_partition",
        "log_offset",
        "snapshot_log_offset",
    ),
    rules="""\
One row per share partition (group, topic id, partition) with a snapshot or an update and no later tombstone
(`ShareCoordinatorShard.replay`; KIP-932). `share_group_topics` has the names of the topics.

A snapshot is the entire state; updates change it (`PersisterStateBatchCombiner`).

The coordinator deletes the beginning of this log, up to the oldest of the last snapshots. So the log may not show the
state as of an earlier moment, and a note says so. A state that begins with an update is partial: other offsets may
have batches too. After a record that cannot be used, a share partition has no row unless a snapshot follows.

What the log does not show: the records that a member has acquired.
""",
)
