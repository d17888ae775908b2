"""Decides whether a broker deletes offsets and groups on request, by the rules of Kafka 4.3 for OffsetDelete and
DeleteGroups:

`GroupCoordinatorService.deleteOffsets`, `OffsetMetadataManager.deleteOffsets`, and `validateOffsetDelete`,
`validateDeleteGroup` and `isSubscribedToTopic` of each kind's class (`ClassicGroup`, `ConsumerGroup`, `ShareGroup`,
`StreamsGroup`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_records_tables.coordinator.groups.group_model import SHARE, SIMPLE
from kafka_records_tables.coordinator.groups.subscriptions import HeldGroup, are_offsets_kept

NOT_SUBSCRIBED: Final = "not_subscribed"
NO_MEMBERS: Final = "no_members"
SIMPLE_GROUP: Final = "simple_group"
SUBSCRIBED: Final = "subscribed"
UNREADABLE_SUBSCRIPTION: Final = "unreadable_subscription"
MEMBERS: Final = "members"
SHARE_GROUP: Final = "share_group"
NO_GROUP: Final = "no_group"
NO_NAME: Final = "no_name"
UNREADABLE: Final = "unreadable"


class DeleteAnswer(NamedTuple):
    """The answer of a broker to a request to delete an offset or a group."""

    is_deletable: bool | None
    error: str | None = None
    """The name of Kafka's error; None if the broker performs the deletion or if this is unknown."""


DELETE_ANSWERS: Final = {
    NOT_SUBSCRIBED: DeleteAnswer(True),
    NO_MEMBERS: DeleteAnswer(True),
    SIMPLE_GROUP: DeleteAnswer(True),
    SUBSCRIBED: DeleteAnswer(False, "GROUP_SUBSCRIBED_TO_TOPIC"),
    UNREADABLE_SUBSCRIPTION: DeleteAnswer(False, "GROUP_SUBSCRIBED_TO_TOPIC"),
    MEMBERS: DeleteAnswer(False, "NON_EMPTY_GROUP"),
    SHARE_GROUP: DeleteAnswer(False, "GROUP_ID_NOT_FOUND"),
    NO_GROUP: DeleteAnswer(False, "GROUP_ID_NOT_FOUND"),
    NO_NAME: DeleteAnswer(False, "INVALID_GROUP_ID"),
    UNREADABLE: DeleteAnswer(None),
}
"""The answer of the broker for each reason."""


def offset_reason(group_id: str, group: HeldGroup | None) -> str:
    """Why a broker deletes or keeps offsets of topics that a group does not subscribe to. (For topics in
    `HeldGroup.topics`, the reason is SUBSCRIBED.) `group` is None if it no longer exists."""
    if not group_id:
        return NO_NAME
    if group is None:
        return NO_GROUP
    if group.kind == SHARE:
        return SHARE_GROUP
    if group.state is None:
        return UNREADABLE
    if group.is_empty:
        return SIMPLE_GROUP if group.kind == SIMPLE else NO_MEMBERS
    if are_offsets_kept(group.kind, group.protocol_type):
        return MEMBERS
    return UNREADABLE_SUBSCRIPTION if group.topics is None else NOT_SUBSCRIBED


def group_reason(group: HeldGroup) -> str:
    """Why a broker would or would not delete a whole group, of any kind."""
    if group.state is None:
        return UNREADABLE
    if not group.is_empty:
        return MEMBERS
    return SIMPLE_GROUP if group.kind == SIMPLE else NO_MEMBERS
