"""The members of the groups, as a group coordinator has them after loading the log."""

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
        Column("instance_id", "string", "its group.instance.id; null for dynamic members, and in share groups"),
        Column("client_id", "string", "client.id of the client; null if no record tells"),
        Column("client_host", "string", "address that it joined from, mostly with a slash before it"),
        Column("rack_id", "string", "client.rack of the client; null if it named none"),
        Column(
            "member_epoch",
            "int32",
            "epoch that it has reached, the generation in classic groups; -2: a static member that is away",
        ),
        Column("previous_member_epoch", "int32", "the epoch before that one; null in classic groups"),
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
            "whether it speaks the classic protocol (JoinGroup, SyncGroup), as members of consumer groups may",
        ),
        Column("subscribed_topics", "list<string>", "topics it subscribes to by name; null if it does not say so"),
        Column("subscribed_regex", "string", "regular expression that it subscribes to; null for none"),
        Column("regex_topics", "list<string>", "topics that the expression was last found to match; null for none"),
        Column("server_assignor", "string", "assignor of the broker that it asks for; null for none"),
        Column(
            "rebalance_timeout_ms",
            "int32",
            "milliseconds it may take to give up or take over partitions; null in share groups",
        ),
        Column(
            "session_timeout_ms",
            "int32",
            "milliseconds without a heartbeat after which it is out; null but with the classic protocol",
        ),
        Column("topology_epoch", "int32", "epoch of the topology it runs; null but in streams groups"),
        Column("process_id", "string", "process that it runs in; null but in streams groups"),
        Column(
            "user_endpoint",
            "struct<host: string, port: int32>",
            "where it answers interactive queries; null for none, and outside streams groups",
        ),
        Column(
            "client_tags",
            "list<struct<key: string, value: string>>",
            "tags for rack-aware assignment; null but in streams groups",
        ),
        Column(
            "protocols",
            "list<struct<name: string, version: int16, opened: string, user_data: string, bytes: binary>>",
            "what it told each protocol (assignor) when it joined: as JSON where it can be read, and the bytes; "
            "user_data is that of the sticky assignors and of Kafka Streams (SubscriptionInfoData, versions 1 to 11), "
            "and the allocation of a Connect worker; null for other bytes, and but with the classic protocol",
        ),
        Column(
            "assignment",
            "struct<version: int16, opened: string, bytes: binary>",
            "what the leader of a classic group gave it: as JSON if it can be read, and the bytes",
        ),
        *timestamps("log", "when the record was written that makes the member"),
        Column("log_partition", "int32", "partition of the topic that the group is in"),
        Column(
            "log_offset",
            "int64",
            "offset of the record that makes the member: its own, or that of the classic group",
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
One row per member that a coordinator knows after loading the log (`GroupMetadataManager.replay`; `ClassicGroupMember`,
`ConsumerGroupMember`, `ShareGroupMember`, `StreamsGroupMember`).

The members of a classic group are those in its last record. In the other kinds a member is there from its first record
on, that of its metadata or of its current assignment, until a tombstone of its metadata or of the group. Epoch and
state are those of its last current assignment. Without one they are 0 and Stable, as the coordinator starts (the epoch
before is 0 in streams groups and -1 otherwise); after a tombstone of it alone both epochs are -1. A state whose number
has no name stays a number.

The topics that a classic member subscribes to are those that the coordinator reads, for every version
(`ClassicGroup.computeSubscribedTopics`; KIP-496): null if the protocol type is not consumer, or the bytes cannot be
read so. A member of a streams group subscribes to nothing by itself; the topology of the group names its topics. A
classic member without a rebalance timeout (values before version 1) has its session timeout for one, as the coordinator
takes it.

What the log cannot know: whether a member still lives, since no heartbeat is recorded; members that are joining or
syncing, and members that left a classic group in a rebalance under way; which other protocols a classic member offered;
the end offsets of its tasks that a member of a streams group reports. A record that cannot be decoded leaves its values
null; the members of a classic group whose record cannot be decoded have no rows, and a finding names it.
""",
)
