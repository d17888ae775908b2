"""Which offsets and groups a broker deletes on request, and why not the others."""

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
    about="which committed offsets and which groups can be deleted now, and why not the others",
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
        Column("topic", "string", "topic of the offset; null for a group"),
        Column("topic_id", "string", "its id, 22 characters; null if the commit names none, and for a group"),
        Column("partition", "int32", "partition of that topic; null for a group"),
        Column(
            "offset",
            "int64",
            "the committed offset; null for a group, and if only an open transaction commits the partition",
        ),
        Column("leader_epoch", "int32", "leader epoch of the last consumed record; null if the commit has none"),
        Column("metadata", "string", "what the client stored next to the offset"),
        Column("is_deletable", "bool", "whether a broker deletes it when it is asked to; null if unknown"),
        Column("reason", "string", "why, see above"),
        Column("error", "string", "the error that a broker answers with; null if it deletes"),
        Column(
            "is_pending",
            "bool",
            "whether an open transaction commits the partition, or one of the group's: deleting drops that commit too",
        ),
        Column("offset_count", "int64", "how many offsets go with a group; null for an offset"),
        *timestamps("commit", "when it was committed, for a group when the newest of its offsets was; null without"),
        Column("log_partition", "int32", "partition of the topic that the group is in"),
        Column(
            "log_offset",
            "int64",
            "offset of the commit; for a group that of its own record, or of the newest record that shows it",
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

A broker deletes an offset on request (OffsetDelete, KIP-496) whether or not it has expired. `reason` says what decides:

- `not_subscribed`: the group has members, and does not subscribe to the topic. It is deleted. This is what KIP-496 is
  for: as long as the group lives, nothing else takes the offset away before its retention is over.
- `no_members`: the group is empty, so it subscribes to nothing. It is deleted. A group that comes back starts where
  `auto.offset.reset` says.
- `simple_group`: the group has no protocol type, so a broker knows no members of it. It is deleted, although somebody
  may be consuming: who assigns partitions to itself and commits is in no record but its commits.
- `subscribed`: the group subscribes to the topic, by name, by a resolved regular expression, or, a streams group, as a
  source or repartition topic. A broker answers GROUP_SUBSCRIBED_TO_TOPIC.
- `unreadable_subscription`: a classic group of the protocol type `consumer` has members whose subscriptions a
  coordinator cannot read; it counts as subscribed to everything.
- `members`: a classic group of another protocol type has members. A broker answers NON_EMPTY_GROUP.
- `share_group`, `no_group`: there is no group of that name that has offsets. A broker answers GROUP_ID_NOT_FOUND.
- `no_name`: the name of the group is empty. A broker answers INVALID_GROUP_ID.
- `unreadable`: a record that decides cannot be decoded, or the end of its transaction is unknown; a finding names it.
  `is_deletable` is null.

A group goes as a whole, with all of its offsets (DeleteGroups), if it has no members, regardless of its kind:
`no_members` or `simple_group`. Otherwise the reason is `members`, and a broker answers NON_EMPTY_GROUP. With a share
group goes what `__share_group_state` holds of it; where a broker cannot delete that, the group stays.

An open transaction does not protect an offset from being deleted (it does from expiring): the broker drops what the
transaction has committed for that partition, and its end brings nothing back. `is_pending` marks these rows.

What the log cannot know: a classic group in a rebalance looks Stable or Empty here. With members that are joining it is
no empty group, so DeleteGroups answers NON_EMPTY_GROUP; and as long as its first generation has not begun it counts as
subscribed to everything. Which topics there are is not in this log either: for a topic or partition that does not exist
a broker answers UNKNOWN_TOPIC_OR_PARTITION before it asks the coordinator.
""",
)
