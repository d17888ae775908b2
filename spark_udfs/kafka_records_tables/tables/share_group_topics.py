"""The partitions in which share groups have state, according to the group coordinator."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table
from kafka_records_tables.topics import OFFSETS

_RECORDS: Final = ("ShareGroupStatePartitionMetadata",)


TABLE: Final = Table(
    name="share_group_topics",
    topic=OFFSETS,
    about="the topic partitions in which share groups have, get or lose state",
    helper="latest",
    records=_RECORDS,
    reads=("offset", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "name of the topic"),
        Column("topic_id", "string", "id of the topic, 22 characters; null if the source has none"),
        Column("partition", "int32", "partition of the topic; null for a topic that is being deleted"),
        Column(
            "initialization",
            "string",
            "initializing (the share coordinator was asked for state), initialized (it has state) or deleting",
        ),
        *LOG_PLACE,
    ),
    sort=("group_id", "topic", "topic_id", "partition", "initialization"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "initialization"),
    details=("topic_id", "log_partition", "log_offset"),
    rules="""\
One row per partition listed in a group's last record of type 15 (`ShareGroupStatePartitionMetadata`; KIP-932), and one
per topic that is being deleted, for which the record lists no partitions.
""",
)
