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

UNCHANGED: Final = "unchanged"
"""The text in the detail of `epoch` about the target assignment if no member has a new one."""

MEANINGS: Final = {
    CREATED: "the first record of a group, or the first after `deleted`; detail names the record",
    CONVERTED: "the group changed to another kind; detail has both kinds",
    MEMBER_JOINED: "a new member; detail has its instance id, its client, and its rebalance and session timeouts",
    MEMBER_REPLACED: "a static member came back with another member id; detail has the former one and the timeouts",
    MEMBER_AWAY: "a static member left and may come back (epoch -2)",
    MEMBER_RETURNED: "a static member came back with the same member id",
    MEMBER_LEFT: "a member left, was fenced or timed out",
    EMPTIED: "the last member is gone",
    EPOCH: "the epoch of the group changed, or the generation of a classic group; detail has both numbers, and "
    "`target: unchanged` if a streams group has a new epoch but no member has a new target, as in a step of warm-up "
    "tasks",
    REBALANCE_STARTED: (
        "members must follow a new epoch, or one of them must give something up within the epoch; not for classic "
        "groups, where no record shows it"
    ),
    REBALANCE_COMPLETED: (
        "every member has its target: in a classic group when the leader's assignment is written, in others when the "
        "last member has followed"
    ),
    ASSIGNMENT_CHANGED: (
        "the target of a member changed, or what the leader assigned to it; detail has what it gained and lost"
    ),
    FIRST_COMMIT: "the group's first commit for a topic, even in a transaction that may be aborted",
    OFFSETS_RESET: (
        "commits for a group (not a simple one) without members, by an administrator or by a client that is not a "
        "member; detail has the topic, the number of partitions, and the lowest and highest offset"
    ),
    OFFSETS_DELETED: "tombstones of offsets; detail has the topic and their number (`disappearances` says why)",
    DELETED: "the tombstone of the group",
}
"""The meaning of each event, in the usual order of events."""
