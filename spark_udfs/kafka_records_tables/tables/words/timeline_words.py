"""The words of the column `event` of the table `timeline`. Imports nothing heavy, so that its declaration can list
them."""

from __future__ import annotations

from typing import Final

CREATED: Final = "created"
CONVERTED: Final = "converted"
DELETED: Final = "deleted"
EMPTIED: Final = "emptied"
EPOCH: Final = "epoch"
MEMBER_JOINED: Final = "member_joined"
MEMBER_REPLACED: Final = "member_replaced"
MEMBER_AWAY: Final = "member_away"
MEMBER_RETURNED: Final = "member_returned"
MEMBER_LEFT: Final = "member_left"
REBALANCE_STARTED: Final = "rebalance_started"
REBALANCE_COMPLETED: Final = "rebalance_completed"
ASSIGNMENT_CHANGED: Final = "assignment_changed"
FIRST_COMMIT: Final = "first_commit"
OFFSETS_RESET: Final = "offsets_reset"
OFFSETS_DELETED: Final = "offsets_deleted"

MEANINGS: Final = {
    CREATED: "the first record of a group is here, or the first after `deleted`; detail has the record",
    CONVERTED: "the group has become one of another kind; detail has both kinds",
    MEMBER_JOINED: "a member is there that was not; detail has its instance id and its client",
    MEMBER_REPLACED: "a static member came back under another member id; detail has the former one",
    MEMBER_AWAY: "a static member has left and may come back (epoch -2)",
    MEMBER_RETURNED: "it came back under the same member id",
    MEMBER_LEFT: "a member left, was fenced or timed out",
    EMPTIED: "the last member is gone",
    EPOCH: "the group has another epoch, a classic group another generation; detail has both",
    REBALANCE_STARTED: (
        "members have to follow: the epoch has changed, or one of them has to give something up within it; no record "
        "shows that for classic groups"
    ),
    REBALANCE_COMPLETED: (
        "every member has what it is to have: with the record of the leader's assignment in a classic group, in the "
        "others when the last member has followed"
    ),
    ASSIGNMENT_CHANGED: "the target of a member, or what the leader gave it; detail has what it gained and lost",
    FIRST_COMMIT: "the group commits for a topic for the first time; in a transaction, which may be aborted",
    OFFSETS_RESET: (
        "offsets are written while the group, which is not a simple one, has no members: by an administrator, or a "
        "client that is not a member; detail has the topic, how many partitions, and the lowest and highest offset"
    ),
    OFFSETS_DELETED: "tombstones of offsets; detail has the topic and how many (why: see disappearances)",
    DELETED: "the tombstone of the group",
}
"""The meaning of each, in the usual order of events."""
