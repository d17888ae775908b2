"""What each group subscribes to, as a group coordinator knows it that has loaded the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_records_tables.tables.decoded.fold import Event, Picked, events
from kafka_records_tables.tables.replay.embedded import subscribed_topics
from kafka_records_tables.tables.replay.group_replay import (
    CLASSIC,
    CONSUMER,
    GROUP,
    MEMBER,
    REGEX,
    SIMPLE,
    STREAMS,
    TOPOLOGY,
)
from kafka_records_tables.tables.replay.group_replay import PICKED as REPLAYED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_records_tables.tables.replay.group_records import Replayed
    from kafka_records_tables.tables.replay.group_replay import Group

REGEX_RECORD: Final = "ConsumerGroupRegularExpression"
"""The record of the topics that a regular expression stands for. They count whether or not a member still has it
(`ConsumerGroup.updateResolvedRegularExpression`)."""

_KINDS: Final = {
    "GroupMetadata": (CLASSIC, SIMPLE),
    "ConsumerGroupMemberMetadata": (CONSUMER,),
    REGEX_RECORD: (CONSUMER,),
    "StreamsGroupTopology": (STREAMS,),
}

PICKED: Final[Picked] = {
    "GroupMetadata": ("current_state_timestamp", "members.subscription"),
    "ConsumerGroupMemberMetadata": ("subscribed_topic_names",),
    REGEX_RECORD: ("topics",),
    "StreamsGroupTopology": ("subtopologies.source_topics", "subtopologies.repartition_source_topics.name"),
}

KEPT_ROLES: Final = (GROUP, MEMBER, REGEX, TOPOLOGY)
"""The roles of these records."""

CONSUMER_PROTOCOL: Final = "consumer"
"""The protocol type of groups of consumers."""
_NO_TIMESTAMP: Final = -1


class HeldGroup(NamedTuple):
    """A group as the coordinator holds it."""

    kind: str
    state: str | None
    """None where a record cannot be decoded."""
    protocol_type: str
    """Empty for a simple group."""
    state_timestamp_ms: int | None
    """Since when a classic group is in its state; None for other kinds and for values older than version 2."""
    topics: frozenset[str] | None
    """The topics it subscribes to. None for a classic group with members whose subscriptions the coordinator cannot
    read, be it because they are of another protocol than `consumer`."""
    regexes: tuple[str, ...]
    """The regular expressions that the coordinator has resolved for it."""
    made_at: int
    """Offset of its own record, or without one of the newest record that shows it."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no member."""
        return self.state == "Empty"

    @property
    def is_of_consumers(self) -> bool:
        """Whether this is a classic group of the protocol type `consumer`."""
        return self.kind == CLASSIC and self.protocol_type == CONSUMER_PROTOCOL


def held_groups(replayed: Replayed) -> dict[str, HeldGroup]:
    """The groups by their ids. REGEX_RECORD has to be among the records whose values were read."""
    rows = {row[0]: row for row in replayed.replay.rows()}
    parts: dict[str, list[Event]] = {}
    for event in events(replayed.told, PICKED):
        group_id: str = event.key[0]
        row = rows.get(group_id)
        is_in_force = event.value is not None and event.offset > replayed.replay.ended_at(group_id)
        if row is not None and is_in_force and row[1] in _KINDS[event.record]:
            parts.setdefault(group_id, []).append(event)
    return {
        group_id: _held(kind, state, protocol_type or "", protocol, parts.get(group_id, ()), made_at)
        for group_id, kind, state, _, protocol_type, protocol, _, made_at in rows.values()
    }


def _held(
    kind: str, state: str | None, protocol_type: str, protocol: str | None, parts: Any, made_at: int
) -> HeldGroup:
    since: int | None = None
    if kind in (CLASSIC, SIMPLE):
        for part in parts:
            since = None if part.value[0] == _NO_TIMESTAMP else part.value[0]
    topics = _topics(kind, state, protocol_type, protocol, [part.value for part in parts])
    regexes = tuple(sorted(part.key[1] for part in parts if part.record == REGEX_RECORD))
    return HeldGroup(kind, state, protocol_type, since, topics, regexes, made_at)


def topics_of(group: Group) -> frozenset[str] | None:
    """The topics that a group subscribes to after the records replayed so far, as `HeldGroup.topics` has them. The
    replay has to keep KEPT_ROLES, with PICKED behind its own members of values (`group_replay.picked_with`)."""
    values = []
    for event in group.last.values():
        if event.record in PICKED and event.value is not None:
            first = len(REPLAYED[event.record])
            values.append(event.value[first : first + len(PICKED[event.record])])
    return _topics(group.shown_kind, group.state, group.protocol_type or "", group.protocol, values)


def _topics(
    kind: str, state: str | None, protocol_type: str, protocol: str | None, values: Sequence[Any]
) -> frozenset[str] | None:
    """The topics of all `values`, each what PICKED names of a record in force."""
    if kind in (CLASSIC, SIMPLE):
        subscriptions = [subscription for value in values for subscription in value[1] or ()]
        if not subscriptions:
            return frozenset()
        return topics_of_members(subscriptions) if protocol_type == CONSUMER_PROTOCOL and protocol else None
    if kind == STREAMS and state != "Empty":
        return frozenset(topic for value in values for lists in value for topic in _flat(lists))
    if kind == CONSUMER:
        return frozenset(topic for value in values for topic in value[0])
    return frozenset()


def _flat(lists: list[list[str]]) -> Iterator[str]:
    for each in lists:
        yield from each


def topics_of_members(subscriptions: list[bytes]) -> frozenset[str] | None:
    """The topics that all members of a classic group subscribe to; None if one subscription cannot be read
    (`ClassicGroup.computeSubscribedTopics`)."""
    found: set[str] = set()
    for subscription in subscriptions:
        topics = subscribed_topics(subscription)
        if topics is None:
            return None
        found.update(topics)
    return frozenset(found)
