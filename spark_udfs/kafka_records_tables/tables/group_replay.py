"""What a group coordinator makes of the records of groups, kind by kind.

The rules are those of `GroupMetadataManager.replay` and of each kind's own class (`ClassicGroup`, `ConsumerGroup`,
`ShareGroup`, `StreamsGroup`), as Kafka 4.3.1 has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafka_records.enums import MemberState, StreamsMemberState
from kafka_records_tables.tables.fold import SIZE, Event, Picked

CLASSIC: Final = "classic"
SIMPLE: Final = "simple"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"

_GROUP: Final = "group"
"""The record that makes the group a group of its kind, and whose tombstone ends it."""
_TARGET: Final = "target"
"""The epoch of the assignment that members are to reach."""
_MEMBER: Final = "member"
"""A member is there."""
_CURRENT: Final = "current"
"""The epoch and state that a member has reached."""
_TOPOLOGY: Final = "topology"
_PART: Final = "part"
"""Something else of a group: with the first of it a coordinator makes the group."""
_SHARE_STATE: Final = "share_state"
"""Share offsets that an administrator set for a group that may never have had a member: no group record then."""


class _Role(NamedTuple):
    kind: str
    role: str
    picked: tuple[str, ...] = ()


_ROLES: Final = {
    "GroupMetadata": _Role(CLASSIC, _GROUP, ("generation", "protocol_type", "protocol", f"members{SIZE}")),
    "ConsumerGroupMetadata": _Role(CONSUMER, _GROUP, ("epoch",)),
    "ConsumerGroupMemberMetadata": _Role(CONSUMER, _MEMBER),
    "ConsumerGroupTargetAssignmentMetadata": _Role(CONSUMER, _TARGET, ("assignment_epoch",)),
    "ConsumerGroupCurrentMemberAssignment": _Role(CONSUMER, _CURRENT, ("member_epoch", "state")),
    "ShareGroupMetadata": _Role(SHARE, _GROUP, ("epoch",)),
    "ShareGroupMemberMetadata": _Role(SHARE, _MEMBER),
    "ShareGroupCurrentMemberAssignment": _Role(SHARE, _CURRENT, ("member_epoch", "state")),
    "ShareGroupStatePartitionMetadata": _Role(SHARE, _SHARE_STATE),
    "StreamsGroupMetadata": _Role(STREAMS, _GROUP, ("epoch", "validated_topology_epoch")),
    "StreamsGroupMemberMetadata": _Role(STREAMS, _MEMBER),
    "StreamsGroupTargetAssignmentMetadata": _Role(STREAMS, _TARGET, ("assignment_epoch",)),
    "StreamsGroupCurrentMemberAssignment": _Role(STREAMS, _CURRENT, ("member_epoch", "state")),
    "StreamsGroupTopology": _Role(STREAMS, _TOPOLOGY, ("epoch",)),
    "ConsumerGroupPartitionMetadata": _Role(CONSUMER, _PART),
    "ConsumerGroupTargetAssignmentMember": _Role(CONSUMER, _PART),
    "ConsumerGroupRegularExpression": _Role(CONSUMER, _PART),
    "ShareGroupTargetAssignmentMetadata": _Role(SHARE, _PART),
    "ShareGroupTargetAssignmentMember": _Role(SHARE, _PART),
    "StreamsGroupTargetAssignmentMember": _Role(STREAMS, _PART),
}

PICKED: Final[Picked] = {name: role.picked for name, role in _ROLES.items()}
"""What the replay wants of each record."""

_STABLE: Final = {CONSUMER: MemberState.STABLE, STREAMS: StreamsMemberState.STABLE}

_FIRST_EPOCH: Final = 1
"""The epoch of a group, and of its target assignment, before any record names one."""

_LEFT: Final = -1
"""The epoch of a member whose current assignment was deleted."""

GroupRow = tuple[str, str, str | None, int | None, str | None, str | None, int | None, int]
"""Group id, kind, state, epoch, protocol type, protocol, members, and the place of the record that makes the group."""


@dataclass(slots=True)
class _Group:
    kind: str
    made_at: int
    has_record: bool = False
    epoch: int | None = None
    target_epoch: int = _FIRST_EPOCH
    topology_epoch: int | None = None
    validated_topology: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    classic_members: int | None = 0
    members: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Epoch and state by member id."""
    broken: set[tuple[str, str]] = field(default_factory=set)
    """Role and member id of the records whose last value cannot be decoded."""

    @property
    def is_simple(self) -> bool:
        return self.kind == CLASSIC and self.protocol_type == ""


class Replay:
    """The groups after some records, taken in their order."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._ended: dict[str, int] = {}

    def take(self, event: Event) -> None:
        """Replay one record."""
        role = _ROLES[event.record]
        group_id = event.key[0]
        if event.value is None and not event.is_broken and not event.is_past:
            self._tombstone(role, group_id, event)
            return
        if role.kind == CLASSIC:
            if not event.is_past:
                self._classic(group_id, event)
            return
        group = self._made(role.kind, group_id, event.offset)
        if event.is_past:
            return
        if event.is_broken:
            group.broken.add((role.role, event.key[-1]))
            self._noted(group, role.role, event)
            return
        group.broken.discard((role.role, event.key[-1]))
        self._noted(group, role.role, event)
        self._value(group, role.role, event)

    def commit(self, group_id: str, offset: int) -> None:
        """The last commit value of a group, whatever became of it."""
        if group_id not in self._groups and offset > self._ended.get(group_id, -1):
            self._groups[group_id] = _Group(CLASSIC, offset, protocol_type="")

    def rows(self) -> list[GroupRow]:
        """The groups that exist, without their partition in the log."""
        return [_row(group_id, group) for group_id, group in self._groups.items()]

    def _tombstone(self, role: _Role, group_id: str, event: Event) -> None:
        group = self._groups.get(group_id)
        if role.role == _GROUP:
            self._ended[group_id] = max(event.offset, self._ended.get(group_id, -1))
            # The tombstone of a classic group ends any kind, those of the others end a simple group beside their own.
            if group is not None and (role.kind in (CLASSIC, group.kind) or group.is_simple):
                del self._groups[group_id]
            return
        if group is None or group.kind != role.kind:
            return
        group.broken.discard((role.role, event.key[-1]))
        if role.role == _MEMBER:
            group.members.pop(event.key[1], None)
        elif role.role == _CURRENT and event.key[1] in group.members:
            group.members[event.key[1]] = (_LEFT, group.members[event.key[1]][1])
        elif role.role == _TARGET:
            group.target_epoch = -1
        elif role.role == _TOPOLOGY:
            group.topology_epoch = None

    def _classic(self, group_id: str, event: Event) -> None:
        group = self._groups[group_id] = _Group(CLASSIC, event.offset, has_record=True)
        if event.value is None:
            group.broken.add((_GROUP, group_id))
            group.classic_members = None
            return
        group.epoch, protocol_type, group.protocol, group.classic_members = event.value
        group.protocol_type = protocol_type or ""

    def _made(self, kind: str, group_id: str, offset: int) -> _Group:
        """The group of this kind. It is made if there is no group of that name, or one of another kind. A simple group
        gives way to it; any other group had a tombstone before this record, which a cleaner has taken (otherwise no
        coordinator could load this log)."""
        group = self._groups.get(group_id)
        if group is None or group.kind != kind:
            group = self._groups[group_id] = _Group(kind, offset, protocol_type=kind)
        return group

    def _noted(self, group: _Group, role: str, event: Event) -> None:
        if role == _GROUP:
            group.made_at, group.has_record = event.offset, True
        elif role in (_MEMBER, _CURRENT):
            group.members.setdefault(event.key[1], (0, int(_STABLE.get(group.kind, 0))))
        if not group.has_record:
            group.made_at = max(group.made_at, event.offset)

    def _value(self, group: _Group, role: str, event: Event) -> None:
        value = event.value or ()
        if role == _GROUP:
            group.epoch = value[0]
            if group.kind == STREAMS:
                group.validated_topology = value[1]
        elif role == _TARGET:
            (group.target_epoch,) = value
        elif role == _TOPOLOGY:
            (group.topology_epoch,) = value
        elif role == _CURRENT:
            group.members[event.key[1]] = (value[0], value[1])


def _row(group_id: str, group: _Group) -> GroupRow:
    if group.kind != CLASSIC:
        count: int | None = len(group.members)
        return group_id, group.kind, _state(group), group.epoch, group.kind, None, count, group.made_at
    kind = SIMPLE if group.is_simple else CLASSIC
    protocol = group.protocol or None
    place = (group.epoch, group.protocol_type, protocol, group.classic_members, group.made_at)
    return group_id, kind, _state(group), *place


def _state(group: _Group) -> str | None:
    if group.broken:
        return None
    if group.kind == CLASSIC:
        return "Stable" if group.classic_members else "Empty"
    if not group.members:
        return "Empty"
    if group.kind == SHARE:
        return "Stable"
    if group.kind == STREAMS and group.topology_epoch != group.validated_topology:
        return "NotReady"
    if (group.epoch or _FIRST_EPOCH) > group.target_epoch:
        return "Assigning"
    reached = (group.target_epoch, int(_STABLE[group.kind]))
    return "Stable" if all(member == reached for member in group.members.values()) else "Reconciling"
