"""The groups of a log partition right before some position, built from the events before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kafka_records_tables.coordinator.groups.group_model import OF_MEMBERS, ROLES

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.groups.group_model import Member
    from kafka_records_tables.coordinator.groups.group_states import GroupState, Transition

_CLASSIC_RECORD: Final = "GroupMetadata"
_NO_TIMESTAMP: Final = -1


@dataclass(slots=True)
class GroupBefore:
    """A group as it was right before a position in the log."""

    state: GroupState
    told_ms: int | None
    told_at: int
    """Time and position of the last record about the group."""
    protocol_type: str | None = None
    """The protocol type of a classic group; None if its record cannot be decoded, and for other kinds."""
    has_record: bool = True
    """Whether the group has its own record; False if only commits show that it exists."""
    since_ms: int | None = None
    """When a classic group entered its present state; None for other kinds, and for values older than version 2, which
    lack this time. `current_state_timestamp` must be among the picked fields."""
    members: dict[str, Member] = field(default_factory=dict)
    """The members by member id. Empty for a classic group: its record contains its members."""


class GroupsBefore:
    """Tracks groups through their events, from one position to the next. Memory grows with the number of groups and of
    events not yet applied."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupBefore] = {}
        self._waiting: deque[Transition] = deque()

    def add(self, transitions: Iterable[Transition]) -> None:
        """Add the events of `GroupLog`, in their order."""
        self._waiting += transitions

    def up_to(self, offset: int) -> None:
        """Apply the events of records below `offset`."""
        waiting = self._waiting
        while waiting and waiting[0].event.offset < offset:
            self._follow(waiting.popleft())

    def get(self, group_id: str) -> GroupBefore | None:
        """The group with this id, if it exists."""
        return self._groups.get(group_id)

    def _follow(self, transition: Transition) -> None:
        event, after = transition.event, transition.after
        group_id, record = event.group_id, event.record
        if after is None:
            self._groups.pop(group_id, None)
            return
        group = self._groups.get(group_id)
        if group is None or transition.replaced is not None:
            group = self._groups[group_id] = GroupBefore(after, event.timestamp_ms, event.offset)
        else:
            group.state, group.told_ms, group.told_at = after, event.timestamp_ms, event.offset
        if record == _CLASSIC_RECORD:
            if event.value is not None:
                group.protocol_type = event.value.protocol_type or ""
                since = event.value.current_state_timestamp
                group.since_ms = None if since == _NO_TIMESTAMP else since
        elif record not in ROLES:
            group.has_record = False
        elif ROLES[record] in OF_MEMBERS:
            if transition.member_after is None:
                group.members.pop(event.member_id, None)
            else:
                group.members[event.member_id] = transition.member_after
