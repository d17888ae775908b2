"""The records that groups are made of, by name. Loads nothing, so that declarations can name them."""

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
"""Records of which nothing matters but that there was one: a coordinator makes the group with the first of any."""
