"""How much each group does: commits, expirations, deletions, rebalances and bytes, by topic and window of time."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import RETENTION, Column, Option, Table, timestamps
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="activity",
    topic=OFFSETS,
    about="commits, expirations, deletions, rebalances and bytes of each group, by topic and window of time",
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
        Column("group_id", "string", "the group"),
        Column("topic", "string", "topic of the offsets; null in the row about the group itself"),
        *timestamps("window_start", "beginning of the window; null for records without a time"),
        Column("commits", "int64", "committed offsets, as the meter offset-commits counts them"),
        Column("transactional_commits", "int64", "those of them that a transaction wrote, however it ended"),
        Column("repeated_commits", "int64", "those that took effect with the offset that was committed already"),
        Column(
            "commit_interval_ms",
            "int64",
            "mean milliseconds between two commits of a partition, for intervals that end here; null for none",
        ),
        Column("longest_commit_interval_ms", "int64", "the longest of them; null for none"),
        Column("expirations", "int64", "expired offsets, as the meter offset-expirations counts them"),
        Column("deletions", "int64", "offsets deleted on request, alone or with their group or their topic"),
        Column(
            "offset_deletions",
            "int64",
            "those of them that a request for these offsets deleted, as the meter offset-deletions counts them",
        ),
        Column("likely_expirations", "int64", "offsets that expired if the retention is the given one"),
        Column("likely_deletions", "int64", "offsets deleted on request if the retention is the given one"),
        Column("unclear_deletions", "int64", "deleted offsets whose log does not show which of the two it was"),
        Column("completed_rebalances", "int64", "rebalances of the group that have completed; 0 for a topic"),
        Column(
            "classic_rebalances",
            "int64",
            "those of them while it was a classic group, as the meter group-completed-rebalances counts them",
        ),
        Column("records", "int64", "records in the log, tombstones too"),
        Column("key_bytes", "int64", "bytes of their keys"),
        Column("value_bytes", "int64", "bytes of their values"),
        Column("is_lower_bound", "bool", "whether records of the window may be missing in the log"),
        Column("log_partition", "int32", "partition of the topic that the records are in"),
    ),
    sort=("group_id", "topic", "window_start_timestamp_ms", "log_partition"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "window_start_timestamp", "commits"),
    details=(
        "transactional_commits",
        "offset_deletions",
        "classic_rebalances",
        "longest_commit_interval_ms",
        "likely_expirations",
        "likely_deletions",
        "unclear_deletions",
        "key_bytes",
        "value_bytes",
        "is_lower_bound",
        "log_partition",
    ),
    options=(
        Option("window", "duration", "how long a window is; windows begin at 1970 in UTC", default="1h", least_ms=1),
        RETENTION,
    ),
    rules="""\
One row per group, topic and window with a record; and one per group and window for the records of the group itself and
its rebalances, without a topic. The time of a record is that of its batch in the log.

The four meters of KIP-496 (`group-coordinator-metrics`), for each group: `offset-commits` counts every committed offset
regardless of what becomes of its transaction, `offset-expirations` every offset that a clean-up takes.
`offset-deletions` counts what a request for single offsets deletes (`OffsetMetadataManager.deleteOffsets`), and neither
the offsets of a group that is deleted nor those of a topic: `offset_deletions` is that meter, `deletions` has all
three. Which of them a tombstone was follows from `disappearances`: with high confidence it is in `expirations` or
`deletions`, with medium confidence in one of the likely ones, and otherwise in `unclear_deletions`; so each is in one.
`group-completed-rebalances` counts in classic groups, where the leader's assignment is written, and is
`classic_rebalances`; `completed_rebalances` has those of the other kinds too (`timeline`).

`repeated_commits` goes by the commits that took effect, at their place or at the marker of their transaction: a commit
of an aborted transaction repeats nothing and is repeated by nothing. Intervals compare a commit with the one before it
in the log, regardless of the end of their transactions. Commits that wait for their marker are held until it comes: in
a source without markers, everything after the first commit of a transaction, to the end of the log.

The bytes are the sizes of keys and values in their batches when they are written: at least what a group costs the
topic. Heads of records and batches, markers of transactions and indexes come on top, and compression reduces them.

What the log cannot know: commits that were refused, and requests that wrote nothing. A cleaner takes away what was
written over, and tombstones, in time: a window that begins before the log is whole (a finding says from which offset
on it is) is a lower bound. Two commits between which one is missing have a longer interval. A record whose key cannot
be read is not counted, and a finding names it.
""",
)
