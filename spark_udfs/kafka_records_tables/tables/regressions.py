"""The commits that moved an offset backwards, each with an explanation."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="regressions",
    topic=OFFSETS,
    about="every commit that moved an offset backwards, and what explains it",
    helper="history",
    records=(*COMMITS, *GROUP_RECORDS, *PARTS),
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "name of the topic"),
        Column("partition", "int32", "partition of the topic"),
        Column("from_offset", "int64", "committed offset before it went backwards"),
        Column("to_offset", "int64", "lower offset that replaced it"),
        Column(
            "kind",
            "string",
            "topic_recreated, after_deletion, sawtooth, reset_while_empty or rewind_by_member",
            ("topic_recreated", "after_deletion", "sawtooth", "reset_while_empty", "rewind_by_member"),
        ),
        Column(
            "confidence",
            "string",
            "how certain the kind is: high or low",
            ("high", "low"),
        ),
        Column("group_kind", "string", "kind of the group just before the commit; null if there was no group"),
        Column(
            "group_state",
            "string",
            "state of the group just before the commit; null if there was no group",
        ),
        Column(
            "producer_id",
            "int64",
            "producer of the transaction that committed the lower offset; null without a transaction",
        ),
        Column(
            "topic_id",
            "string",
            "id of the topic in the commit of to_offset or, if it has none, in an earlier one",
        ),
        Column(
            "from_topic_id",
            "string",
            "id of the topic in the commit of from_offset or, if it has none, in an earlier one; null if no "
            "commit has one",
        ),
        *timestamps("commit", "when the lower offset was committed"),
        *timestamps("from_commit", "when the higher offset was committed"),
        *LOG_PLACE,
        Column("from_log_offset", "int64", "log offset of the commit of from_offset"),
        Column(
            "evidence",
            "list<struct<shows: string, log_offset: int64>>",
            "other records that show how the offset went backwards: tombstone, marker, high and low (the two "
            "sequences of a sawtooth), group (its members)",
        ),
    ),
    sort=("group_id", "topic", "partition", "log_partition", "log_offset"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "from_offset", "to_offset", "kind"),
    details=(
        "topic_id",
        "from_topic_id",
        "producer_id",
        "evidence",
        "from_commit_timestamp",
        "log_partition",
        "log_offset",
        "from_log_offset",
    ),
    rules="""\
One row per commit that took effect and is lower than the committed offset it replaced, of the same group, topic and
partition. A commit in a transaction takes effect at the marker. The kind is the first that applies; each may be
intended:

- `topic_recreated`: the two commits have different topic ids (Kafka 4.1 and later write them): a new topic has the old
  name and begins at 0.
- `after_deletion`: the offset was deleted in between: `disappearances` says why.
- `sawtooth`: two committers take turns: a zombie and its successor, two applications with one group id, or consumers
  that assign themselves the same partition. The offset falls again after it returned to where it fell from. The first
  fall of a sawtooth has another kind.
- `reset_while_empty`: the group had no members. Either an administrator reset the offset, or a consumer that assigns
  itself partitions went back: the log shows no difference.
- `rewind_by_member`: the group had members, and outside transactions only they may commit. A member went back by
  itself, or started over because its offset was out of range (`auto.offset.reset`).

Where a log was cleaned, no fall is visible; a finding says after which offset no record is missing.

What the log does not show: records that were consumed again without a lower commit; which client sent a commit.
""",
)
