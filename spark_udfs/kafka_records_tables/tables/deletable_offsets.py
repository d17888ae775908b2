"""The offsets and groups that a broker deletes on request, and the reasons why it does not delete others."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

_NAMES: Final = (*COMMITS, *GROUP_RECORDS, *PARTS)

TABLE: Final = Table(
    name="deletable_offsets",
    topic=OFFSETS,
    about="which committed offsets and groups can be deleted now, and why not the others",
    helper="fold",
    records=_NAMES,
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        Column("kind", "string", "offset or group", ("offset", "group")),
        Column("group_id", "string", "the group"),
        Column(
            "group_kind",
            "string",
            "classic, simple, consumer, share or streams; null if the group of an offset is gone",
        ),
        Column("topic", "string", "name of the topic; null for a group"),
        Column("topic_id", "string", "id of the topic, 22 characters; null if the commit has none, and for a group"),
        Column("partition", "int32", "partition of the topic; null for a group"),
        Column(
            "offset",
            "int64",
            "committed offset; null for a group, and if only an open transaction has a commit for the partition",
        ),
        Column("leader_epoch", "int32", "leader epoch of the last consumed record; null if the record has none"),
        Column("metadata", "string", "metadata that the client stored with the offset"),
        Column("is_deletable", "bool", "whether a broker deletes it on request; null if unknown"),
        Column("reason", "string", "why it is deletable or not, such as no_members or subscribed"),
        Column("error", "string", "error that a broker returns on request; null if it deletes"),
        Column(
            "is_pending",
            "bool",
            "whether an open transaction has a commit for it, which a deletion also drops",
        ),
        Column(
            "offset_count", "int64", "number of offsets that are deleted with the group; null in rows of kind `offset`"
        ),
        *timestamps(
            "commit", "when the offset or, for a group, its newest offset was committed; null if there is none"
        ),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
        Column(
            "log_offset",
            "int64",
            "log offset of the commit; for a group, of its own record or, if it has none, of the newest record "
            "that mentions it",
        ),
    ),
    sort=("group_id", "topic", "partition", "kind", "log_offset"),
    group="group_id",
    module=__name__,
    essential=("kind", "group_id", "topic", "partition", "is_deletable", "reason"),
    details=(
        "topic_id",
        "leader_epoch",
        "metadata",
        "error",
        "is_pending",
        "offset_count",
        "log_partition",
        "log_offset",
    ),
    rules="""\
One row per committed offset and one per group, deletable or not. `kafka-records delete-offsets` takes these rows.

A broker deletes an offset on request (OffsetDelete, KIP-496) whether or not it has expired. `reason` is one of:

- `not_subscribed`: deletable. The group has members but does not subscribe to the topic.
- `no_members`: deletable. The group is empty. If it returns, `auto.offset.reset` says where it starts.
- `simple_group`: deletable. The group has no protocol type, so a broker knows no members. A consumer that assigns
  itself partitions may still be active.
- `subscribed`: the group subscribes to the topic, by name or by a resolved regular expression. A broker returns
  GROUP_SUBSCRIBED_TO_TOPIC.
- `unreadable_subscription`: members of a classic group have subscriptions that a coordinator cannot read. It counts as
  subscribed to everything.
- `members`: a classic group of another protocol type has members. A broker returns NON_EMPTY_GROUP.
- `share_group`, `no_group`: no group of that name has offsets. A broker returns GROUP_ID_NOT_FOUND.
- `no_name`: the name of the group is empty. A broker returns INVALID_GROUP_ID.
- `unreadable`: a deciding record cannot be decoded, or the end of its transaction is unknown; a finding names it.
  `is_deletable` is null.

A group of any kind can be deleted with all of its offsets (DeleteGroups) if it has no members: `no_members` or
`simple_group`. Otherwise the reason is `members`, and a broker returns NON_EMPTY_GROUP. A share group is deleted with
its state.

An open transaction does not protect an offset from being deleted: the broker drops what the transaction committed for
that partition (`is_pending`).

What the log does not show: a classic group in a rebalance looks Stable or Empty here, but while members are joining,
DeleteGroups returns NON_EMPTY_GROUP.
""",
)
