"""The groups, as a group coordinator lists them after loading the log."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import GROUP_KINDS, Column, Table
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="groups",
    topic=OFFSETS,
    about="every group with its kind, its state as far as the log tells, and its epoch",
    helper="fold",
    records=(*COMMITS, *GROUP_RECORDS, *PARTS),
    reads=("offset", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column(
            "group_kind",
            "string",
            "classic, simple (classic without a protocol type), consumer, share or streams",
            GROUP_KINDS,
        ),
        Column(
            "state",
            "string",
            "state as the broker spells it; null if the record with it cannot be decoded",
            ("Empty", "Stable", "Assigning", "Reconciling", "NotReady"),
        ),
        Column(
            "epoch", "int32", "epoch, or generation of a classic group; null for groups without a record of their own"
        ),
        Column("protocol_type", "string", "consumer, connect, share, … and empty for simple groups"),
        Column("protocol", "string", "assignor or protocol that members agreed on; null but for classic groups"),
        Column("member_count", "int32", "members in the log"),
        Column("log_partition", "int32", "partition of the topic that the group is in"),
        Column(
            "log_offset",
            "int64",
            "offset of the group's own record; without one, of the newest record that shows the group",
        ),
    ),
    sort=("group_id",),
    group="group_id",
    module=__name__,
    essential=("group_id", "group_kind", "state"),
    details=("epoch", "protocol_type", "protocol", "log_partition", "log_offset"),
    rules="""\
One row per group that a coordinator lists after loading the log (`GroupMetadataManager.replay`).

A group exists from the first record of its kind on; the record of a member is enough. Any commit value makes a simple
group if there is no group of that name, regardless of what became of its transaction and of the offset. The tombstone
of a group record of any kind ends the group. Superseded, deleted or aborted commits may be all that shows a group;
compaction may remove the last of them, and the group has no row then.

What the log cannot know: brokers never log a classic group as PreparingRebalance, CompletingRebalance or Dead. A group
that is Stable here may be rebalancing, or its members may have been gone for less than a session timeout; the same
holds for members of the other kinds. A record that cannot be decoded makes no answer wrong: its group keeps its row, by
the key of the record, with null for what the value would have said.
""",
)
