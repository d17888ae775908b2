"""The members of groups, as a group coordinator knows them after loading the log."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.tables.declaration import GROUP_KINDS, Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="members",
    topic=OFFSETS,
    about="every member of every group: its client, epoch and state, and what it subscribes to",
    helper="fold",
    records=(*GROUP_RECORDS, *PARTS),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column(
            "group_kind",
            "string",
            "classic, simple (classic without a protocol type), consumer, share or streams",
            GROUP_KINDS,
        ),
        Column("member_id", "string", "the member"),
        Column("instance_id", "string", "group.instance.id; null for dynamic members and in share groups"),
        Column("client_id", "string", "client.id; null if no record has it"),
        Column("client_host", "string", "address that the member joined from"),
        Column("rack_id", "string", "client.rack; null if not set"),
        Column(
            "member_epoch",
            "int32",
            "epoch of the member, or generation in a classic group; -2 for a static member that left temporarily",
        ),
        Column("previous_member_epoch", "int32", "the member's previous epoch; null in classic groups"),
        Column(
            "state",
            "string",
            "Stable, UnrevokedPartitions, UnreleasedPartitions, UnrevokedTasks or UnreleasedTasks; null in classic "
            "groups",
            ("Stable", "UnrevokedPartitions", "UnreleasedPartitions", "UnrevokedTasks", "UnreleasedTasks"),
        ),
        *timestamps("epoch", "when epoch and state were recorded; null if no record holds them"),
        Column(
            "uses_classic_protocol",
            "bool",
            "whether the member uses the classic protocol, as it may in a consumer group",
        ),
        Column(
            "subscribed_topics",
            "list<string>",
            "topics that the member subscribes to by name; null if no record lists them",
        ),
        Column("subscribed_regex", "string", "regular expression that the member subscribes to; null if there is none"),
        Column(
            "regex_topics", "list<string>", "topics that the regular expression last matched; null if there is none"
        ),
        Column("server_assignor", "string", "broker-side assignor that the member requests; null if it requests none"),
        Column(
            "rebalance_timeout_ms",
            "int32",
            "rebalance timeout; null in share groups",
        ),
        Column(
            "session_timeout_ms",
            "int32",
            "session timeout; null except with the classic protocol",
        ),
        Column("topology_epoch", "int32", "epoch of the topology that the member runs; null except in streams groups"),
        Column("process_id", "string", "process that the member runs in; null except in streams groups"),
        Column(
            "user_endpoint",
            "struct<host: string, port: int32>",
            "endpoint for interactive queries; null if there is none, and outside streams groups",
        ),
        Column(
            "client_tags",
            "list<struct<key: string, value: string>>",
            "tags for rack-aware assignment; null except in streams groups",
        ),
        Column(
            "protocols",
            "list<struct<name: string, version: int16, opened: string, user_data: string, bytes: binary>>",
            "what the member sent for each protocol (assignor), as bytes and, if readable, as JSON; user_data only of "
            "sticky assignors, Kafka Streams and Connect workers; null except with the classic protocol",
        ),
        Column(
            "assignment",
            "struct<version: int16, opened: string, bytes: binary>",
            "what the leader of a classic group assigned, as bytes and, if readable, as JSON",
        ),
        *timestamps("log", "when the member's record was written, or the group's record in a classic group"),
        Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
        Column(
            "log_offset",
            "int64",
            "offset of the member's record, or of the group's record in a classic group",
        ),
    ),
    sort=("group_id", "member_id"),
    group="group_id",
    module=__name__,
    essential=("group_id", "member_id", "member_epoch", "state"),
    details=(
        "group_kind",
        "instance_id",
        "rack_id",
        "previous_member_epoch",
        "epoch_timestamp",
        "uses_classic_protocol",
        "subscribed_regex",
        "regex_topics",
        "server_assignor",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "protocols",
        "assignment",
        "log_timestamp",
        "log_partition",
        "log_offset",
    ),
    rules="""\
One row per member that a coordinator knows after loading the log (`GroupMetadataManager.replay`).

The members of a classic group are those in its last record. In other groups a member exists from its first record
until its tombstone. Epoch and state come from its last current assignment. Without one they are 0 and Stable.

For a classic member, `subscribed_topics` is null if the protocol type is not consumer or the bytes cannot be read. In
a streams group it is null: the topology names the topics.

What the log does not show: whether a member is alive; members that are joining or syncing, or that left a classic
group during a rebalance. If a record cannot be decoded, a classic group has no rows.
""",
)
