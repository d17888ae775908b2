"""What a group's state shows about a write that removed the group or its offsets: values for columns of
`swept_columns.Swept`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_records_tables.coordinator.groups.group_model import CLASSIC, CONSUMER, SHARE, STREAMS
from kafka_records_tables.coordinator.groups.subscriptions import are_offsets_kept
from kafka_records_tables.coordinator.offsets.live_offsets import FARTHEST_MS

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.groups.groups_before import GroupBefore, GroupsBefore
    from kafka_records_tables.coordinator.records.named_records import Event
    from kafka_records_tables.tables.tombstones.deleted_topics import OfTopics

NOTHING: Final = -1
"""Used instead of a log offset: there is no evidence, or no single record shows it."""

SHOWN: Final = (
    "open_transaction",
    "members",
    "subscribed",
    "not_due",
    "due",
    "group_ends",
    "several_groups",
    "stays",
    "stays_in_topic",
    "topic_deleted",
    "topic_there",
)
"""The words for evidence. Columns contain indexes in this tuple."""

Reason = tuple[int, int]
"""A word for evidence, by index, and a log offset."""

NONE: Final[Reason] = (NOTHING, NOTHING)
MEMBERS: Final = SHOWN.index("members")


class Held(NamedTuple):
    """What a group's members show: columns of `Swept`."""

    never: Reason
    not_yet: Reason
    refused: Reason


NOT_HELD: Final = Held(NONE, NONE, NONE)


def held(known: GroupBefore, offsets: Sequence[Event]) -> Held:
    """What a group's members show about removed offsets."""
    state = known.state
    if state.kind == SHARE or (state.member_count and are_offsets_kept(state.kind, known.protocol_type)):
        shown = MEMBERS, known.told_at
        return Held(shown, NONE, shown)
    if state.topics is not None and not any(event.key[1] in state.topics for event in offsets):
        return NOT_HELD
    shown = SHOWN.index("subscribed"), known.told_at
    if state.kind in (CONSUMER, STREAMS):
        return Held(shown, NONE, shown)
    # A static member that returns with other topics is recorded at once, but the topics take effect only with the next
    # generation (`ClassicGroup.computeSubscribedTopics`), so the coordinator may refuse.
    return Held(NONE, shown, NONE)


def waiting(pending: Mapping[Any, int], offsets: Sequence[Event]) -> Reason | None:
    """Why a clean-up did not remove these offsets, if some of them are pending.

    In 4.0, a clean-up looks for transactions only where offsets are committed. DeleteGroups of 4.0 and later also
    deletes pending offsets (`OffsetMetadataManager.cleanupExpiredOffsets`, `deleteAllOffsets`)."""
    for event in offsets:
        if event.key[1:] in pending:
            return SHOWN.index("open_transaction"), pending[event.key[1:]]
    return None


def known_group(groups: GroupsBefore, group_id: str, *, is_log_whole: bool) -> GroupBefore | None:
    """The group; None if there is none, or if its records may be missing or undecodable. If only commits show a group,
    a cleaner may have removed its own records."""
    group = groups.get(group_id)
    if group is None or group.state.state is None:
        return None
    return group if group.has_record or is_log_whole else None


UNKNOWN: Final[tuple[int, ...]] = (0,) * 8


def facts_of(known: GroupBefore) -> tuple[int, ...]:
    """The columns of `Swept` from `is_known` to `are_topics_known`. For a classic group without members, retention
    counts from its last change."""
    state = known.state
    of_members = state.is_empty, state.topics is not None
    told_ms = min(max(known.told_ms or 0, -FARTHEST_MS), FARTHEST_MS)
    if state.kind != CLASSIC:
        return 1, told_ms, 0, 0, 1, 1, *of_members
    if not state.is_empty:
        return 1, told_ms, 0, 0, 1, 0, *of_members
    # Records of older versions lack this time, although the coordinator that wrote them knew it.
    since_ms = known.since_ms
    since = told_ms if since_ms is None else min(max(since_ms, -FARTHEST_MS), FARTHEST_MS)
    has_base = since_ms is not None
    return 1, told_ms, 1, since, has_base, has_base, *of_members


NO_TOPICS: Final[tuple[int, ...]] = (0,) * 5


def flags_of(found: OfTopics) -> tuple[int, ...]:
    """The columns of `Swept` from `has_topics` to `have_stayed`."""
    return (True, *(each is not None for each in found))
