"""Why each record of an offset, a group or a member was deleted."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import LOG_PLACE, RETENTION, Column, Option, Table, timestamps
from kafka_records_tables.tables.words.causes import CAUSES
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="disappearances",
    topic=OFFSETS,
    about="every record that deletes an offset, a group or a member, and why",
    helper="history",
    records=(*COMMITS, *GROUP_RECORDS, *PARTS),
    reads=(
        "offset",
        "timestamp_ms",
        "base_offset",
        "leader_epoch",
        "key",
        "value",
        "producer_id",
        "transaction",
        "control",
    ),
    columns=(
        Column("record_type", "int16", "record type of the tombstone"),
        Column("record", "string", "name of the tombstone's record type"),
        Column("group_id", "string", "the group"),
        Column("topic", "string", "name of the topic; null for other records"),
        Column("partition", "int32", "partition of the topic; null for other records"),
        Column("member_id", "string", "the member; null for records that are not about a member"),
        Column("regular_expression", "string", "the regular expression of a subscription; null for all other records"),
        Column(
            "cause",
            "string",
            "why the record was written: one cause, or several joined by `or`",
            tuple(CAUSES),
        ),
        Column("confidence", "string", "how certain the cause is: high, medium or low", ("high", "medium", "low")),
        Column(
            "possible_causes",
            "list<string>",
            "all causes that the log does not rule out",
        ),
        Column(
            "evidence",
            "list<struct<shows: string, log_offset: int64>>",
            "what the log shows, as words, each with the offset of the record that shows it",
        ),
        *timestamps("log", "when the record was written"),
        Column("write_offset", "int64", "offset of the first record of the same write"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    group="group_id",
    module=__name__,
    essential=("record", "group_id", "topic", "partition", "cause", "confidence"),
    details=(
        "record_type",
        "regular_expression",
        "possible_causes",
        "evidence",
        "log_timestamp",
        "write_offset",
        "log_partition",
        "log_offset",
    ),
    options=(
        RETENTION,
        Option(
            "session_timeout",
            "duration",
            "group.consumer.session.timeout.ms of the brokers, and the same setting for share and streams groups",
            default="45s",
        ),
    ),
    rules="""\
One row per tombstone that the log still holds (`share_disappearances` has those of share state). The causes:

- `expired`, `group_expired`: a clean-up removed it, by the rules of `expirations`.
- `group_deleted`, `offset_deleted`: an administrator deleted it (DeleteGroups, OffsetDelete; KIP-229, KIP-496).
- `topic_deleted`: the topic was deleted, and with it the offsets of all groups.
- `member_left`, `session_timeout`, `rebalance_timeout`: the member left or was removed, sent no heartbeat in time, or
  did not rebalance in time (KIP-848).
- `member_replaced`: a static member returned with a new id (KIP-345).
- `regex_unused`: no member uses the regular expression any more.
- `conversion`: the group changed between the classic and the consumer protocol, with its members.
- `replaced_empty_group`: an empty group was replaced by one of another kind; its offsets stay.
- `record_unused`: newer brokers do not use the record (type 4 since Kafka 4.1).

The confidence:

- `high`: the log rules out every other cause, for any retention and timeouts. If several causes are joined by `or`, it
  is certainly one of them. docs/limits.md has two exceptions in logs of Kafka 4.0 to 4.2.
- `medium`: other causes are ruled out only by the given retention and timeouts, or would be a coincidence.
- `low`: records around it are missing, or it contradicts the rules. `possible_causes` lists the alternatives.

The last records of a log are never `high`, because more may follow, and an offset that stays is proof only after a
minute.

The evidence:

- `due`, `not_due`: the offset could or could not expire yet with the given retention.
- `subscribed`, `members`, `open_transaction`: the group subscribed to its topic; its members protected it; a
  transaction with offsets of the group was open.
- `stays`: this offset of the group was just as due and stays, so no clean-up ran. `stays_in_topic`: this offset of the
  same topic stays, so the topic was not deleted.
- `several_groups`: the write is about several groups.
- `topic_deleted`, `topic_there`: the metadata log, if the source has it, shows that the topics of all these offsets
  were deleted within the minute before, which rules out every other cause; or that one of them was not.
- `group_ends`, `other_kind`: the group ends, or a group of another kind begins, in the same write.
- `same_instance`: the record of the member that takes over the instance id.
- `seen_before`, `session_timeout_over`, `rebalance_timeout_over`: the last record that a heartbeat of the member
  caused. Since then, the session timeout had not passed, had just passed, or the rebalance timeout had passed.

What the log does not show: heartbeats, so `member_left` and `session_timeout` mostly appear together. A member that
leaves a classic group writes no tombstone. In a log that was cleaned or begins in the middle, fewer causes can be
ruled out and tombstones are missing; a finding says from which offset on it is complete.
""",
)
