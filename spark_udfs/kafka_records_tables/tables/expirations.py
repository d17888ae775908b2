"""When each offset and each group expires, and what a clean-up at a given moment writes."""

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
    about="when each committed offset and each group expires, by which rule, and what a clean-up writes",
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
        Column("partition", "int32", "partition of that topic; null for a group"),
        *timestamps("expires", "when a clean-up deletes it; null if none does as long as nothing changes"),
        Column("rule", "string", "the rule that decides, see above"),
        Column(
            "protected_by",
            "string",
            "what has to end before it can expire: subscription, members or transaction; null if nothing has to",
        ),
        Column(
            "changes_with",
            "list<string>",
            "what would change the answer: commit (a new one of the offset), members (one joins, or all leave), "
            "subscription (the group subscribes to the topic, or no longer does), transaction (it ends), offsets "
            "(one of the group's is committed or deleted, or may expire)",
        ),
        Column("record_type", "int16", "record type of the tombstone that the clean-up writes; null without `at`"),
        Column("key", "binary", "key of that tombstone; null without `at`"),
        Column("log_partition", "int32", "partition of the topic that the group is in"),
        Column(
            "log_offset",
            "int64",
            "offset of the commit; for a group that of its own record, or of the newest record that shows it",
        ),
    ),
    sort=("group_id", "topic", "partition", "kind", "record_type", "log_offset"),
    group="group_id",
    module=__name__,
    options=(
        Option(
            "at",
            "moment",
            "the tombstones that a clean-up at this moment writes, one per row, and nothing else",
        ),
        RETENTION,
        Option(
            "within",
            "ahead",
            "only what expires by now, or by the moment of as_of, and this much later",
            not_with=("at",),
        ),
        Option(
            "rules",
            "word",
            "kip-211: by the table of states in that KIP, which no broker follows to the letter",
            words=(KAFKA_RULES, KIP_211),
            default=KAFKA_RULES,
        ),
    ),
    essential=("kind", "group_id", "topic", "partition", "expires_timestamp", "rule"),
    details=("group_kind", "changes_with", "record_type", "key", "log_partition", "log_offset"),
    rules="""\
One row per committed offset and one per group; with the option `at` one per tombstone that a clean-up writes then.

A broker cleans up every `offsets.retention.check.interval.ms`, ten minutes by default, so what expires goes at the
first clean-up at or after its time (`OffsetMetadataManager.cleanupExpiredOffsets`; KIP-211, KIP-496). The rules:

- `commit_timestamp`: the retention after the commit. So it is for simple groups, for consumer and streams groups in any
  state, for classic groups that have members, and for empty classic groups whose record has no time.
- `state_timestamp`: the retention after a classic group with a protocol type became empty, for all of its offsets, also
  those committed since.
- `expire_timestamp`: the time that the commit itself names (value version 1), regardless of the retention.
- `subscribed`: the group subscribes to the topic, by name or by a resolved regular expression. Nothing expires.
- `members`: a classic group with members, of another protocol type than `consumer` or with subscriptions that a
  coordinator cannot read, loses no offset; and no group goes that has members.
- `open_transaction`: an open transaction commits this partition, or one of the group's. The older offset stays, and so
  does the group.
- `last_offset`: an empty group goes with the last of its offsets. `stays`: one of them does not expire at present.
- `nothing_left`: an empty group without offsets goes at the next clean-up, regardless of the retention. Its time is
  that of its own record, of the last of its commits without one, or the beginning of 1970 where the source has no
  times.
- `share_group`: share groups do not expire.
- `no_group`: the group of the offset had a tombstone, and a clean-up looks at offsets of groups only.
- `unreadable`: a record that decides cannot be decoded, or the end of its transaction is unknown; a finding names it.
- `no_time`: `rules=kip-211` only. The KIP counts from the time of the state, and the record has none.

With `rules=kip-211` the KIP's table of states decides: an empty group with a protocol type goes with all of its
offsets, the retention after its state began; of a group with members, offsets of topics it does not subscribe to go,
the retention after their commit; and so do those of a group without a protocol type. That table knows neither open
transactions nor times that a commit names. No broker was asked about it, and a note says so.

What the log cannot know: a classic group in a rebalance looks Stable or Empty here; a broker deletes nothing of it.
A group that a refused commit has made is in no record, and a clean-up may write a tombstone for it. To ask what a
clean-up in the past wrote, give its moment as `as_of` and as `at`.
""",
)
