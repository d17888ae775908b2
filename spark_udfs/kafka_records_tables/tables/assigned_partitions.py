"""The partitions that members of groups have: an input of the table lag, which looks for those without a commit."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import Column, Table
from kafka_records_tables.tables.replay.records_of_groups import GROUP_RECORDS, PARTS
from kafka_records_tables.tables.words.topics import OFFSETS

TABLE: Final = Table(
    name="assigned_partitions",
    topic=OFFSETS,
    about="the partitions that members of groups have",
    helper="fold",
    records=(*GROUP_RECORDS, *PARTS),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "topic of the partition"),
        Column(
            "partition", "int32", "the partition; null where the log names the topic of an assignment by its id only"
        ),
        Column("log_partition", "int32", "partition of the topic that the group is in"),
    ),
    sort=("group_id", "topic", "partition", "log_partition"),
    group="group_id",
    module=__name__,
    rules="An input of lag.",
)
