"""Decides when an offset of a group expires, by the rules of Kafka 4.3 and by the state table in KIP-211.

The rules of Kafka are in `ClassicGroup.offsetExpirationCondition`, `ConsumerGroup`, `StreamsGroup` and `ShareGroup`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_records_tables.coordinator.groups.group_model import CLASSIC, SHARE, SIMPLE
from kafka_records_tables.coordinator.groups.subscriptions import HeldGroup, are_offsets_kept

COMMIT_TIMESTAMP: Final = "commit_timestamp"
STATE_TIMESTAMP: Final = "state_timestamp"
EXPIRE_TIMESTAMP: Final = "expire_timestamp"
SUBSCRIBED: Final = "subscribed"
MEMBERS: Final = "members"
OPEN_TRANSACTION: Final = "open_transaction"
LAST_OFFSET: Final = "last_offset"
STAYS: Final = "stays"
NOTHING_LEFT: Final = "nothing_left"
SHARE_GROUP: Final = "share_group"
NO_GROUP: Final = "no_group"
UNREADABLE: Final = "unreadable"
NO_TIME: Final = "no_time"

PROTECTED_BY: Final = {SUBSCRIBED: "subscription", MEMBERS: "members", OPEN_TRANSACTION: "transaction"}
"""For each rule, what protects the offset and must end before it can expire."""

CHANGES_WITH: Final[dict[str, tuple[str, ...]]] = {
    COMMIT_TIMESTAMP: ("commit", "subscription"),
    STATE_TIMESTAMP: ("members",),
    EXPIRE_TIMESTAMP: ("commit", "subscription"),
    SUBSCRIBED: ("subscription",),
    MEMBERS: ("members",),
    OPEN_TRANSACTION: ("transaction",),
    LAST_OFFSET: ("offsets", "members"),
    STAYS: ("offsets",),
    NOTHING_LEFT: ("offsets", "members"),
    SHARE_GROUP: (),
    NO_GROUP: ("commit",),
    UNREADABLE: ("commit",),
    NO_TIME: ("members",),
}
"""For each rule, the events that change the answer."""


class GroupRule(NamedTuple):
    """What determines when a group's offsets expire."""

    rule: str
    base_ms: int | None = None
    """The time from which retention is counted if the rule is STATE_TIMESTAMP."""
    topics: frozenset[str] = frozenset()
    """The topics whose offsets do not expire."""

    @property
    def is_by_time(self) -> bool:
        """Whether the offsets expire some time after they were committed or the group became empty."""
        return self.rule in (COMMIT_TIMESTAMP, STATE_TIMESTAMP)


def kafka_rule(group: HeldGroup | None) -> GroupRule:
    """Kafka 4.3's rule for the offsets of a group; None means that the group no longer exists."""
    if group is None:
        return GroupRule(NO_GROUP)
    if group.kind == SHARE:
        return GroupRule(SHARE_GROUP)
    if group.state is None:
        return GroupRule(UNREADABLE)
    if group.kind == SIMPLE:
        return GroupRule(COMMIT_TIMESTAMP)
    if group.kind != CLASSIC:
        return GroupRule(COMMIT_TIMESTAMP, topics=group.topics or frozenset())
    if group.is_empty:
        since = group.state_timestamp_ms
        return GroupRule(COMMIT_TIMESTAMP) if since is None else GroupRule(STATE_TIMESTAMP, since)
    if are_offsets_kept(group.kind, group.protocol_type) or group.topics is None:
        return GroupRule(MEMBERS)
    return GroupRule(COMMIT_TIMESTAMP, topics=group.topics)


def kip_211_rule(group: HeldGroup | None) -> GroupRule:
    """The rule for the offsets of a group in KIP-211's state table.

    The KIP distinguishes groups with and without a protocol type. It considers only the topics that members name, so a
    group whose subscriptions cannot be read keeps its offsets, and so does a group in any state other than Empty.
    """
    if group is None:
        return GroupRule(NO_GROUP)
    if group.kind == SHARE:
        return GroupRule(SHARE_GROUP)
    if group.state is None:
        return GroupRule(UNREADABLE)
    if group.kind == SIMPLE:
        return GroupRule(COMMIT_TIMESTAMP)
    if group.is_empty:
        since = group.state_timestamp_ms
        return GroupRule(NO_TIME) if since is None else GroupRule(STATE_TIMESTAMP, since)
    if group.topics is None:
        return GroupRule(MEMBERS)
    return GroupRule(COMMIT_TIMESTAMP, topics=group.topics)
