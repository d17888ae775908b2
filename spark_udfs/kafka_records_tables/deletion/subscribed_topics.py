"""The topics to which a group now subscribes. A coordinator does not delete offsets for these topics."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_records_engine.sources.group_subscriptions import GroupSubscriptions
from kafka_records_tables.coordinator.groups.subscriptions import topics_of_members


class SubscribedTopics(NamedTuple):
    """The topics to which a group subscribes, as reported by its coordinator."""

    topics: frozenset[str] | None = frozenset()
    """The topics; None if the coordinator cannot read the group's subscriptions, and therefore treats every topic as
    subscribed."""
    or_if: str = ""
    """Why the group may also subscribe to other topics, which only the coordinator knows; empty if there are none."""

    def has(self, topic: str) -> bool:
        """Whether the group certainly subscribes to this topic."""
        return self.topics is None or topic in self.topics


NO_TOPICS: Final = SubscribedTopics()
"""The subscription of a group that has no members."""


def subscribed_topics(told: GroupSubscriptions) -> SubscribedTopics:
    """The subscription of a group, from the answer of its coordinator."""
    topics = topics_of_members(list(told.messages))
    if topics is None:
        return SubscribedTopics(None)
    or_if = ""
    if told.why_unknown:
        or_if = f"the group subscribes to the topic, which cannot be seen: {told.why_unknown}"
    elif told.regexes:
        or_if = f"the topic matches what the group subscribes to: {' or '.join(map(repr, told.regexes))}"
    return SubscribedTopics(topics | told.topics, or_if)
