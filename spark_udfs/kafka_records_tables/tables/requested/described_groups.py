"""Converts coordinators' descriptions of groups to the form of groups replayed from records, so that the same rules
apply to members, assignments and partition owners. Values that an answer lacks are None.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.coordinator.groups.group_model import (
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    MEMBER,
    SHARE,
    STREAMS,
    TARGET,
    TARGET_OF_MEMBER,
    TOPOLOGY,
    Group,
    Member,
)
from kafka_records_tables.coordinator.records.named_records import Event

if TYPE_CHECKING:
    from kafka_records_engine.sources.live_requests import AskedGroup

_NOWHERE: Final = -1
"""Used instead of the offset of a record."""

_CLASSIC_MEMBER: Final = 0
_UNKNOWN_MEMBER: Final = -1
"""`MemberType` of ConsumerGroupDescribeResponse."""

_TASKS: Final = ("active_tasks", "standby_tasks", "warmup_tasks")
_RECORDS: Final = {CONSUMER: "ConsumerGroup", SHARE: "ShareGroup", STREAMS: "StreamsGroup"}
_CLIENT: Final = ("rack_id", "client_id", "client_host")


def described_group(group_id: str, asked: AskedGroup) -> Group:
    """A group with its members, as far as its coordinator reports it."""
    told = asked.described.fields
    group = Group(group_id, asked.kind, _NOWHERE, protocol_type=asked.listed.protocol_type)
    if not told:
        return group
    if asked.kind == CLASSIC:
        _add_classic(group, told)
        return group
    group.epoch = told["group_epoch"]
    _add(group, TARGET, "TargetAssignmentMetadata", group_id, assignment_epoch=told["assignment_epoch"])
    if asked.kind == STREAMS and told["topology"] is not None:
        _add(group, TOPOLOGY, "Topology", group_id, subtopologies=told["topology"]["subtopologies"] or ())
    for member in told["members"]:
        _add_member(group, member)
    return group


def names_told(asked: AskedGroup) -> dict[str, str]:
    """Topic names by id (22 characters), from assignments."""
    return {
        str(topic["topic_id"]): topic["topic_name"]
        for member in asked.described.fields.get("members", ())
        for name in ("assignment", "target_assignment")
        for topic in member.get(name, {}).get("topic_partitions", ())
    }


def has_unresolved_regex(asked: AskedGroup) -> bool:
    """Whether a member subscribes by regular expression, so that the coordinator does not report the topics."""
    return any(member.get("subscribed_topic_regex") for member in asked.described.fields.get("members", ()))


def members_of_unknown_type(asked: AskedGroup) -> set[str]:
    """The ids of members whose protocol the coordinator does not report (before Kafka 4.0)."""
    members = asked.described.fields.get("members", ()) if asked.kind == CONSUMER else ()
    return {member["member_id"] for member in members if member["member_type"] == _UNKNOWN_MEMBER}


def _add(group: Group, role: str, record: str, of: str, **value: Any) -> None:
    name = _RECORDS.get(group.kind, "") + record
    key = group.group_id, of
    group.set_record(role, Event(_NOWHERE, name, key, SimpleNamespace(**value), False, False, None))


def _add_classic(group: Group, told: Mapping[str, Any]) -> None:
    group.protocol = told["protocol_data"] or None
    group.classic_members = len(told["members"])
    members = [
        {
            "member_id": member["member_id"],
            "group_instance_id": member["group_instance_id"],
            "client_id": member["client_id"],
            "client_host": member["client_host"],
            "subscription": member["member_metadata"],
            "assignment": member["member_assignment"],
            "rebalance_timeout": None,
            "session_timeout": None,
        }
        for member in told["members"]
    ]
    _add(group, GROUP, "GroupMetadata", group.group_id, members=members)


def _add_member(group: Group, member: Mapping[str, Any]) -> None:
    member_id, epoch = member["member_id"], member["member_epoch"]
    group.set_member(member_id, Member(epoch=epoch))
    metadata = {name: member[name] for name in _CLIENT} | {"rebalance_timeout_ms": None}
    if group.kind != SHARE:
        metadata["instance_id"] = member["instance_id"]
    if group.kind == STREAMS:
        metadata |= {name: member[name] for name in ("topology_epoch", "process_id", "user_endpoint", "client_tags")}
        has = _tasks(member["assignment"], None) | {f"{name}_pending_revocation": () for name in _TASKS}
        target = _tasks(member["target_assignment"])
    else:
        metadata["subscribed_topic_names"] = sorted(member["subscribed_topic_names"])  # as in records
        has = {"assigned_partitions": _partitions(member["assignment"], *((None,) if group.kind == CONSUMER else ()))}
        target = {}
    if group.kind == CONSUMER:
        is_classic = member["member_type"] == _CLASSIC_MEMBER
        metadata |= {
            "subscribed_topic_regex": member["subscribed_topic_regex"],
            "server_assignor": None,
            "classic_member_metadata": {"session_timeout_ms": None, "supported_protocols": ()} if is_classic else None,
        }
        has["partitions_pending_revocation"] = ()
        target = {"topic_partitions": _partitions(member["target_assignment"])}
    _add(group, MEMBER, "MemberMetadata", member_id, **metadata)
    _add(group, CURRENT, "CurrentMemberAssignment", member_id, member_epoch=epoch, previous_member_epoch=None, **has)
    if target:
        _add(group, TARGET_OF_MEMBER, "TargetAssignmentMember", member_id, **target)


def _partitions(assignment: Mapping[str, Any], *epoch: None) -> list[dict[str, Any]]:
    """Partitions by topic. With `epoch`, the epoch of each is marked as unknown."""
    return [
        {"topic_id": str(each["topic_id"]), **_numbers(each["partitions"], *epoch)}
        for each in assignment["topic_partitions"]
    ]


def _tasks(assignment: Mapping[str, Any], *epoch: None) -> dict[str, Any]:
    return {
        name: [
            {"subtopology_id": each["subtopology_id"], **_numbers(each["partitions"], *epoch)}
            for each in assignment[name]
        ]
        for name in _TASKS
    }


def _numbers(partitions: Any, *epoch: None) -> dict[str, Any]:
    return {"partitions": partitions} | ({"assignment_epochs": [None] * len(partitions)} if epoch else {})
