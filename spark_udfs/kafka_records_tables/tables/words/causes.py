"""Why a record was deleted: the values of the column `cause`, and an explanation for each kind of tombstone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

EXPIRED: Final = "expired"
GROUP_EXPIRED: Final = "group_expired"
GROUP_DELETED: Final = "group_deleted"
OFFSET_DELETED: Final = "offset_deleted"
TOPIC_DELETED: Final = "topic_deleted"
MEMBER_LEFT: Final = "member_left"
SESSION_TIMEOUT: Final = "session_timeout"
REBALANCE_TIMEOUT: Final = "rebalance_timeout"
MEMBER_REPLACED: Final = "member_replaced"
REGEX_UNUSED: Final = "regex_unused"
CONVERSION: Final = "conversion"
REPLACED_EMPTY_GROUP: Final = "replaced_empty_group"
RECORD_UNUSED: Final = "record_unused"

STATE_DELETED: Final = "state_deleted"
"""A group coordinator requested the deletion. Used only for share state, whose only other cause is TOPIC_DELETED."""

CAUSES: Final = {
    EXPIRED: "a clean-up deleted an offset that had expired",
    GROUP_EXPIRED: "a clean-up deleted a group that was empty and had no offsets left",
    GROUP_DELETED: "an administrator deleted the group, with its offsets",
    OFFSET_DELETED: "an administrator deleted offsets of the group",
    TOPIC_DELETED: "the topic of the offset was deleted",
    MEMBER_LEFT: "the member left, or an administrator removed it",
    SESSION_TIMEOUT: "the coordinator got no heartbeat from the member within its session timeout",
    REBALANCE_TIMEOUT: "the member did not give up partitions, join or sync within its rebalance timeout",
    MEMBER_REPLACED: "a static member came back under a new id",
    REGEX_UNUSED: "no member uses the regular expression any more",
    CONVERSION: "the group was converted to the other protocol, with its members",
    REPLACED_EMPTY_GROUP: "an empty group was replaced by one of another kind",
    RECORD_UNUSED: "newer brokers do not use the record",
}
"""The values of `disappearances`, in the order in which several of them are written."""

OF_GROUP_ENDS: Final = (GROUP_EXPIRED, GROUP_DELETED, CONVERSION, REPLACED_EMPTY_GROUP)
"""Causes of tombstones that end a group."""

_OR: Final = " or "

HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"


class Evidence(NamedTuple):
    """A fact in the log that supports a cause."""

    shows: str
    """A value described in `disappearances.TABLE.rules`."""
    log_offset: int | None
    """The offset of the record that shows it; None if no single record does."""


class Explained(NamedTuple):
    """A tombstone, and the reason why it was written."""

    log_offset: int
    timestamp_ms: int | None
    record: str
    key: tuple[object, ...]
    """The fields of the key, in schema order. The first is the group."""
    write_offset: int
    """The offset of the first record of the same write."""
    cause: tuple[str, ...]
    """One of CAUSES or, if the cause is one of several, these in order."""
    possible: tuple[str, ...]
    """Every cause that the log does not rule out."""
    confidence: str
    evidence: tuple[Evidence, ...]


def as_text(words: Collection[str]) -> str:
    """Some causes as a single string: `offset_deleted or topic_deleted`."""
    return _OR.join(in_order(words))


def of_text(text: str) -> tuple[str, ...]:
    """The causes in a text that `as_text` returned."""
    return tuple(text.split(_OR))


def in_order(words: Collection[str]) -> tuple[str, ...]:
    """The given causes, sorted in the order of CAUSES."""
    return tuple(word for word in CAUSES if word in words)
