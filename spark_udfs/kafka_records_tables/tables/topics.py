"""Every topic of the cluster, including deleted ones, with partitions and configs."""

from __future__ import annotations

from kafka_records_tables.tables.declaration import SHOW_SECRETS, Column, Table, timestamps
from kafka_records_tables.topics import METADATA

TABLE = Table(
    name="topics",
    topic=METADATA,
    about="every topic of the cluster, also those that are deleted, with partitions and configs",
    helper="fold",
    records=("TopicRecord", "RemoveTopicRecord", "ConfigRecord", "PartitionRecord", "PartitionChangeRecord"),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("topic", "string", "topic"),
        Column("topic_id", "string", "id of the topic, in Kafka's 22 characters"),
        Column("partition_count", "int32", "how many partitions it has, or had when it was deleted"),
        Column("replication_factor", "int32", "how many replicas its first partition has"),
        *timestamps("created", "when it was created; null if the log does not go back so far"),
        *timestamps("deleted", "when it was deleted; null for a topic that is there"),
        Column(
            "configs",
            "list<struct<name: string, value: string>>",
            "configs of the topic itself, by name; a deleted topic has those it had",
        ),
    ),
    sort=("topic", "topic_id"),
    group=None,
    module=__name__,
    essential=("topic", "partition_count", "replication_factor"),
    details=("topic_id", "configs"),
    options=(SHOW_SECRETS,),
    rules="""\
The log is replayed from its beginning, or else from the earliest checkpoint that it still has after its beginning, in
the order of the log; records of a metadata transaction count once it has ended (KIP-868). The end of the log on a disk
may hold records that a quorum has not agreed on yet, which is a matter of milliseconds. A topic that was deleted and
made again under its name has a row for each. A deleted topic has a row as long as the log shows its deletion. Times are
those of records; a checkpoint has none.

A config is a secret where Kafka's own definitions say so, and where they do not know it: its value is `(redacted)`
unless secrets are asked for.

Of running brokers (`--bootstrap`) the rows are their answers of now: topics that may be described, without those that
were deleted. Brokers do not tell when a topic was created, so that is null.
""",
)
