"""The share partitions, with their state as a share coordinator has it after loading the log."""

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
    about="how far each share group is in each partition, and the state of the records there",
    helper="fold",
    records=_RECORDS,
    reads=("offset", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the share group"),
        Column(
            "topic_id", "string", "id of the topic that it consumes, 22 characters; share_group_topics has its name"
        ),
        Column("partition", "int32", "partition of that topic"),
        Column("state_epoch", "int32", "rises when the state is initialised again; null if `is_partial`"),
        Column("leader_epoch", "int32", "epoch of the partition leader that wrote last; null if there is none"),
        Column("start_offset", "int64", "first offset that is not done with; null while it is not decided"),
        Column(
            "delivery_complete_count",
            "int32",
            "records from the start offset on that are done with, as the last record says (Kafka 4.2); else null",
        ),
        Column(
            "coordinator_lag",
            "int64",
            "with --source requests: offsets from the start offset to the end that are not done with, as the "
            "coordinator counts them (Kafka 4.2); else null",
        ),
        Column("available_count", "int64", "offsets in batches that are available: to be delivered, or again"),
        Column("acknowledged_count", "int64", "offsets in batches that are acknowledged"),
        Column("archived_count", "int64", "offsets in batches that are archived: rejected, or delivered too often"),
        Column("other_count", "int64", "offsets in batches in any other state"),
        Column(
            "batches",
            f"list<struct<{_BATCH}>>",
            "ranges of offsets, with the state of their records; 0 is available, 2 acknowledged, 4 archived",
        ),
        Column("snapshot_epoch", "int32", "number of the last snapshot"),
        Column("update_count", "int32", "updates on top of it"),
        *timestamps("create", "when the state was created; null if `is_partial`"),
        *timestamps("write", "when the last snapshot was written; null if `is_partial`"),
        Column("is_partial", "bool", "whether the snapshot that an update builds on is not in the log"),
        Column("log_partition", "int32", "partition of the topic that the records are in"),
        Column("log_offset", "int64", "offset of the last record that made the row"),
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
One row per share partition (group, topic id, partition) with a snapshot or an update and no tombstone behind it
(`ShareCoordinatorShard.replay`; KIP-932).

A snapshot is the whole state. An update changes it: -1 leaves start offset and leader epoch as they are, the complete
count is always replaced, and batches are merged as `PersisterStateBatchCombiner` does it: offsets below the start
offset are dropped, and where two batches overlap the one with more deliveries wins, or else the one with the higher
state. So the batches are those of a coordinator, which does not merge some neighbours with equal state.

The coordinator deletes the beginning of this log, up to the oldest of the last snapshots: the least
`snapshot_log_offset` is what it may delete now. So the log does not show earlier moments what it shows its end, and a
note says so. A state that begins with an update is partial: what the snapshot said is not known, and other offsets may
have batches too. If a record cannot be decoded, is an update without a value, or holds a batch that ends before it
begins, then no coordinator loads this log. Its share partition has no row then, unless a snapshot follows; a finding
names the record.

What the log cannot know: which records a member has now (acquired), and what it has acknowledged since the last write.
""",
)
