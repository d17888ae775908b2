"""Compares the table `members` with the descriptions by coordinators and brokers."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tools.judge.answers import Difference, Loaded, asked, differing, is_described
from tools.judge.opened import NOTHING_OPENED, shown_opened

Row = dict[str, Any]


def members(loaded: Loaded) -> Iterator[Difference]:
    """Compare the members in the answers to the requests that describe a group, and what clients read in the bytes of
    members."""
    groups = members_by_group(loaded.read("members").to_pylist())
    for question in loaded.questions:
        if question["question"] == "open_members":
            got = {name: shown_opened(row) for name, row in groups.get(question["group"], {}).items()}
            expected = {name: question["answer"].get(name, NOTHING_OPENED) for name in got}
            yield from differing("members", asked(question), expected, got)
    for question in loaded.questions:
        if question["question"] == "describe" and not is_described(loaded, question):
            groups.pop(question["group"], None)
        elif question["question"] == "describe":
            kind, rows = question["group_type"], groups.pop(question["group"], {})
            expected = described_members(kind, question["answer"])
            for member in expected.values():
                loaded.untold("more about members than an answer has", None)
                if kind == "streams":
                    loaded.untold("the offsets of tasks", None)
                if kind == "consumer" and member["subscribed_regex"] is None:
                    loaded.untold("no expression is an empty one", None)
            yield from differing("members", asked(question), expected, shown_members(kind, rows))
    if groups:
        yield Difference("members", "members of groups that were not described", {}, groups)


def members_by_group(rows: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """Rows by group and member. A second row of a member has "twice" after its id."""
    groups: dict[str, dict[str, Row]] = {}
    for row in rows:
        of_group = groups.setdefault(row["group_id"], {})
        of_group[row["member_id"] + " twice" * (row["member_id"] in of_group)] = row
    return groups


def described_members(kind: str, answer: Mapping[str, Any]) -> dict[str, Row]:
    """The members in an answer about a group of this kind (`classic`, `consumer`, …), in the columns of the table.
    Arrays are sets; messages in bytes are compared as bytes. The answer is in Kafka's JSON form of DescribeGroups v6,
    ConsumerGroupDescribe v1, ShareGroupDescribe v1 or StreamsGroupDescribe v0."""
    return {member["memberId"]: _MEMBERS[kind](answer, member) for member in answer["members"]}


def shown_members(kind: str, rows: Mapping[str, Row]) -> dict[str, Row]:
    """The same from the rows of the group."""
    return {
        member_id: {name: _comparable(row[name]) for name in ("group_kind", *_COMPARED, *_OF_KIND[kind])}
        for member_id, row in rows.items()
    }


_COMPARED: Final = ("client_id", "client_host", "uses_classic_protocol")
_SUBSCRIBED: Final = ("rack_id", "member_epoch", "subscribed_topics")
_OF_KIND: Final = {
    "classic": ("instance_id", "protocols", "assignment"),
    "consumer": ("instance_id", *_SUBSCRIBED, "subscribed_regex"),
    "share": _SUBSCRIBED,
    "streams": (
        "instance_id",
        "rack_id",
        "member_epoch",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
    ),
}


def _classic_member(answer: Mapping[str, Any], member: Mapping[str, Any]) -> Row:
    return {
        **_spelled(member, "client_id", "client_host"),
        "group_kind": "classic",
        "instance_id": member["groupInstanceId"],
        "uses_classic_protocol": True,
        "protocols": [(answer["protocolData"], b64decode(member["memberMetadata"]))],
        "assignment": b64decode(member["memberAssignment"]),
    }


def _consumer_member(answer: Mapping[str, Any], member: Mapping[str, Any]) -> Row:
    return {
        **_spelled(member, "instance_id", "rack_id", "member_epoch", "client_id", "client_host"),
        "group_kind": "consumer",
        "subscribed_topics": sorted(member["subscribedTopicNames"]),
        "subscribed_regex": member["subscribedTopicRegex"] or None,
        "uses_classic_protocol": {0: True, 1: False}[member["memberType"]],
    }


def _share_member(answer: Mapping[str, Any], member: Mapping[str, Any]) -> Row:
    return {
        **_spelled(member, "rack_id", "member_epoch", "client_id", "client_host"),
        "group_kind": "share",
        "subscribed_topics": sorted(member["subscribedTopicNames"]),
        "uses_classic_protocol": False,
    }


def _streams_member(answer: Mapping[str, Any], member: Mapping[str, Any]) -> Row:
    return {
        **_spelled(member, *_OF_KIND["streams"], "client_id", "client_host"),
        "group_kind": "streams",
        "client_tags": sorted((tag["key"], tag["value"]) for tag in member["clientTags"]),
        "uses_classic_protocol": member["isClassic"],
    }


_MEMBERS: Final = {
    "classic": _classic_member,
    "consumer": _consumer_member,
    "share": _share_member,
    "streams": _streams_member,
}


def _spelled(member: Mapping[str, Any], *columns: str) -> Row:
    """The values of the answer under the names of the table's columns."""
    found = {}
    for column in columns:
        first, *more = column.split("_")
        found[column] = member[first + "".join(word.capitalize() for word in more)]
    return found


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("bytes", value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        if "bytes" in value[0]:
            return [(each["name"], each["bytes"]) for each in value]
        return sorted((each["key"], each["value"]) for each in value)
    return sorted(value) if isinstance(value, list) else value
