"""When each offset and each group expires, and the tombstones that a clean-up at a given time writes."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import RETENTION, Column, Option, Table, timestamps
from kafka_records_tables.topics import OFFSETS

KAFKA_RULES: Final = "kafka-4.3"
KIP_211: Final = "kip-211"

_NAMES: Final = (*COMMITS, *GROUP_RECORDS, *PARTS)

TABLE: Final = Table(
    name="expirations",
    topic=OFFSETS,
    about="when each committed offset and each group expires, and by which rule",
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
        Column("partition", "int32", "partition of the topic; null for a group"),
        *timestamps("expires", "when a clean-up deletes it; null if no clean-up will, unless something changes"),
        Column(
            "rule", "string", "name of the rule that decides when it expires, such as commit_timestamp or subscribed"
        ),
        Column(
            "protected_by",
            "string",
            "what keeps it from expiring: subscription, members or transaction; null if nothing does",
        ),
        Column(
            "changes_with",
            "list<string>",
            "events that would change this row: commit, members, subscription, transaction, offsets (of the group)",
        ),
        Column("record_type", "int16", "record type of the tombstone; null without `at`"),
        Column("key", "binary", "key of the tombstone; null without `at`"),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
        Column(
            "log_offset",
            "int64",
            "log offset of the commit; for a group, of its own record or, if it has none, of the newest record "
            "that mentions it",
        ),
    ),
    sort=("group_id", "topic", "partition", "kind", "record_type", "log_offset"),
    group="group_id",
    module=__name__,
    options=(
        Option(
            "at",
            "moment",
            "list only the tombstones that a clean-up at this moment writes, one per row",
        ),
        RETENTION,
        Option(
            "within",
            "ahead",
            "list only what expires within this time from now, or from the moment of as_of",
            not_with=("at",),
        ),
        Option(
            "rules",
            "word",
            "kip-211: use the table of states in that KIP",
            words=(KAFKA_RULES, KIP_211),
            default=KAFKA_RULES,
        ),
    ),
    essential=("kind", "group_id", "topic", "partition", "expires_timestamp", "rule"),
    details=("group_kind", "changes_with", "record_type", "key", "log_partition", "log_offset"),
    rules="""\
One row per committed offset and one per group; with the option `at`, one per tombstone that a clean-up writes then
(for one in the past, pass its moment as `as_of` too).

A broker cleans up every `offsets.retention.check.interval.ms` (ten minutes;
`OffsetMetadataManager.cleanupExpiredOffsets`; KIP-211, KIP-496). The rules:

- `commit_timestamp`: the time of the commit plus the retention, for all groups but empty classic ones (and for these
  if their record has no time).
- `state_timestamp`: the time when a classic group became empty, plus the retention, for all of its offsets, including
  those committed since.
- `expire_timestamp`: the time set in the commit itself (value version 1), regardless of the retention.
- `subscribed`: the group subscribes to the topic, by name or by a resolved regular expression. The offset does not
  expire.
- `members`: the group has members and does not expire. Neither do the offsets of a classic group with members if a
  coordinator cannot read its subscriptions.
- `open_transaction`: an open transaction commits this partition, or one of the group's. The older offset stays, and so
  does the group.
- `last_offset`: an empty group is deleted with the last of its offsets. `stays`: one of them does not expire at
  present.
- `nothing_left`: an empty group without offsets is deleted by the next clean-up, regardless of the retention. Its time
  is that of its own record, or else of its last commit.
- `share_group`: share groups do not expire.
- `no_group`: the group of the offset was deleted: a clean-up looks only at offsets of existing groups.
- `unreadable`: a deciding record cannot be decoded, or the end of its transaction is unknown; a finding names it.
- `no_time`: only with `rules=kip-211`: the record has no time of the state.

No broker follows `rules=kip-211`, the KIP's table of states, exactly.

What the log does not show: a classic group in a rebalance looks Stable or Empty, but a broker deletes nothing of it.
""",
)
