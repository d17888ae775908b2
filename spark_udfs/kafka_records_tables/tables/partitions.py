"""Every partition of the cluster: leader, replicas, in-sync replicas."""

from __future__ import annotations

from kafka_records_tables.tables.declaration import REPLAYED, Column, Table
from kafka_records_tables.topics import METADATA

TABLE = Table(
    name="partitions",
    topic=METADATA,
    about="every partition of the cluster: leader, replicas, in-sync replicas",
    helper="fold",
    records=("TopicRecord", "PartitionRecord", "PartitionChangeRecord", "RemoveTopicRecord", "ClearElrRecord"),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("topic", "string", "name of the topic"),
        Column("topic_id", "string", "id of the topic, 22 characters; null if the source has none"),
        Column("partition", "int32", "partition of the topic"),
        Column("leader", "int32", "broker that leads the partition; -1 if there is none"),
        Column("replicas", "list<int32>", "brokers that hold the partition, the preferred leader first"),
        Column("isr", "list<int32>", "replicas that are in sync"),
        Column("elr", "list<int32>", "eligible leader replicas"),
        Column("leader_epoch", "int32", "number of times that the leader has changed"),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    essential=("topic", "partition", "leader"),
    details=("topic_id", "elr"),
    rules=REPLAYED + """\
When the last broker of a cluster stops, its partitions have no leader, and the log of a stopped cluster shows that.
""",
)
