"""Every partition of the cluster: leader, replicas, in-sync replicas."""

from __future__ import annotations

from kafka_records_tables.tables.declaration import Column, Table
from kafka_records_tables.topics import METADATA

TABLE = Table(
    name="partitions",
    topic=METADATA,
    about="every partition of the cluster: leader, replicas, in-sync replicas",
    helper="fold",
    records=("TopicRecord", "PartitionRecord", "PartitionChangeRecord", "RemoveTopicRecord", "ClearElrRecord"),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("topic", "string", "topic"),
        Column("topic_id", "string", "id of the topic, in Kafka's 22 characters"),
        Column("partition", "int32", "partition of the topic"),
        Column("leader", "int32", "broker that leads it; -1 for none"),
        Column("replicas", "list<int32>", "brokers that hold it, the preferred leader first"),
        Column("isr", "list<int32>", "replicas that are in sync"),
        Column("elr", "list<int32>", "replicas that may be elected although not in sync"),
        Column("leader_epoch", "int32", "how often it has changed its leader"),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    essential=("topic", "partition", "leader"),
    details=("topic_id", "elr"),
    rules="""\
The log is replayed from its beginning, or else from the earliest checkpoint that it still has after its beginning, in
the order of the log; records of a metadata transaction count once it has ended (KIP-868). The end of the log on a disk
may hold records that a quorum has not agreed on yet, which is a matter of milliseconds. A change says what is new and
leaves the rest as it was; each new leader raises the leader epoch by one (`PartitionRegistration.merge`). When the last
broker of a cluster stops, its partitions have no leader: that is what the log of a stopped cluster says.

Of running brokers (`--bootstrap`) the rows are their answers of now: partitions of topics that may be described.
""",
)
