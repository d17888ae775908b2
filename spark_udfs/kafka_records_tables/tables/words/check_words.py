"""The values in the table `checks`, and the columns that its inputs share. Imports nothing heavy, so declarations can
use it."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import Column, Option, timestamps

UNDECODABLE: Final = "undecodable_record"
CONFLICT: Final = "replay_conflict"
DAMAGED: Final = "damaged_log"
UNKNOWN_TYPE: Final = "unknown_record_type"
WRONG_PARTITION: Final = "wrong_partition"
NOT_LOADED: Final = "not_loaded_by_release"
PASSED_OVER: Final = "passed_over_by_release"
UNKNOWN_MEMBER: Final = "unknown_member"
ASSIGNED_TWICE: Final = "assigned_twice"
UNKNOWN_TASK: Final = "unknown_task"
UNASSIGNED: Final = "unassigned"
STATE_MISSING: Final = "share_state_missing"
STATE_UNNAMED: Final = "share_state_unnamed"
STATE_INITIALIZING: Final = "share_state_initializing"
STATE_DELETING: Final = "share_state_deleting"

CHECKS: Final = (
    UNDECODABLE,
    CONFLICT,
    DAMAGED,
    UNKNOWN_TYPE,
    WRONG_PARTITION,
    NOT_LOADED,
    PASSED_OVER,
    UNKNOWN_MEMBER,
    ASSIGNED_TWICE,
    UNKNOWN_TASK,
    UNASSIGNED,
    STATE_MISSING,
    STATE_UNNAMED,
    STATE_INITIALIZING,
    STATE_DELETING,
)
"""The values of the column `check`."""

BROKEN: Final = "broken"
TRANSIENT: Final = "transient"
INFORMATION: Final = "information"

COLUMNS: Final = (
    Column(
        "check",
        "string",
        "check that found the problem, such as replay_conflict or unassigned",
        CHECKS,
        (UNDECODABLE, CONFLICT, DAMAGED),
    ),
    Column(
        "level",
        "string",
        "broken: no coordinator fixes it by itself; transient: it disappears when the current work ends; information",
        (BROKEN, TRANSIENT, INFORMATION),
    ),
    Column("group_id", "string", "the group; null if the key does not name it, and in __transaction_state"),
    Column("transactional_id", "string", "the transactional id; null except in __transaction_state"),
    Column("member_id", "string", "the member; null if there is none"),
    Column("topic", "string", "name of the topic; null if there is none, or if its name is unknown"),
    Column("topic_id", "string", "id of the topic, 22 characters; null if the source has none"),
    Column(
        "partition",
        "int32",
        "the partition (the first one of several), or the number of a task; null if there is neither",
    ),
    Column("detail", "string", "the problem in one sentence, with the numbers"),
    Column("log_topic", "string", "topic of the record that shows the problem, such as __consumer_offsets"),
    *timestamps("log", "when the record was written; null if the source has no times"),
    Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
    Column("log_offset", "int64", "offset of the record, or of the first of several; null if no record shows it"),
)

PARTITIONS: Final = Option(
    "partitions",
    "partitions",
    "number of partitions of __consumer_offsets, or TOPIC=N,… for other topics, if the source does not know it",
)

OPTIONS: Final = (
    PARTITIONS,
    Option("loads_in", "release", "find records that this release of Kafka could not load, from 2.8 on"),
)

# -- facts that inputs pass to the view, next to the problems ----------------------------------------------------------

READ: Final = "read"
"""A log partition was read. `partition` is its topic's partition count, null if unknown; the time is the local clock
when reading began."""
SHARE_GROUP: Final = "share group"
STATE: Final = "state"
"""A share partition has state."""
UNREADABLE: Final = "unreadable"
"""A record on which the group or the share partition depends cannot be decoded."""
UNCHECKED: Final = "unchecked"
"""The groups of a log partition are not checked."""
INITIALIZING: Final = "initializing"
INITIALIZED: Final = "initialized"
DELETING: Final = "deleting"

PART_COLUMNS: Final = (
    Column("fact", "string", "kind of fact that the view needs; null if the row is a problem"),
    *COLUMNS,
)
READS: Final = ("offset", "timestamp_ms", "key", "value", "control")
