"""The activity of each group: commits, expirations, deletions, rebalances and bytes, by topic and time window."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import RETENTION, Column, Option, Table, timestamps
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="activity",
    topic=OFFSETS,
    about="commits, deletions, rebalances and bytes of each group, by topic and window of time",
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
        Column("topic", "string", "name of the topic; null in the row about the group itself"),
        *timestamps("window_start", "beginning of the window; null for records without a time"),
        Column("commits", "int64", "committed offsets, as in the broker metric offset-commit-count"),
        Column(
            "transactional_commits",
            "int64",
            "offsets committed in transactions",
        ),
        Column("repeated_commits", "int64", "commits that took effect but did not change the offset"),
        Column(
            "commit_interval_ms",
            "int64",
            "mean interval between consecutive commits of a partition, in milliseconds; null if there is none",
        ),
        Column(
            "longest_commit_interval_ms",
            "int64",
            "longest interval between consecutive commits, in milliseconds; null if there is none",
        ),
        Column("expirations", "int64", "expired offsets, as in the broker metric offset-expiration-count"),
        Column("deletions", "int64", "offsets deleted on request, alone or with their group or topic"),
        Column(
            "offset_deletions",
            "int64",
            "offsets deleted by requests for single offsets, as in the broker metric offset-deletion-count",
        ),
        Column("likely_expirations", "int64", "offsets that expired if the given retention is right"),
        Column("likely_deletions", "int64", "offsets that were deleted on request if the given retention is right"),
        Column("unclear_deletions", "int64", "deleted offsets that may have expired"),
        Column("completed_rebalances", "int64", "completed rebalances of the group; 0 for a topic"),
        Column(
            "classic_rebalances",
            "int64",
            "completed rebalances of a classic group, as in the broker metric group-completed-rebalance-count",
        ),
        Column("records", "int64", "records in the log, including tombstones"),
        Column("key_bytes", "int64", "total bytes of the records' keys"),
        Column("value_bytes", "int64", "total bytes of the records' values"),
        Column("is_lower_bound", "bool", "whether the log may lack records of the window"),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
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
        Option(
            "window", "duration", "length of a window; windows are counted from 1970 in UTC", default="1h", least_ms=1
        ),
        RETENTION,
    ),
    rules="""\
One row per group, topic and window with a record. Another row per group and window, without a topic, has the group's
own records and rebalances. The time of a record is that of its batch in the log.

Each tombstone of an offset counts once: with high confidence (`disappearances`) in `expirations` or `deletions`, with
medium in `likely_expirations` or `likely_deletions`, otherwise in `unclear_deletions`.

Bytes are the sizes of keys and values as written.

What the log does not show: refused commits, and requests that wrote nothing. Where a cleaner has been (a finding names
the offset), counts are lower bounds, and intervals may be too long.
""",
)
