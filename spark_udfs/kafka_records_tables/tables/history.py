"""The committed offsets over time: from when to when each was in force."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="history",
    topic=OFFSETS,
    about="committed offsets over time: from when to when each held, and what ended it",
    helper="history",
    records=COMMITS,
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        Column("group_id", "string", "the group that committed"),
        Column("topic", "string", "topic whose records it consumes"),
        Column("topic_id", "string", "its id, 22 characters; null if the record names none"),
        Column("partition", "int32", "partition of that topic"),
        Column("offset", "int64", "offset of the next record to consume"),
        Column("leader_epoch", "int32", "leader epoch of the last consumed record; null if the record has none"),
        Column("metadata", "string", "what the client stored next to the offset"),
        *timestamps("valid_from", "from when it held; null if the source has no times"),
        *timestamps("valid_to", "when it ended, no longer held then; null if it holds"),
        Column("is_current", "bool", "whether it holds at the end of the log, or at the moment of as_of"),
        Column(
            "ended_by",
            "string",
            "commit, transaction (its marker), tombstone, or unusable (a record that nobody can use); null if it "
            "holds",
        ),
        Column("commits", "int64", "records that committed the same, one after the other"),
        *timestamps("commit", "the timestamp of the first of them: by the clock of the broker or of the client"),
        Column("log_partition", "int32", "partition of the topic that the records are in"),
        Column("log_offset", "int64", "offset of the first of them"),
        Column("last_log_offset", "int64", "offset of the last of them"),
        Column("valid_from_log_offset", "int64", "offset of the record from which it held: its own, or of the marker"),
        Column("valid_to_log_offset", "int64", "offset of the record that ended it; null if it holds"),
    ),
    sort=("group_id", "topic", "partition", "log_partition", "valid_from_log_offset"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "offset", "valid_from_timestamp"),
    details=(
        "topic_id",
        "leader_epoch",
        "metadata",
        "commits",
        "commit_timestamp",
        "log_partition",
        "log_offset",
        "last_log_offset",
        "valid_from_log_offset",
        "valid_to_log_offset",
    ),
    rules="""\
One row per span of time in which a committed offset held, a slowly changing dimension of type 2: of `valid_from` <= T <
`valid_to` there is one row per group, topic and partition, the one of `current_offsets` as of T.

Commits of a partition that follow each other and say the same (offset, leader epoch, metadata, topic id) are one row,
which counts them: a consumer that has nothing to read commits the same every few seconds. A commit in a transaction
holds from the marker on, unless a later record of its partition is before the marker
(`OffsetMetadataManager.replayEndTransactionMarker`); one in an aborted or open transaction never does. A tombstone ends
an offset at once, whoever wrote it. The tombstone of a group ends none: a coordinator deletes the offsets of a group by
tombstones of their own.

Times are those of the records and markers in the log. Where a clock went back, a record has the latest time before it,
so that an answer as of a moment and the rows of that moment are the same. A source that has no markers and says
`committed` has commits in transactions hold from their own place on.

A record that cannot be decoded, or a commit whose transaction has an unknown end, ends the offset before it
(`unusable`); a finding names it. In time a cleaner removes commits that were replaced. For a cleaned log a finding says
from which offset on no record is missing: spans from there are whole, and before it an offset may seem to have held
longer than it did, or begin late.
""",
)
