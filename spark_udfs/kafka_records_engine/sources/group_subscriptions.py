"""Finds the topics to which groups with members subscribe, according to their coordinators. A coordinator refuses to
delete offsets of these topics. For each kind of group, this module uses the same fields as that decision
(`isSubscribedToTopic` of `ClassicGroup`, `ConsumerGroup` and `StreamsGroup`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kafka_records_engine.sources.group_descriptions import GroupDescription

_STABLE: Final = "Stable"
_EMPTY: Final = ("Empty", "Dead")


class GroupSubscriptions(NamedTuple):
    """The current subscriptions of the members of a group."""

    topics: frozenset[str] = frozenset()
    """Topics that the members name."""
    regexes: tuple[str, ...] = ()
    """Regular expressions (RE2) to which members subscribe. Only the coordinator resolves them."""
    messages: tuple[bytes, ...] = ()
    """The subscriptions of a classic group's members, as their clients wrote them."""
    why_unknown: str = ""
    """Why the subscriptions are unknown, as the end of a sentence; empty if they are known."""


def subscriptions_of(kind: str, described: GroupDescription) -> GroupSubscriptions:
    """The subscriptions of the members of a group of this kind (`ListedGroup.kind`)."""
    group = described.fields
    if described.error is not None:
        return GroupSubscriptions(why_unknown=f"the coordinator answers {described.error}")
    return GroupSubscriptions() if group["group_state"] in _EMPTY else _READ.get(kind, _of_classic)(group)


def _of_classic(group: Mapping[str, Any]) -> GroupSubscriptions:
    # During a rebalance, the response lacks subscriptions, and the coordinator uses those of the last generation.
    if group["group_state"] != _STABLE:
        return GroupSubscriptions(why_unknown=f"the group is {group['group_state']}")
    return GroupSubscriptions(messages=tuple(member["member_metadata"] for member in group["members"]))


def _of_consumers(group: Mapping[str, Any]) -> GroupSubscriptions:
    members = group["members"]
    return GroupSubscriptions(
        frozenset(topic for member in members for topic in member["subscribed_topic_names"]),
        tuple(sorted({member["subscribed_topic_regex"] for member in members if member["subscribed_topic_regex"]})),
    )


def _of_shares(group: Mapping[str, Any]) -> GroupSubscriptions:
    return GroupSubscriptions(
        frozenset(topic for member in group["members"] for topic in member["subscribed_topic_names"])
    )


def _of_streams(group: Mapping[str, Any]) -> GroupSubscriptions:
    parts = (group["topology"] or {}).get("subtopologies") or ()
    sources = (topic for part in parts for topic in part["source_topics"])
    repartition = (each["name"] for part in parts for each in part["repartition_source_topics"])
    return GroupSubscriptions(frozenset((*sources, *repartition)))


_READ: Final[Mapping[str, Callable[[Mapping[str, Any]], GroupSubscriptions]]] = {
    "consumer": _of_consumers,
    "share": _of_shares,
    "streams": _of_streams,
}
