"""The assignments of members, as a group coordinator knows them after loading the log."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.tables.declaration import GROUP_KINDS, Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

_NAMES: Final = "OffsetCommit"
"""Commits contain both the name and the id of a topic."""


_TASKS: Final = ("active", "standby", "warmup")

TABLE: Final = Table(
    name="assignments",
    topic=OFFSETS,
    about="every partition or task that a member has, should get, or must give up",
    helper="fold",
    records=(*GROUP_RECORDS, *PARTS, _NAMES),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("group_kind", "string", "classic, consumer, share or streams", GROUP_KINDS),
        Column("member_id", "string", "the member"),
        Column(
            "role",
            "string",
            "current: the member has the partition; pending_revocation: it has it and must give it up; "
            "target: it should have it",
            ("current", "pending_revocation", "target"),
        ),
        Column("topic", "string", "name of the topic; null if its name is unknown, and for tasks"),
        Column("topic_id", "string", "id of the topic, 22 characters; null in classic groups and for tasks"),
        Column("subtopology_id", "string", "subtopology of the task; null except in streams groups"),
        Column("task_type", "string", "active, standby or warmup; null except in streams groups", _TASKS),
        Column(
            "source_topics",
            "list<string>",
            "topics of which the task reads its own partition; null except in streams groups",
        ),
        Column("partition", "int32", "number of the partition, or of the task"),
        Column(
            "assignment_epoch",
            "int32",
            "epoch of the assignment, or generation in a classic group; null if unknown",
        ),
        *timestamps("log", "when the record was written"),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
        Column("log_offset", "int64", "offset of the record in that partition"),
    ),
    sort=("group_id", "member_id", "role", "topic", "topic_id", "subtopology_id", "task_type", "partition"),
    group="group_id",
    module=__name__,
    essential=("group_id", "member_id", "role", "topic", "partition"),
    details=(
        "group_kind",
        "topic_id",
        "source_topics",
        "assignment_epoch",
        "log_timestamp",
        "log_partition",
        "log_offset",
    ),
    rules="""\
One row per member, role and partition (or task of a streams group) that a coordinator knows after loading the log
(`GroupMetadataManager.replay`).

A classic group has only `current`, and only for protocol type consumer: connectors and tasks of Connect workers are in
`members`.

A current partition or active task has the epoch in the record (consumer groups since Kafka 4.3, streams groups since
4.2), otherwise the member's. Standby and warmup tasks have no epoch.

Records of the newer kinds of groups have topic ids. Names come from the source (`partition.metadata` files, a broker)
and from commits with both.

What the log does not show: what a member really reads, and whether it is alive; topic ids in classic groups.
""",
)
