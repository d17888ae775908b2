"""The partitions that group members have, and the topics that groups have left. This table is an input of `lag`."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import Column, Table
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="assigned_partitions",
    topic=OFFSETS,
    about="the partitions that members of groups have",
    helper="fold",
    records=(*COMMITS, *GROUP_RECORDS, *PARTS),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "name of the topic"),
        Column(
            "partition",
            "int32",
            "the partition; null if the log has only the id of the topic, or if the group has left the topic",
        ),
        Column("member_id", "string", "the member that has the partition; null if the group has left the topic"),
        Column("client_id", "string", "client.id; null if no record has it"),
        Column("client_host", "string", "address of the member; null if no record has it"),
        Column("has_left", "bool", "whether the group has a commit for the topic but no member that subscribes to it"),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
    ),
    sort=("group_id", "topic", "partition", "log_partition"),
    group="group_id",
    module=__name__,
    rules="This table is an input of `lag`.",
)
