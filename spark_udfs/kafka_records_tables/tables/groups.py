"""The groups as a group coordinator lists them after loading the log."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import GROUP_KINDS, Column, Table
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="groups",
    topic=OFFSETS,
    about="every group with its kind, its last logged state and its epoch",
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
            "state of the group, as brokers spell it; null if the record that holds it cannot be decoded",
            ("Empty", "Stable", "Assigning", "Reconciling", "NotReady"),
        ),
        Column(
            "epoch",
            "int32",
            "group epoch, or generation of a classic group; null for groups without a record of their own",
        ),
        Column("protocol_type", "string", "consumer, connect, share, …; empty for simple groups"),
        Column("protocol", "string", "assignor or protocol that members agreed on; null except for classic groups"),
        Column("member_count", "int32", "number of members"),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
        Column(
            "log_offset",
            "int64",
            "log offset of the group's own record or, if it has none, of the newest record that mentions it",
        ),
    ),
    sort=("group_id",),
    group="group_id",
    module=__name__,
    essential=("group_id", "group_kind", "state"),
    details=("epoch", "protocol_type", "protocol", "log_partition", "log_offset"),
    rules="""\
One row per group that a coordinator lists after loading the log (`GroupMetadataManager.replay`).

A group exists from its first record on until its tombstone. Any commit, even one that was aborted or deleted since,
creates a simple group if no group of that name exists.

What the log does not show: a classic group that is Stable here may be rebalancing, because brokers do not log that,
and members may have been gone for less than a session timeout.
""",
)
