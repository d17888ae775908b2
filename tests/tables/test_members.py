"""What the log shows about members, on synthetic topics: one group per case, one table for all of them."""

from __future__ import annotations

import json
from base64 import b64encode
from struct import pack
from typing import Any, Final

import pytest

from kafka_records.client_protocols.connect_protocol_assignment import ConnectorAssignment, ConnectProtocolAssignment
from kafka_records.client_protocols.connect_protocol_subscription import ConnectProtocolSubscription
from kafka_records.client_protocols.cooperative_sticky_assignor_user_data import CooperativeStickyAssignorUserData
from kafka_records.client_protocols.sticky_assignor_user_data import StickyAssignorUserData, TopicAssignment
from kafka_records.consumer_protocol.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_records.consumer_protocol.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_records.streams_protocol import subscription_info_data
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import read_table
from tests.tables.topic import Topic, struct

Row = dict[str, Any]

WRITTEN_MS: Final = 1_700_000_000_000
"""The time of every record of a synthetic topic."""

HOSTILE: Final = ("a\x1b[31mred", "line\nbreak", "\u202egnp.exe", "'; DROP TABLE members; --", "\x00", "🧾" * 500, "")


def _members(topic: Topic, **options: Any) -> dict[tuple[str, str], Row]:
    rows = read_table("members", topic.table(), **options).table.to_pylist()
    found = {(row["group_id"], row["member_id"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def _classic(topic: Topic, group: str, *members: Any, version: int = 3, **fields: Any) -> int:
    value = {"protocol_type": "consumer", "generation": 4, "protocol": "range", "leader": None, "members": members}
    return topic.add("GroupMetadata", {"group": group}, value | fields, version=version)


def _member(member_id: str, subscription: bytes = b"", assignment: bytes = b"", **fields: Any) -> Any:
    told = {"subscription": subscription, "assignment": assignment, **fields}
    return struct("group_metadata", "MemberMetadata", member_id=member_id, **told)


def _framed(message: Any, version: int) -> bytes:
    return pack(">h", version) + bytes(message.encode(version))


# -- classic groups ----------------------------------------------------------------------------------------------------


def test_a_classic_member_is_what_the_last_record_of_its_group_says() -> None:
    topic = Topic()
    subscription = _framed(ConsumerProtocolSubscription(topics=("orders", "a"), rack_id="r1", generation_id=3), 3)
    assignment = _framed(ConsumerProtocolAssignment(), 3)
    _classic(topic, "g", _member("gone"))
    client = {"client_id": "c", "client_host": "/1.2.3.4", "rebalance_timeout": 300, "session_timeout": 45}
    place = _classic(topic, "g", _member("m", subscription, assignment, group_instance_id="i", **client))

    (row,) = _members(topic).values()

    opened = '{"topics":["orders","a"],"userData":null,"ownedPartitions":[],"generationId":3,"rackId":"r1"}'
    told = {"name": "range", "version": 3, "opened": opened, "user_data": None, "bytes": subscription}
    given = {"version": 3, "opened": '{"assignedPartitions":[],"userData":null}', "bytes": assignment}
    assert {name: value for name, value in row.items() if value is not None and "timestamp" not in name} == {
        "group_id": "g",
        "group_kind": "classic",
        "member_id": "m",
        "instance_id": "i",
        "client_id": "c",
        "client_host": "/1.2.3.4",
        "rack_id": "r1",
        "member_epoch": 4,
        "uses_classic_protocol": True,
        "subscribed_topics": ["orders", "a"],
        "rebalance_timeout_ms": 300,
        "session_timeout_ms": 45,
        "protocols": [told],
        "assignment": given,
        "log_partition": 0,
        "log_offset": place,
    }
    assert (row["log_timestamp_ms"], row["epoch_timestamp_ms"]) == (WRITTEN_MS, None)
    assert row["log_timestamp"].timestamp() * 1000 == WRITTEN_MS


def test_without_a_rebalance_timeout_it_is_the_session_timeout() -> None:
    """Values of version 0 have none; -1 stands for that in later ones."""
    topic = Topic()
    _classic(topic, "old", _member("m", session_timeout=10), version=0)
    _classic(topic, "new", _member("m", session_timeout=10, rebalance_timeout=-1))
    _classic(topic, "named", _member("m", session_timeout=10, rebalance_timeout=0))

    timeouts = {group: row["rebalance_timeout_ms"] for (group, _), row in _members(topic).items()}

    assert timeouts == {"old": 10, "new": 10, "named": 0}


@pytest.mark.parametrize(
    ("data", "version", "topics", "is_opened"),
    [
        (_framed(ConsumerProtocolSubscription(topics=("t",)), 0), 0, ["t"], True),
        # The coordinator reads version 0 of every record.
        (pack(">h", 9) + ConsumerProtocolSubscription(topics=("t",)).encode(3), 9, ["t"], True),
        (pack(">h", 3) + ConsumerProtocolSubscription(topics=("t",)).encode(0), None, ["t"], False),
        (pack(">h", -1) + ConsumerProtocolSubscription(topics=("t",)).encode(0), None, ["t"], False),
        (b"\x00\x00\xff\xff\xff\xff", None, None, False),
        (b"\x01", None, None, False),
        (b"", None, None, False),
    ],
)
def test_topics_are_those_that_a_coordinator_reads(
    data: bytes, version: int | None, topics: list[str] | None, is_opened: bool
) -> None:
    topic = Topic()
    _classic(topic, "g", _member("m", data))

    (row,) = _members(topic).values()

    (told,) = row["protocols"]
    assert (told["version"], row["subscribed_topics"], told["opened"] is not None) == (version, topics, is_opened)
    assert told["bytes"] == data


def test_user_data_of_the_sticky_assignors_is_opened() -> None:
    held = StickyAssignorUserData(previous_assignment=(TopicAssignment(topic="t", partitions=(1, 2)),), generation=7)
    at_7 = CooperativeStickyAssignorUserData(generation=7)
    cases = {
        "sticky": (held.encode(1), {"previousAssignment": [{"topic": "t", "partitions": [1, 2]}], "generation": 7}),
        "sticky ": (held.encode(1), None),
        "cooperative-sticky": (at_7.encode(0), {"generation": 7}),
        "range": (at_7.encode(0), None),
    }
    topic = Topic()
    for protocol, (data, _) in cases.items():
        subscription = _framed(ConsumerProtocolSubscription(topics=("t",), user_data=data), 1)
        _classic(topic, protocol, _member("m", subscription), protocol=protocol)
    old = _framed(ConsumerProtocolSubscription(topics=("t",), user_data=held.encode(0)), 0)
    _classic(topic, "before 2.1", _member("m", old), protocol="sticky")
    others: dict[str, bytes | None] = {"none": None, "empty": b"", "other bytes": b"\x00\x00\x00\x09"}
    for group, user_data in others.items():
        _classic(
            topic, group, _member("m", _framed(ConsumerProtocolSubscription(user_data=user_data), 1)), protocol="sticky"
        )

    found = {group: row["protocols"][0]["user_data"] for (group, _), row in _members(topic).items()}

    expected: dict[str, Any] = {protocol: shown for protocol, (_, shown) in cases.items()}
    expected["before 2.1"] = {"previousAssignment": [{"topic": "t", "partitions": [1, 2]}]}
    expected |= {"none": None, "empty": None, "other bytes": None}
    assert {group: text and json.loads(text) for group, text in found.items()} == expected


@pytest.mark.parametrize("version", range(1, 12))
def test_user_data_of_streams_is_opened(version: int) -> None:
    told: dict[str, Any] = {"version": version, "process_id": Uuid(bytes(15) + b"\x07")}
    if version >= 3:
        told["latest_supported_version"] = 11
    if version < 7:
        told["prev_tasks"] = (subscription_info_data.TaskId(topic_group_id=1, partition=2),)
    if version >= 11:
        told["client_tags"] = (subscription_info_data.ClientTag(key=b"zone", value=b"a"),)
    data = subscription_info_data.SubscriptionInfoData(**told).encode(version)
    cases = {
        "whole": data,
        "more behind": data + b"!",
        "cut": data[:-1],
        "empty": b"",
        "version alone": data[:4],
        "unknown version": pack(">i", 12) + data[4:],
        "version 0": pack(">i", 0) + data[4:],
        "negative version": pack(">i", -1) + data[4:],
    }
    if version >= 3:
        cases["above its latest"] = data[:4] + pack(">i", version - 1) + data[8:]
        cases["without a latest"] = data[:4] + pack(">i", -1) + data[8:]
    topic = Topic()
    for group, user_data in cases.items():
        framed = _framed(ConsumerProtocolSubscription(topics=("t",), user_data=user_data), 1)
        _classic(topic, group, _member("m", framed), protocol="stream")
    other = _framed(ConsumerProtocolSubscription(topics=("t",), user_data=data), 1)
    _classic(topic, "of another assignor", _member("m", other), protocol="range")

    rows = {group: row["protocols"][0] for (group, _), row in _members(topic).items()}

    opened = {group: json.loads(each["user_data"]) for group, each in rows.items() if each["user_data"]}
    assert set(opened) == {"whole", "more behind"}
    assert opened["whole"] == opened["more behind"]
    shown = opened["whole"]
    assert (shown["version"], shown["processId"]) == (version, str(told["process_id"]))
    assert shown.get("prevTasks") == ([{"topicGroupId": 1, "partition": 2}] if version < 7 else None)
    tags = [{"key": b64encode(b"zone").decode(), "value": b64encode(b"a").decode()}]
    assert shown.get("clientTags") == (tags if version >= 11 else None)
    # Unreadable data stays as bytes, and the subscription around it is still decoded.
    assert all(each["opened"] and each["bytes"] for each in rows.values())


def test_workers_of_connect() -> None:
    task = ConnectorAssignment(connector="sink", tasks=(-1, 0))
    runs = _framed(
        ConnectProtocolAssignment(leader="m", leader_url="http://m/", config_offset=5, assignment=(task,)), 2
    )
    told = _framed(ConnectProtocolSubscription(url="http://m/", config_offset=5, allocation=runs), 2)
    topic = Topic()
    _classic(topic, "g", _member("m", told, runs), protocol_type="connect", protocol="sessioned")

    (row,) = _members(topic).values()

    (protocol,) = row["protocols"]
    assert (row["subscribed_topics"], row["rack_id"], protocol["name"], protocol["version"]) == (
        None,
        None,
        "sessioned",
        2,
    )
    assert json.loads(protocol["opened"])["url"] == "http://m/"
    assert protocol["user_data"] == row["assignment"]["opened"]
    assert json.loads(row["assignment"]["opened"])["assignment"] == [{"connector": "sink", "tasks": [-1, 0]}]


def test_what_only_clients_know_stays_bytes() -> None:
    topic = Topic()
    data = _framed(ConsumerProtocolSubscription(topics=("t",)), 0)
    _classic(topic, "g", _member("m", data, data), protocol_type="sr", protocol="v0")

    (row,) = _members(topic).values()

    assert row["protocols"] == [{"name": "v0", "version": None, "opened": None, "user_data": None, "bytes": data}]
    assert row["assignment"] == {"version": None, "opened": None, "bytes": data}
    assert row["subscribed_topics"] is None


def test_of_two_members_with_one_id_a_coordinator_keeps_the_last() -> None:
    topic = Topic()
    _classic(topic, "g", _member("m", client_id="first"), _member("m", client_id="last"))

    assert {key: row["client_id"] for key, row in _members(topic).items()} == {("g", "m"): "last"}


# -- the other kinds ---------------------------------------------------------------------------------------------------

KINDS: Final = ("Consumer", "Share", "Streams")


@pytest.mark.parametrize(("kind", "state", "before"), [("Consumer", 0, -1), ("Share", 0, -1), ("Streams", 1, 0)])
def test_epochs_and_states(kind: str, state: int, before: int) -> None:
    """The initial values of members, and the values after tombstones (`GroupMetadataManager.replay`)."""
    topic = Topic()

    def add(record: str, group: str, **fields: Any) -> int:
        key = {"group_id": group, "member_id": "m"}
        return topic.add(f"{kind}Group{record}", key, fields or None)

    def current(group: str, epoch: int, number: int) -> int:
        fields = {"member_epoch": epoch, "previous_member_epoch": epoch - 1, "state": number}
        return add("CurrentMemberAssignment", group, **fields)

    own = add("MemberMetadata", "joined", client_id="c")
    add("MemberMetadata", "reached", client_id="c")
    current("reached", 5, state)
    alone = current("current alone", 5, state + 1)
    add("MemberMetadata", "left", client_id="c")
    current("left", 5, state)
    add("CurrentMemberAssignment", "left")
    add("MemberMetadata", "gone", client_id="c")
    add("CurrentMemberAssignment", "gone")
    add("MemberMetadata", "gone")
    current("unknown state", 5, 100)
    add("TargetAssignmentMember", "target alone", unknown_tagged_fields=((9, b""),))

    rows = {group: row for (group, _), row in _members(topic).items()}

    columns = ("member_epoch", "previous_member_epoch", "state", "client_id")
    waits = {"Consumer": "UnrevokedPartitions", "Share": "UnrevokedPartitions", "Streams": "UnrevokedTasks"}[kind]
    assert {group: tuple(row[column] for column in columns) for group, row in rows.items()} == {
        "joined": (0, before, "Stable", "c"),
        "reached": (5, 4, "Stable", "c"),
        "current alone": (5, 4, waits, None),
        "left": (-1, -1, "Stable", "c"),
        "unknown state": (5, 4, "100", None),
    }
    assert {row["group_kind"] for row in rows.values()} == {kind.lower()}
    assert (rows["joined"]["log_offset"], rows["current alone"]["log_offset"]) == (own, alone)
    assert rows["joined"]["epoch_timestamp_ms"] is None
    assert {rows["joined"]["log_timestamp_ms"], rows["reached"]["epoch_timestamp_ms"]} == {WRITTEN_MS}


@pytest.mark.parametrize("kind", KINDS)
def test_the_tombstone_of_the_group_ends_its_members(kind: str) -> None:
    topic = Topic()
    topic.add(f"{kind}GroupMemberMetadata", {"group_id": "g", "member_id": "m"}, {})
    topic.add(f"{kind}GroupMetadata", {"group_id": "g"}, None)

    assert _members(topic) == {}


def test_a_member_of_a_consumer_group() -> None:
    topic = Topic()
    told = _framed(ConsumerProtocolSubscription(topics=("t",)), 1)
    protocol = struct("consumer_group_member_metadata", "ClassicProtocol", name="range", metadata=told)
    classic = struct(
        "consumer_group_member_metadata",
        "ClassicMemberMetadata",
        session_timeout_ms=45,
        supported_protocols=(protocol,),
    )
    common: dict[str, Any] = {
        "instance_id": "i",
        "rack_id": "r",
        "subscribed_topic_names": ("t",),
        "rebalance_timeout_ms": 300,
    }
    members: dict[str, dict[str, Any]] = {
        "by name": {"server_assignor": "uniform", "subscribed_topic_regex": ""},
        "by regex": {"subscribed_topic_regex": "t.*", "subscribed_topic_names": ()},
        "by another": {"subscribed_topic_regex": "u.*"},
        "classic": {"classic_member_metadata": classic},
    }
    for member_id, fields in members.items():
        value: dict[str, Any] = {
            "classic_member_metadata": None,
            "subscribed_topic_regex": None,
            "server_assignor": None,
        }
        topic.add("ConsumerGroupMemberMetadata", {"group_id": "g", "member_id": member_id}, value | common | fields)
    topic.add("ConsumerGroupRegularExpression", {"group_id": "g", "regular_expression": "t.*"}, {"topics": ("t", "tt")})
    topic.add("ConsumerGroupRegularExpression", {"group_id": "g", "regular_expression": "u.*"}, {"topics": ("u",)})
    topic.add("ConsumerGroupRegularExpression", {"group_id": "g", "regular_expression": "u.*"}, None)

    rows = {member_id: row for (_, member_id), row in _members(topic).items()}

    columns = ("subscribed_topics", "subscribed_regex", "regex_topics", "server_assignor", "uses_classic_protocol")
    assert {member_id: tuple(row[column] for column in columns) for member_id, row in rows.items()} == {
        "by name": (["t"], None, None, "uniform", False),
        "by regex": ([], "t.*", ["t", "tt"], None, False),
        "by another": (["t"], "u.*", None, None, False),
        "classic": (["t"], None, None, None, True),
    }
    assert [rows["classic"][name] for name in ("session_timeout_ms", "rebalance_timeout_ms")] == [45, 300]
    assert [(each["name"], each["bytes"]) for each in rows["classic"]["protocols"]] == [("range", told)]
    assert {row["session_timeout_ms"] for member_id, row in rows.items() if member_id != "classic"} == {None}


def test_a_member_of_a_streams_group() -> None:
    topic = Topic()
    endpoint = struct("streams_group_member_metadata", "Endpoint", host="h", port=65_535)
    tag = struct("streams_group_member_metadata", "KeyValue", key="zone", value="z1")
    value = {"process_id": "p", "topology_epoch": 2, "user_endpoint": endpoint, "client_tags": (tag,)}
    topic.add("StreamsGroupMemberMetadata", {"group_id": "g", "member_id": "m"}, value | {"instance_id": "i"})

    (row,) = _members(topic).values()

    assert (row["process_id"], row["topology_epoch"], row["instance_id"]) == ("p", 2, "i")
    assert row["user_endpoint"] == {"host": "h", "port": 65_535}
    assert row["client_tags"] == [{"key": "zone", "value": "z1"}]
    assert (row["subscribed_topics"], row["protocols"], row["uses_classic_protocol"]) == (None, None, False)


# -- what cannot be read, what nobody expects --------------------------------------------------------------------------


def test_what_cannot_be_decoded_is_null_and_found() -> None:
    topic = Topic()
    _classic(topic, "classic", _member("m"))
    for kind, record in (("Consumer", "MemberMetadata"), ("Share", "CurrentMemberAssignment")):
        topic.add(f"{kind}GroupMemberMetadata", {"group_id": kind, "member_id": "m"}, {"client_id": "c"})
        topic.add(f"{kind}GroupCurrentMemberAssignment", {"group_id": kind, "member_id": "m"}, {"member_epoch": 5})
        place = topic.add(f"{kind}Group{record}", {"group_id": kind, "member_id": "m"}, {})
        topic.rows[place] = (*topic.rows[place][:6], b"\x00\x00\x07", *topic.rows[place][7:])
    topic.add_bytes(b"\x00\x02\x00\x07classic", b"\x00\x03\x00")

    result = read_table("members", topic.table())

    rows = {row["group_id"]: row for row in result.table.to_pylist()}
    assert {group: (row["client_id"], row["member_epoch"], row["state"]) for group, row in rows.items()} == {
        "Consumer": (None, 5, "Stable"),
        "Share": ("c", None, None),
    }
    null = "its values are null in the rows of members, and the members of a classic group have no rows"
    assert [(each.record_type, each.severity, each.consequence) for each in result.findings] == [
        (5, "damage", null),
        (14, "damage", null),
        (2, "damage", null),
    ]


def test_names_are_data() -> None:
    topic = Topic()
    for name in HOSTILE:
        subscription = _framed(ConsumerProtocolSubscription(topics=(name,)), 0)
        _classic(topic, f"classic {name}", _member(name, subscription, client_id=name, client_host=name))
        key = {"group_id": f"consumer {name}", "member_id": name}
        value = {"client_id": name, "client_host": name, "subscribed_topic_names": (name,), "rack_id": name}
        topic.add("ConsumerGroupMemberMetadata", key, value)

    found = _members(topic)

    assert set(found) == {(f"{kind} {name}", name) for kind in ("classic", "consumer") for name in HOSTILE}
    for (_, name), row in found.items():
        assert (row["client_id"], row["client_host"], row["subscribed_topics"]) == (name, name, [name])
        for told in row["protocols"] or ():
            assert json.loads(told["opened"])["topics"] == [name]


def test_an_empty_topic_has_no_members() -> None:
    result = read_table("members", Topic().table())
    assert (result.table.num_rows, result.findings) == (0, ())
