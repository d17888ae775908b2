"""The assignments of the members, as a group coordinator has them after loading the log."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.tables.declaration import GROUP_KINDS, Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

_NAMES: Final = "OffsetCommit"
"""Commits name a topic with its id."""


_TASKS: Final = ("active", "standby", "warmup")

TABLE: Final = Table(
    name="assignments",
    topic=OFFSETS,
    about="every partition or task that a member has, is to have, or has to give up",
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
            "current: it has the partition; pending_revocation: it has it, to give it up; target: it is to have it",
            ("current", "pending_revocation", "target"),
        ),
        Column("topic", "string", "topic of the partition; null if its name is unknown, and for tasks"),
        Column("topic_id", "string", "its id, 22 characters; null in classic groups and for tasks"),
        Column("subtopology_id", "string", "subtopology of the task; null but in streams groups"),
        Column("task_type", "string", "active, standby or warmup; null but in streams groups", _TASKS),
        Column(
            "source_topics",
            "list<string>",
            "topics that tasks of the subtopology read, each its partition; null but in streams groups",
        ),
        Column("partition", "int32", "the partition, or the number of the task"),
        Column(
            "assignment_epoch",
            "int32",
            "epoch of the assignment that it comes from, the generation in classic groups; null if unknown",
        ),
        *timestamps("log", "when the record was written that assigns it"),
        Column("log_partition", "int32", "partition of the topic that the group is in"),
        Column("log_offset", "int64", "offset of the record that assigns it"),
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
One row per member, role and partition, or task of a streams group, that a coordinator knows after loading the log
(`GroupMetadataManager.replay`; `Assignment`, `TasksTuple`, `TasksTupleWithEpochs`).

What a member has (`current`) and is to give up (`pending_revocation`) is in its last current assignment, what it is to
have (`target`) in its last target assignment; a tombstone of either record takes it away, and the tombstone of the
group takes both. A broker that describes a group shows the first two of a consumer together, leaves out topics that are
deleted, and shows no target of share groups. In a classic group `current` is what the leader assigned; there is no
other role. It is known for protocol type consumer only: connectors and tasks of a Connect worker are in `members`.

The epoch of a target is the epoch of the target assignment of the group. The epoch of a partition or active task which
a member has is in the record from Kafka 4.3 (consumer groups) and 4.2 (streams groups) on; before, and where the
numbers do not fit the partitions, it is the epoch of the member, as the coordinator takes it. Standby and warmup tasks
have none.

Records of the newer kinds name topics by ids. Their names come from the source, where it knows them (files
`partition.metadata`, a broker), and from records of the same log partition that name a topic with its id: commits and
what the group remembers of topics. An id never goes to another name, so that any of them is right.

What the log cannot know: what a member really reads, and whether it still lives; the ids of topics in classic groups;
the topics that match the regular expressions of a topology; what a cooperative assignor of a classic group takes away
first. A record that cannot be decoded has no rows, and a finding names it.
""",
)
