"""The topics that a group subscribes to now, of which its coordinator deletes no offset."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_records_engine.sources.group_subscriptions import GroupSubscriptions
from kafka_records_tables.coordinator.groups.subscriptions import topics_of_members


class SubscribedTopics(NamedTuple):
    """What a group subscribes to, as far as its coordinator tells."""

    topics: frozenset[str] | None = frozenset()
    """None for a group whose coordinator cannot read the subscriptions: it takes every topic for subscribed."""
    or_if: str = ""
    """What makes it subscribe to other topics too, which nobody but the coordinator can tell; empty for nothing."""

    def has(self, topic: str) -> bool:
        """Whether the group is known to subscribe to the topic."""
        return self.topics is None or topic in self.topics


NO_TOPICS: Final = SubscribedTopics()
"""Of a group without members."""


def subscribed_topics(told: GroupSubscriptions) -> SubscribedTopics:
    """What the answer of a coordinator comes to."""
    topics = topics_of_members(list(told.messages))
    if topics is None:
        return SubscribedTopics(None)
    or_if = ""
    if told.why_unknown:
        or_if = f"the group subscribes to the topic, which cannot be seen: {told.why_unknown}"
    elif told.regexes:
        or_if = f"the topic matches what the group subscribes to: {' or '.join(map(repr, told.regexes))}"
    return SubscribedTopics(topics | told.topics, or_if)
