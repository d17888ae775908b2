"""The lives of groups: the events of each, one after another."""

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
    about="the life of every group: members, epochs, rebalances, assignments, resets, conversions, its end",
    helper="history",
    records=(*COMMITS, *GROUP_RECORDS, *PARTS),
    reads=("offset", "timestamp_ms", "base_offset", "key", "value", "transaction", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        *timestamps("at", "when it was written"),
        Column("event", "string", "what happened, one of the words above", tuple(MEANINGS)),
        Column("detail", "string", "more about it, a JSON object; null if there is no more"),
        Column(
            "group_kind",
            "string",
            "classic, simple (classic without a protocol type), consumer, share or streams, after the event; before "
            "it where the group is gone",
        ),
        Column("member_id", "string", "the member that it is about; null if it is about the group"),
        Column("epoch", "int32", "epoch or generation of the group after it; null if no record tells one"),
        Column("member_count", "int32", "members after it; null if the group is gone"),
        Column("duration_ms", "int64", "how long the rebalance took, in milliseconds; null for other events"),
        Column("log_partition", "int32", "partition of the topic that the group is in"),
        Column("log_offset", "int64", "offset of the record that tells it"),
        Column("sequence", "int32", "place of the event among the words above; orders the events of one record"),
    ),
    sort=("group_id", "log_partition", "log_offset", "sequence", "member_id"),
    group="group_id",
    module=__name__,
    essential=("group_id", "at_timestamp", "event", "detail"),
    details=("group_kind", "member_count", "log_partition", "log_offset", "sequence"),
    rules="""\
One row per event in the life of a group, which all of its records tell, replayed in their order
(`GroupMetadataManager.replay`). The events:

"""
    + "\n".join(fill(f"- `{word}`: {meaning}.", 120, subsequent_indent="  ") for word, meaning in MEANINGS.items())
    + """

The records of one batch count together: a member that is there both before and after the batch did not join in it, and
the end of a rebalance decides what it counts as. Most batches are one write of the coordinator; if it lingers
(`group.coordinator.append.linger.ms`), a batch holds several writes, and what the first did and the second undid is not
an event. In a source without batches each record counts alone.

A rebalance of a classic group lasts from the moment when all members had joined (the time of the state in the record,
from Kafka 2.1 on) to the record of the assignment; of the others from the first change of the epoch, or from where a
member has to follow within it, to the record by which the last member has followed. One that ends because nobody is
left has no end of its own.

What the log cannot know: when a classic group began to rebalance, and which members joined and left it before an
assignment was written; heartbeats; why a member left; when the offsets of a share group were set. Topics in
`assignment_changed` are named by ids if the source does not know their names. A record that cannot be decoded tells
nothing, and a finding names it. A cleaner removes records that later ones replace, and with them the beginnings and
ends of most memberships. A finding says from which offset on no record is missing; the first event of a group after it
may still lack what it is compared with: who has left, what was lost, the epoch before, whether the group existed.
""",
)
