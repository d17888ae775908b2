"""Why the state of each share partition was deleted."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import SHARE_STATE

TABLE: Final = Table(
    name="share_disappearances",
    topic=SHARE_STATE,
    about="every record that deletes the state of a share partition, and why",
    helper="history",
    records=("ShareSnapshot", "ShareUpdate"),
    reads=("offset", "timestamp_ms", "base_offset", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic_id", "string", "id of the topic, 22 characters; null if the source has none"),
        Column("topic", "string", "name of the topic; null if unknown, as for most deleted topics"),
        Column("partition", "int32", "partition of the topic"),
        Column(
            "cause",
            "string",
            "why the tombstone was written: `state_deleted`, or `state_deleted or topic_deleted`",
        ),
        Column("confidence", "string", "how certain the cause is: high, medium or low", ("high", "medium")),
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
        Column("state_epoch", "int32", "state epoch of the deleted state; null if the log does not have it"),
        Column(
            "start_offset", "int64", "start offset of the deleted state; null if it was not yet decided, or is unknown"
        ),
        Column(
            "state_log_offset", "int64", "offset of the last record of the deleted state; null if it is not in the log"
        ),
        *timestamps("log", "when the record was written"),
        Column("write_offset", "int64", "offset of the first tombstone that may belong to the same write"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic_id", "partition", "cause", "confidence"),
    details=(
        "topic",
        "possible_causes",
        "evidence",
        "state_epoch",
        "state_log_offset",
        "write_offset",
        "log_partition",
        "log_offset",
    ),
    rules="""\
One row per tombstone that the log still holds. Columns with the same name mean the same as in `disappearances`.

Kafka 4.1 and later write a tombstone for one of two causes; earlier releases write none:

- `state_deleted`: a group coordinator requested it (DeleteShareGroupState; `ShareCoordinatorShard.deleteState`) because
  an administrator deleted the group, or the group's offsets of the topic.
- `topic_deleted`: the topic was deleted, and with it the state of all groups in it
  (`ShareCoordinatorShard.maybeCleanupShareState`).

The confidence, and the evidence for it:

- `high`, with `stays_in_topic`: another state of the same topic stays, so the topic was not deleted.
- `high`, without evidence: it is one of the two causes, and the log does not show which.
- `medium`, with `topic_goes_on`: a later record has the same topic id, which a deleted topic no longer has.

What the log does not show: whether an administrator deleted the group or its offsets of the topic (see
`disappearances`). The coordinator deletes the beginning of this log when later snapshots replace it; a finding says
from which offset on the log is complete.
""",
)
