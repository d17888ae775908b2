"""The records that make groups, by name. Imports nothing heavy, so that declarations can name them."""

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
"""Records whose values say what a group is."""

PARTS: Final = (
    "ConsumerGroupPartitionMetadata",
    "ConsumerGroupTargetAssignmentMember",
    "ConsumerGroupRegularExpression",
    "ShareGroupTargetAssignmentMetadata",
    "ShareGroupTargetAssignmentMember",
    "StreamsGroupTargetAssignmentMember",
)
"""Records of which only the existence matters: a coordinator creates the group with the first of any of them."""
