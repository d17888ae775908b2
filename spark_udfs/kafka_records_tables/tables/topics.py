"""Every topic of the cluster, including deleted ones, with partitions and configs."""

from __future__ import annotations

from kafka_records_tables.tables.declaration import REPLAYED, SHOW_SECRETS, Column, Table, timestamps
from kafka_records_tables.topics import METADATA

TABLE = Table(
    name="topics",
    topic=METADATA,
    about="every topic of the cluster, including deleted ones, with partitions and configs",
    helper="fold",
    records=("TopicRecord", "RemoveTopicRecord", "ConfigRecord", "PartitionRecord", "PartitionChangeRecord"),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("topic", "string", "name of the topic"),
        Column("topic_id", "string", "id of the topic, 22 characters; null if the source has none"),
        Column("partition_count", "int32", "number of partitions"),
        Column("replication_factor", "int32", "number of replicas of the first partition"),
        *timestamps("created", "when the topic was created; null if the log does not go back that far"),
        *timestamps("deleted", "when the topic was deleted; null if it exists"),
        Column(
            "configs",
            "list<struct<name: string, value: string>>",
            "configs set for the topic, by name",
        ),
    ),
    sort=("topic", "topic_id"),
    group=None,
    module=__name__,
    essential=("topic", "partition_count", "replication_factor"),
    details=("topic_id", "configs"),
    options=(SHOW_SECRETS,),
    rules=REPLAYED + """\
A topic that was deleted and created again under its name has a row for each. A deleted topic has a row as long as the
log shows its deletion. Times are those of records; a checkpoint has none.

The value of a config is `(redacted)` if Kafka's own definitions call it a secret or do not know it, unless
`show_secrets` is set.

Running brokers (`--bootstrap`) answer as of now: topics that the client may describe, without deleted ones. They do not
report when a topic was created, so that is null.
""",
)
