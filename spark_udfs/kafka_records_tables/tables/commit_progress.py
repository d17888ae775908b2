"""The movements of the committed offsets of groups. This table is an input of `progress`."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import Column, Option, Table
from kafka_records_tables.topics import OFFSETS

WINDOW: Final = Option(
    "window",
    "duration",
    "how far back to look, at most a quarter of the history; a wait no longer than this is never too long",
    default="10m",
    least_ms=1000,
)

INTERVAL: Final = Option(
    "interval",
    "duration",
    "with --source requests: the time between the two requests that are compared",
    default="30s",
    least_ms=1000,
)

TABLE: Final = Table(
    name="commit_progress",
    topic=OFFSETS,
    about="how the committed offsets of groups moved",
    helper="history",
    records=COMMITS,
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        Column("group_id", "string", "the group; null in the row about the whole log partition"),
        Column("topic", "string", "name of the topic"),
        Column("partition", "int32", "partition of the topic"),
        Column("topic_id", "string", "id of the topic in the last commit; null if it has none"),
        Column("offset", "int64", "the committed offset"),
        Column("commit_timestamp_ms", "int64", "when the offset was last committed"),
        Column(
            "changed_timestamp_ms", "int64", "when the offset was first committed; no other offset was committed since"
        ),
        Column("commits", "int64", "commits in the log"),
        Column("peak", "int64", "the highest offset since the first commit, or since the last deletion"),
        Column(
            "fell_timestamp_ms",
            "int64",
            "time of the last commit that lowered the offset, since the first commit or the last deletion; null if "
            "there is none",
        ),
        Column("fell_from", "int64", "the highest offset before it last went backwards"),
        Column(
            "advances",
            "list<struct<timestamp_ms: int64, offset: int64, before_timestamp_ms: int64, before_offset: int64>>",
            "a sample of the commits that changed the offset: the last ones, those after long pauses, and one for each "
            "part of the window",
        ),
        Column("first_log_timestamp_ms", "int64", "the time of the first record in the log partition"),
        Column("log_timestamp_ms", "int64", "the latest time of a record in the log partition"),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
        Column("polled_timestamp_ms", "int64", "when a coordinator was asked for the offset; null if read from a log"),
        Column("polled_before_ms", "int64", "when a coordinator was asked before that"),
        Column("offset_before", "int64", "the offset at the previous query; null if there was none"),
        Column("end_before", "int64", "the high watermark at the previous query; null if it is unknown"),
    ),
    sort=("group_id", "topic", "partition", "log_partition"),
    group="group_id",
    module=__name__,
    options=(WINDOW, INTERVAL),
    rules="This table is an input of `progress`.",
)
