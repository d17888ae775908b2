"""Why the state of each share partition was deleted."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import SHARE_STATE

TABLE: Final = Table(
    name="share_disappearances",
    topic=SHARE_STATE,
    about="every record that deletes the state of a share partition: why, and how sure that is",
    helper="history",
    records=("ShareSnapshot", "ShareUpdate"),
    reads=("offset", "timestamp_ms", "base_offset", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the share group"),
        Column("topic_id", "string", "id of the topic that it consumed, 22 characters"),
        Column("topic", "string", "its name; null if the source does not tell it, as of most topics that are gone"),
        Column("partition", "int32", "partition of that topic"),
        Column("cause", "string", "why it was written: state_deleted, or state_deleted or topic_deleted, see below"),
        Column("confidence", "string", "high or medium, see below", ("high", "medium")),
        Column(
            "possible_causes",
            "list<string>",
            "every cause that the log does not rule out, regardless of what is assumed",
        ),
        Column(
            "evidence",
            "list<struct<shows: string, log_offset: int64>>",
            "what the log shows, see below, and the record that shows it",
        ),
        Column("state_epoch", "int32", "state epoch of the state before; null if the log does not tell it"),
        Column("start_offset", "int64", "its first offset that was not done with; null if undecided or not told"),
        Column("state_log_offset", "int64", "offset of the last record of that state; null if it is not in the log"),
        *timestamps("log", "when it was written"),
        Column("write_offset", "int64", "offset of the first of the tombstones that may have been written with it"),
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
One row per tombstone that the log still holds. `disappearances` has the tombstones of `__consumer_offsets`, and columns
with the same name mean the same in both tables.

Kafka 4.1 and later write a tombstone for one of two causes, and no earlier release writes any:

- `state_deleted`: a group coordinator asked for it (DeleteShareGroupState; `ShareCoordinatorShard.deleteState`), for an
  administrator deleted the group, or the group's offsets of the topic.
- `topic_deleted`: the topic was deleted, and with it the state of all groups in it
  (`ShareCoordinatorShard.maybeCleanupShareState`).

How sure that is, and what evidence shows:

- `high`, with `stays_in_topic`: the state that this record belongs to is of the same topic and stays, so the topic was
  not deleted.
- `high`, without evidence: it is one of the two causes, and the log cannot tell which.
- `medium`, with `topic_goes_on`: this later record is about the same topic id, which a deleted topic does not have any
  more. Only a write that was under way when the topic was deleted looks the same.

A coordinator may put several requests into one batch (`share.coordinator.append.linger.ms`), and deletes the topic's
state in one write. So tombstones that are one behind the other in one batch and millisecond are taken for one write,
and what stays has to stay after the last of them. Without `base_offset` or `timestamp_ms` more look like one write.

What the log cannot know: whether an administrator deleted the group or its offsets of the topic, for the request is the
same. Records of `__consumer_offsets` tell: the tombstone of the group (`disappearances`), and the lists of topics in
records of type 15, of which `share_group_topics` has the last. A request for state that is not there writes nothing. An
initialization with a higher state epoch replaces a state and is not a deletion.

The coordinator deletes the beginning of this log when later snapshots replace it; no tombstone shows that, and
tombstones go with it. A finding says from which offset on the log is complete. If a record is missing or cannot be read
between the one that `stays_in_topic` would name and the first one after the write, there is no such evidence.
""",
)
