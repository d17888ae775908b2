"""What groups with members subscribe to, asked of their coordinators: requests and answers by kind of group.

A coordinator refuses to delete offsets of these topics. Of each kind it answers what decides there: `ClassicGroup`,
`ConsumerGroup` and `StreamsGroup`, each in `isSubscribedToTopic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kafka_records_engine.sources._brokers.connection import Connection
from kafka_records_engine.sources._brokers.requests_sent import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    STREAMS_GROUP_DESCRIBE,
)
from kafka_records_runtime.error_codes import ErrorCode

_DESCRIBED_BY: Final = {"consumer": CONSUMER_GROUP_DESCRIBE, "streams": STREAMS_GROUP_DESCRIBE}
_STABLE: Final = "Stable"
_EMPTY: Final = ("Empty", "Dead")


class GroupSubscriptions(NamedTuple):
    """What the members of a group subscribe to at this moment."""

    topics: frozenset[str] = frozenset()
    """Topics that they name."""
    regexes: tuple[str, ...] = ()
    """Regular expressions (RE2), which the coordinator alone resolves."""
    messages: tuple[bytes, ...] = ()
    """The subscriptions of members of a classic group, each as its client wrote it."""
    why_unknown: str = ""
    """Why the answer does not tell, as the end of a sentence; empty where it does."""


def request_of(kind: str) -> str:
    """The name of the request that describes groups of this kind (`ListedGroup.kind`)."""
    return _DESCRIBED_BY.get(kind, DESCRIBE_GROUPS)


def describe(connection: Connection, groups: list[str], name: str) -> dict[str, tuple[int, GroupSubscriptions]]:
    """Asks by the request `name`; by group the code of its error and what it subscribes to."""
    asked = {"groups" if name == DESCRIBE_GROUPS else "group_ids": tuple(groups)}
    answer = connection.ask(name, asked)
    read = {CONSUMER_GROUP_DESCRIBE: _of_consumers, STREAMS_GROUP_DESCRIBE: _of_streams}.get(name, _of_classic)
    return {each["group_id"]: (each["error_code"], _read(each, read)) for each in answer["groups"]}


def _read(group: Mapping[str, Any], read: Any) -> GroupSubscriptions:
    if group["error_code"]:
        return GroupSubscriptions(why_unknown=f"the coordinator answers {ErrorCode(group['error_code']).name}")
    found: GroupSubscriptions = GroupSubscriptions() if group["group_state"] in _EMPTY else read(group)
    return found


def _of_classic(group: Mapping[str, Any]) -> GroupSubscriptions:
    # In a rebalance the answer leaves out what members subscribe to, and the coordinator goes by the last generation.
    if group["group_state"] != _STABLE:
        return GroupSubscriptions(why_unknown=f"the group is {group['group_state']}")
    return GroupSubscriptions(messages=tuple(member["member_metadata"] for member in group["members"]))


def _of_consumers(group: Mapping[str, Any]) -> GroupSubscriptions:
    members = group["members"]
    return GroupSubscriptions(
        frozenset(topic for member in members for topic in member["subscribed_topic_names"]),
        tuple(sorted({member["subscribed_topic_regex"] for member in members if member["subscribed_topic_regex"]})),
    )


def _of_streams(group: Mapping[str, Any]) -> GroupSubscriptions:
    parts = (group["topology"] or {}).get("subtopologies") or ()
    sources = (topic for part in parts for topic in part["source_topics"])
    repartition = (each["name"] for part in parts for each in part["repartition_source_topics"])
    return GroupSubscriptions(frozenset((*sources, *repartition)))
