"""The names of the records that describe groups. This module imports nothing heavy, so table declarations can use
it."""

from __future__ import annotations

from typing import Final

GROUP_RECORDS: Final = (
    "GroupMetadata",
    "ConsumerGroupMetadata",
    "ConsumerGroupMemberMetadata",
    "ConsumerGroupTargetAssignmentMetadata",
    "ConsumerGroupCurrentMemberAssignment",
    "ShareGroupMetadata",
    "ShareGroupMemberMetadata",
    "ShareGroupCurrentMemberAssignment",
    "ShareGroupStatePartitionMetadata",
    "StreamsGroupMetadata",
    "StreamsGroupMemberMetadata",
    "StreamsGroupTargetAssignmentMetadata",
    "StreamsGroupCurrentMemberAssignment",
    "StreamsGroupTopology",
)
"""Records whose values describe the group."""

PARTS: Final = (
    "ConsumerGroupPartitionMetadata",
    "ConsumerGroupTargetAssignmentMember",
    "ConsumerGroupRegularExpression",
    "ShareGroupTargetAssignmentMetadata",
    "ShareGroupTargetAssignmentMember",
    "StreamsGroupTargetAssignmentMember",
)
"""Records that show that the group exists: a coordinator creates the group at the first of them. Their values do not
matter here."""
