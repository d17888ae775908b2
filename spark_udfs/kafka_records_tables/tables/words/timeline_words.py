"""The values of the column `event` of the table `timeline`. Imports nothing heavy, so its declaration can list them."""

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
"""The text about the target assignment in the detail of `epoch` if no member has a new one."""

MEANINGS: Final = {
    CREATED: "the first record of a group, or the first after `deleted`",
    CONVERTED: "the group changed to another kind",
    MEMBER_JOINED: "a new member",
    MEMBER_REPLACED: "a static member came back with another member id",
    MEMBER_AWAY: "a static member left and may come back (epoch -2)",
    MEMBER_RETURNED: "a static member came back with the same member id",
    MEMBER_LEFT: "a member left, was fenced or timed out",
    EMPTIED: "the last member is gone",
    EPOCH: (
        "the epoch of the group changed, or the generation of a classic group; detail has `target: unchanged` if no "
        "member of a streams group has a new target"
    ),
    REBALANCE_STARTED: (
        "members must follow a new epoch, or one of them must give something up; not in classic groups, because no "
        "record shows it"
    ),
    REBALANCE_COMPLETED: "every member has its target, or the leader's assignment of a classic group is written",
    ASSIGNMENT_CHANGED: "a member was assigned other partitions or tasks; detail has those it gained and lost",
    FIRST_COMMIT: "the group's first commit for a topic, even in a transaction that may be aborted",
    OFFSETS_RESET: (
        "commits for a group (not a simple one) without members, by an administrator or by a client that is not a "
        "member"
    ),
    OFFSETS_DELETED: "tombstones of offsets (`disappearances` says why)",
    DELETED: "the tombstone of the group",
}
"""The meaning of each event, in the usual order of events."""
