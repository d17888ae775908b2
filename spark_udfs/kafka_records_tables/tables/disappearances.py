"""Why each record of offsets, groups and members was deleted."""

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
    about="every record that deletes an offset, a group or a member: why, and how sure that is",
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
        Column("record", "string", "name of that type"),
        Column("group_id", "string", "the group"),
        Column("topic", "string", "topic of the offset; null for other records"),
        Column("partition", "int32", "partition of that topic; null for other records"),
        Column("member_id", "string", "the member; null for a record that is about none"),
        Column("regular_expression", "string", "the regular expression; null for other records"),
        Column(
            "cause",
            "string",
            "why it was written: one of the words below, or several of them with `or` between",
            tuple(CAUSES),
        ),
        Column("confidence", "string", "high, medium or low, see below", ("high", "medium", "low")),
        Column(
            "possible_causes",
            "list<string>",
            "every cause that the log does not rule out, regardless of what is assumed",
        ),
        Column(
            "evidence",
            "list<struct<shows: string, log_offset: int64>>",
            "what the log shows, see below, and the record that shows it; null if no single record does",
        ),
        *timestamps("log", "when it was written"),
        Column("write_offset", "int64", "offset of the first of the records that were written with it"),
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
            "group.consumer.session.timeout.ms of the brokers, and those of share and streams groups",
            default="45s",
        ),
    ),
    rules="""\
One row per tombstone that the log still holds. A log says what was deleted and not why; much of the reason follows from
the records around a tombstone, because a coordinator writes everything that one request or timer does at once.

The causes, in the words of Kafka's own calls:

- `expired`, `group_expired`: a clean-up took an offset that was due, or a group that was empty and without offsets
  (`GroupCoordinatorShard.cleanupGroupMetadata`). The rules are those of `expirations`.
- `group_deleted`, `offset_deleted`: an administrator did (DeleteGroups, OffsetDelete; KIP-229, KIP-496).
- `topic_deleted`: the topic was deleted, and with it the offsets of all groups.
- `member_left`, `session_timeout`, `rebalance_timeout`: the member left or was removed, was not heard of, or did not
  give up partitions, join or sync in time (KIP-848).
- `member_replaced`: a static member came back under a new id, which the same write adds (KIP-345).
- `regex_unused`: no member subscribes by the regular expression any more.
- `conversion`: the group went over between the classic and the consumer protocol, with its members.
- `replaced_empty_group`: an empty group gave way to one of another kind; its offsets stay.
- `record_unused`: a newer broker has no use for the record (type 4 since Kafka 4.1).

How sure that is:

- `high`: the log rules out every other cause, regardless of the retention and the timeouts. A cause of several words is
  sure, too: it is one of them, and the log cannot tell which.
- `medium`: others are possible, but not with the given retention and timeouts, or only by chance: an administrator may
  delete just what the next clean-up would take.
- `low`: records around it are missing, nothing is known of what it deleted, or it contradicts the rules.
  `possible_causes` lists the alternatives.

At the end of a log, or at the moment that is asked for, more may follow. What stays is taken as proof when the clock of
the log has gone on by more than a minute (one record counts for 20 seconds of it at most, for clocks jump), and the
last records that were written are never `high`: what is said about these may still change.

What evidence shows:

- `not_due`: this offset could not expire yet, with the retention that was given; where `expired` is not among the
  possible causes, with none: its commit names a later time, or it is younger than a minute, the shortest retention
  there is. `due`: it could, with the one that was given. `subscribed`: the group subscribed to its topic. `members`:
  the group's members kept it. `open_transaction`: a transaction was open that commits it, or for the group.
- `stays`: this offset of the group was as due and stays, so no clean-up ran. `stays_in_topic`: this offset of the same
  topic stays, so the topic was not deleted. `several_groups`: the write is about several, a request about one.
- `topic_deleted`, `topic_there`: where the source has a metadata log too, the topics of all these offsets were deleted
  within the minute before (also if they were created again since), or one of them was not. The first rules every other
  cause out, and the second this one.
- `group_ends`: the group ends in the same write, with this record. `other_kind`: there one of another kind begins.
- `same_instance`: the record of the member that takes the place under the same instance id.
- `seen_before`, `session_timeout_over`, `rebalance_timeout_over`: the last record that a heartbeat of the member made;
  the session timeout was not over since, or just was, or the rebalance timeout was.

A table is made of one log partition, so share state, which is in a topic of its own, is not in this one:
`share_disappearances` has its tombstones.

What the log cannot know: heartbeats are in no record, so `member_left` and `session_timeout` are mostly one answer. A
classic group keeps its members in one record; that one leaves is not a tombstone. Two requests that a coordinator
carried out within a millisecond and wrote into one batch look like one. Where a cleaner has been, or the log begins in
the middle, less is ruled out, and tombstones are gone that were there; a finding says from which offset on the log is
complete. A source without `timestamp_ms` shows no times, one without `base_offset` fewer writes.
""",
)
