"""What early access releases wrote: other bytes under a version number still in use, and types that are gone.

Kafka gives no promise for early access features, and kept the version number when it changed them. A record that such a
release left in a topic fails to decode today, or decodes to nonsense; an error can at least say so. The facts come from
the specs inside the released jars.
"""

from __future__ import annotations

from typing import Final

_CONSUMER: Final = "3.5 to 3.7"
_SHARE: Final = "3.9 and 4.0"

EARLY_LAYOUTS: Final = {
    "ConsumerGroupPartitionMetadataValue": _CONSUMER,
    "ConsumerGroupMemberMetadataValue": _CONSUMER,
    "ConsumerGroupTargetAssignmentMemberValue": _CONSUMER,
    "ConsumerGroupCurrentMemberAssignmentValue": _CONSUMER,
    "ShareGroupMetadataValue": _SHARE,
    "ShareGroupStatePartitionMetadataValue": "4.0",
    "ShareSnapshotValue": "4.0",
    "ShareUpdateValue": "4.0",
}
"""Message → the releases that wrote version 0 of it in another layout (KIP-848 and KIP-932 before they were final)."""

RETIRED_TYPES: Final = {
    "consumer_offsets": {9: "ShareGroupPartitionMetadata", 18: "StreamsGroupPartitionMetadata"},
}
"""Topic, without its leading underscores → record types that only early access releases wrote (9: 3.9 and 4.0, KIP-932)
or that never left development (18), by name. They stay unknown: their bytes changed from release to release."""


def early_layout_note(message_name: str) -> str:
    """What an error about `message_name` adds to say that an early access release may have written the bytes."""
    releases = EARLY_LAYOUTS.get(message_name)
    if releases is None:
        return ""
    return f"; Kafka {releases} wrote this version in another, early access layout"
