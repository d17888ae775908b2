"""The history of groups: the events of each group, in order."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import Column, Table, timestamps
from kafka_records_tables.tables.words.timeline_words import MEANINGS
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:

    pass

TABLE: Final = Table(
    name="timeline",
    topic=OFFSETS,
    about="the life of every group: members, epochs, rebalances, resets, its end",
    helper="history",
    records=(*COMMITS, *GROUP_RECORDS, *PARTS),
    reads=("offset", "timestamp_ms", "base_offset", "key", "value", "transaction", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        *timestamps("at", "when the record of the event was written"),
        Column("event", "string", "what happened, such as member_joined or rebalance_completed", tuple(MEANINGS)),
        Column("detail", "string", "details as a JSON object; null if there are none"),
        Column(
            "group_kind",
            "string",
            "kind of the group after the event",
        ),
        Column("member_id", "string", "member that the event is about; null if it is about the group"),
        Column("epoch", "int32", "epoch or generation of the group after the event; null if no record has one"),
        Column("member_count", "int32", "number of members; null if the group is gone"),
        Column("duration_ms", "int64", "how long the rebalance took, in milliseconds; null for other events"),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
        Column("log_offset", "int64", "offset of the record in that partition"),
        Column("sequence", "int32", "order of the events that one record shows"),
    ),
    sort=("group_id", "log_partition", "log_offset", "sequence", "member_id"),
    group="group_id",
    module=__name__,
    essential=("group_id", "at_timestamp", "event", "detail"),
    details=("group_kind", "member_count", "log_partition", "log_offset", "sequence"),
    rules="""\
One row per event in the life of a group, found by replaying all of its records in order
(`GroupMetadataManager.replay`). The events:

"""
    + "\n".join(fill(f"- `{word}`: {meaning}.", 120, subsequent_indent="  ") for word, meaning in MEANINGS.items())
    + """

The records of a batch count together: a member present before and after the batch did not join in it.

A rebalance of a classic group lasts from when all members had joined to the record of the assignment, in other groups
from `rebalance_started` until the last member has followed. If all members leave first, it is never completed.

What the log does not show: when a classic group began to rebalance; why a member left; when the offsets of a share
group were set. A cleaner removes the beginnings and ends of most memberships; a finding says from which offset on no
record is missing.
""",
)
