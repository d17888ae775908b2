"""The topics that each group subscribes to, as a coordinator knows them after loading the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_records_tables.coordinator.groups.embedded import subscribed_topics
from kafka_records_tables.coordinator.groups.group_model import (
    CLASSIC,
    GROUP,
    REGEX,
    SIMPLE,
    STREAMS,
    TOPOLOGY,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_records_tables.coordinator.groups.group_model import Group
    from kafka_records_tables.coordinator.records.named_records import Picked

REGEX_RECORD: Final = "ConsumerGroupRegularExpression"
"""The record with the topics that match a regular expression. These topics count even if no member uses the expression
any more (`ConsumerGroup.updateResolvedRegularExpression`)."""

PICKED: Final[Picked] = {
    "GroupMetadata": ("current_state_timestamp", "members.subscription"),
    "ConsumerGroupMemberMetadata": ("subscribed_topic_names",),
    REGEX_RECORD: ("topics",),
    "StreamsGroupTopology": ("subtopologies.source_topics", "subtopologies.repartition_source_topics.name"),
}

CONSUMER_PROTOCOL: Final = "consumer"
"""The protocol type of groups of consumers."""


class HeldGroup(NamedTuple):
    """A group as a coordinator keeps it in memory."""

    kind: str
    state: str | None
    """The state; None if a record cannot be decoded."""
    protocol_type: str
    """The protocol type; empty for a simple group."""
    state_timestamp_ms: int | None
    """When a classic group entered its present state; None for other kinds and for values older than version 2."""
    topics: frozenset[str] | None
    """The topics that the group subscribes to. None for a classic group if the coordinator cannot read the
    subscription of a member: it is invalid, or the group's protocol type is not `consumer`."""
    regexes: tuple[str, ...]
    """The regular expressions whose topics the coordinator has resolved."""
    made_at: int
    """Offset of the group's own record or, if there is none, of the newest record that shows that the group exists."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no member."""
        return self.state == "Empty"


def are_offsets_kept(kind: str, protocol_type: str | None) -> bool:
    """Whether the members of a group protect all of its offsets, not only those of the topics they subscribe to. This
    applies to classic groups with a protocol type other than `consumer` (`ClassicGroup.offsetExpirationCondition`,
    `validateOffsetDelete`)."""
    return kind in (CLASSIC, SIMPLE) and protocol_type != CONSUMER_PROTOCOL


def held_groups(groups: Mapping[str, Group]) -> dict[str, HeldGroup]:
    """The groups, by id. The records must have been read with the fields PICKED."""
    return {group_id: _held(group) for group_id, group in groups.items()}


def _held(group: Group) -> HeldGroup:
    protocol_type = group.protocol_type if group.kind == CLASSIC else group.kind
    regexes = tuple(sorted(regex for regex, event in group.of_role(REGEX).items() if event.value is not None))
    return HeldGroup(
        group.shown_kind,
        group.state,
        protocol_type or "",
        group.state_since_ms,
        topics_of(group),
        regexes,
        group.made_at,
    )


def topics_of(group: Group) -> frozenset[str] | None:
    """The topics that a group subscribes to (see `HeldGroup.topics`). The group's records must have been read with the
    fields PICKED."""
    if group.kind == CLASSIC:
        record = group.record(GROUP)
        subscriptions = None if record is None or record.value is None else record.value.members_subscription
        if not subscriptions:
            return frozenset()
        is_readable = group.protocol_type == CONSUMER_PROTOCOL and group.protocol
        return topics_of_members(subscriptions) if is_readable else None
    if group.kind == STREAMS and group.state != "Empty":
        record = group.record(TOPOLOGY)
        if record is None or record.value is None:
            return frozenset()
        value = record.value
        lists = (*value.subtopologies_source_topics, *value.subtopologies_repartition_source_topics_name)
        return frozenset(topic for each in lists for topic in each)
    return frozenset(group.named)


def topics_of_members(subscriptions: list[bytes]) -> frozenset[str] | None:
    """The topics that the members of a classic group subscribe to; None if any subscription cannot be read
    (`ClassicGroup.computeSubscribedTopics`)."""
    found: set[str] = set()
    for subscription in subscriptions:
        topics = subscribed_topics(subscription)
        if topics is None:
            return None
        found.update(topics)
    return frozenset(found)
