"""The committed offsets over time: the time span in which each was valid."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="history",
    topic=OFFSETS,
    about="committed offsets over time: when each was valid, and what ended it",
    helper="history",
    records=COMMITS,
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "name of the topic"),
        Column("topic_id", "string", "id of the topic, 22 characters; null if the source has none"),
        Column("partition", "int32", "partition of the topic"),
        Column("offset", "int64", "offset of the next record to consume"),
        Column("leader_epoch", "int32", "leader epoch of the last consumed record; null if the record has none"),
        Column("metadata", "string", "metadata that the client stored with the offset"),
        *timestamps("valid_from", "when the offset became valid; null if the source has no times"),
        *timestamps("valid_to", "when the offset stopped being valid; null if it still is"),
        Column("is_current", "bool", "whether the offset is valid at the end of the log"),
        Column(
            "ended_by",
            "string",
            "commit, transaction (its marker), tombstone, or unusable (a record that cannot be used); null "
            "if still valid",
        ),
        Column("commits", "int64", "number of consecutive records that committed the same offset"),
        *timestamps("commit", "when the offset was first committed, by the broker's clock or as set by the client"),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
        Column("log_offset", "int64", "log offset of the record that first committed this offset"),
        Column("last_log_offset", "int64", "log offset of the last record that committed this offset"),
        Column(
            "valid_from_log_offset",
            "int64",
            "log offset of the record that made this offset valid",
        ),
        Column(
            "valid_to_log_offset",
            "int64",
            "log offset of the record that made this offset invalid; null if still valid",
        ),
    ),
    sort=("group_id", "topic", "partition", "log_partition", "valid_from_log_offset"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "offset", "valid_from_timestamp"),
    details=(
        "topic_id",
        "leader_epoch",
        "metadata",
        "commits",
        "commit_timestamp",
        "log_partition",
        "log_offset",
        "last_log_offset",
        "valid_from_log_offset",
        "valid_to_log_offset",
    ),
    rules="""\
One row per span of time in which a committed offset was valid: a slowly changing dimension of type 2. For each T with
`valid_from` <= T < `valid_to` there is one row per group, topic and partition, the one of `current_offsets` as of T.

Consecutive equal commits of a partition (offset, leader epoch, metadata, topic id) are one row. A commit in a
transaction is valid from the marker on; in an aborted or open transaction it is never valid. The tombstone of a group
does not end its offsets: they have their own tombstones.

If a clock went back, a record gets the latest time before it, as with `as_of`.

A finding says from which offset on a cleaned log is complete.
""",
)
