"""What a group coordinator makes of the records of groups, kind by kind.

The rules are those of `GroupMetadataManager.replay` and of each kind's own class (`ClassicGroup`, `ConsumerGroup`,
`ShareGroup`, `StreamsGroup`), as Kafka 4.3.1 has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafka_records.enums import MemberState, StreamsMemberState
from kafka_records_tables.tables.decoded.fold import SIZE, Event, Picked

CLASSIC: Final = "classic"
SIMPLE: Final = "simple"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"

GROUP: Final = "group"
"""The record that makes the group a group of its kind, and whose tombstone ends it."""
TARGET: Final = "target"
"""The epoch of the assignment that members are to reach."""
MEMBER: Final = "member"
"""A member is there."""
CURRENT: Final = "current"
"""The epoch and state that a member has reached."""
TARGET_OF_MEMBER: Final = "target of member"
"""What a member is to reach."""
REGEX: Final = "regex"
"""The topics that a regular expression stands for."""
TOPOLOGY: Final = "topology"
TOPICS: Final = "topics"
"""The topics that a group of an older broker knows."""
SHARE_TARGET: Final = "share target"
"""The epoch of the target assignment of a share group, on which its state does not depend."""
SHARE_STATE: Final = "share_state"
"""Share offsets that an administrator set for a group that may never have had a member: no group record then."""


class _Role(NamedTuple):
    kind: str
    role: str
    picked: tuple[str, ...] = ()


_ROLES: Final = {
    "GroupMetadata": _Role(CLASSIC, GROUP, ("generation", "protocol_type", "protocol", f"members{SIZE}")),
    "ConsumerGroupMetadata": _Role(CONSUMER, GROUP, ("epoch",)),
    "ConsumerGroupMemberMetadata": _Role(CONSUMER, MEMBER),
    "ConsumerGroupTargetAssignmentMetadata": _Role(CONSUMER, TARGET, ("assignment_epoch",)),
    "ConsumerGroupCurrentMemberAssignment": _Role(CONSUMER, CURRENT, ("member_epoch", "state")),
    "ShareGroupMetadata": _Role(SHARE, GROUP, ("epoch",)),
    "ShareGroupMemberMetadata": _Role(SHARE, MEMBER),
    "ShareGroupCurrentMemberAssignment": _Role(SHARE, CURRENT, ("member_epoch", "state")),
    "ShareGroupStatePartitionMetadata": _Role(SHARE, SHARE_STATE),
    "StreamsGroupMetadata": _Role(STREAMS, GROUP, ("epoch", "validated_topology_epoch")),
    "StreamsGroupMemberMetadata": _Role(STREAMS, MEMBER),
    "StreamsGroupTargetAssignmentMetadata": _Role(STREAMS, TARGET, ("assignment_epoch",)),
    "StreamsGroupCurrentMemberAssignment": _Role(STREAMS, CURRENT, ("member_epoch", "state")),
    "StreamsGroupTopology": _Role(STREAMS, TOPOLOGY, ("epoch",)),
    "ConsumerGroupPartitionMetadata": _Role(CONSUMER, TOPICS),
    "ConsumerGroupTargetAssignmentMember": _Role(CONSUMER, TARGET_OF_MEMBER),
    "ConsumerGroupRegularExpression": _Role(CONSUMER, REGEX),
    "ShareGroupTargetAssignmentMetadata": _Role(SHARE, SHARE_TARGET),
    "ShareGroupTargetAssignmentMember": _Role(SHARE, TARGET_OF_MEMBER),
    "StreamsGroupTargetAssignmentMember": _Role(STREAMS, TARGET_OF_MEMBER),
}

PICKED: Final[Picked] = {name: role.picked for name, role in _ROLES.items()}
"""What the replay wants of each record. A table may want more, behind it (`picked_with`)."""

ROLES: Final[Mapping[str, str]] = {name: role.role for name, role in _ROLES.items()}
"""By record, what it says of its group: one of the words above."""

STABLE: Final = {CONSUMER: MemberState.STABLE, STREAMS: StreamsMemberState.STABLE}
"""By kind, the state of a member that has what it is to have in its epoch."""

_FIRST_EPOCH: Final = 1
"""The epoch of a group, and of its target assignment, before any record names one."""

LEFT: Final = -1
"""The epoch of a member whose current assignment was deleted."""

GroupRow = tuple[str, str, str | None, int | None, str | None, str | None, int | None, int]
"""Group id, kind, state, epoch, protocol type, protocol, members, and the place of the record that makes the group."""


def role_of(record: str) -> tuple[str, str]:
    """The kind of the group that a record is about, and what the record is in it."""
    role = _ROLES[record]
    return role.kind, role.role


def picked_with(more: Picked) -> Picked:
    """What the replay wants of each record, and behind it what a table wants `more`."""
    return {name: (*own, *more.get(name, ())) for name, own in PICKED.items()}


@dataclass(slots=True)
class Group:
    """A group after some records."""

    kind: str
    made_at: int
    """Offset of the record that makes the group."""
    has_record: bool = False
    epoch: int | None = None
    target_epoch: int = _FIRST_EPOCH
    topology_epoch: int | None = None
    validated_topology: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    classic_members: int | None = 0
    members: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Epoch and state by member id; only `set_member` and `drop_member` change it."""
    reached: Counter[tuple[int, int]] = field(default_factory=Counter)
    """How many members have an epoch and a state, so that the state of a large group costs no look at each."""
    broken: set[tuple[str, str]] = field(default_factory=set)
    """Role and member id of the records whose last value cannot be decoded."""
    last: dict[tuple[str, str], Event] = field(default_factory=dict)
    """By role and the last field of the key, the records in force of those roles that the replay keeps."""

    @property
    def is_simple(self) -> bool:
        """Whether this is a classic group without a protocol type."""
        return self.kind == CLASSIC and self.protocol_type == ""

    @property
    def shown_kind(self) -> str:
        """The kind as tables show it: `simple` for some classic groups."""
        return SIMPLE if self.is_simple else self.kind

    @property
    def member_count(self) -> int | None:
        """How many members it has; None where the record of a classic group cannot be decoded."""
        return self.classic_members if self.kind == CLASSIC else len(self.members)

    @property
    def state(self) -> str | None:
        """Its state as the coordinator spells it; None where a record cannot be decoded."""
        if self.broken:
            return None
        if not self.member_count:
            return "Empty"
        if self.kind in (CLASSIC, SHARE):
            return "Stable"
        if self.kind == STREAMS and self.topology_epoch != self.validated_topology:
            return "NotReady"
        epoch = _FIRST_EPOCH if self.epoch is None else self.epoch
        if epoch > self.target_epoch:
            return "Assigning"
        are_there = self.reached[self.target_epoch, int(STABLE[self.kind])] == len(self.members)
        return "Stable" if are_there else "Reconciling"

    def set_member(self, member_id: str, epoch: int, state: int) -> None:
        """Note the epoch and the state of a member."""
        self.drop_member(member_id)
        self.members[member_id] = epoch, state
        self.reached[epoch, state] += 1

    def drop_member(self, member_id: str) -> None:
        """Forget a member, if there is one of that id."""
        at = self.members.pop(member_id, None)
        if at is not None:
            self.reached[at] -= 1
            if not self.reached[at]:
                del self.reached[at]


class Replay:
    """The groups after some records, taken in their order."""

    def __init__(self, kept: Collection[str] = ()) -> None:
        """`kept` are the roles of the records that the groups keep (`Group.last`)."""
        self._kept = frozenset(kept)
        self._groups: dict[str, Group] = {}
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
        if role.role in self._kept:
            group.last[role.role, event.key[-1]] = event
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
            self._groups[group_id] = Group(CLASSIC, offset, protocol_type="")

    @property
    def groups(self) -> Mapping[str, Group]:
        """The groups that exist, by their ids."""
        return self._groups

    def rows(self) -> list[GroupRow]:
        """The groups that exist, without their partition in the log."""
        return [_row(group_id, group) for group_id, group in self._groups.items()]

    def forget_ends(self) -> None:
        """Give up where groups ended: every record from here on stands behind those that were replayed."""
        self._ended.clear()

    def ended_at(self, group_id: str) -> int:
        """The offset of the last tombstone that ended a group of that name; -1 where none was seen."""
        return self._ended.get(group_id, -1)

    def _tombstone(self, role: _Role, group_id: str, event: Event) -> None:
        group = self._groups.get(group_id)
        if role.role == GROUP:
            self._ended[group_id] = max(event.offset, self._ended.get(group_id, -1))
            # The tombstone of a classic group ends any kind, those of the others end a simple group beside their own.
            if group is not None and (role.kind in (CLASSIC, group.kind) or group.is_simple):
                del self._groups[group_id]
            return
        if group is None or group.kind != role.kind:
            return
        group.broken.discard((role.role, event.key[-1]))
        group.last.pop((role.role, event.key[-1]), None)
        if role.role == MEMBER:
            group.drop_member(event.key[1])
        elif role.role == CURRENT and event.key[1] in group.members:
            group.set_member(event.key[1], LEFT, group.members[event.key[1]][1])
        elif role.role == TARGET:
            group.target_epoch = -1
        elif role.role == TOPOLOGY:
            group.topology_epoch = None

    def _classic(self, group_id: str, event: Event) -> None:
        group = self._groups[group_id] = Group(CLASSIC, event.offset, has_record=True)
        if GROUP in self._kept:
            group.last[GROUP, group_id] = event
        if event.value is None:
            group.broken.add((GROUP, group_id))
            group.classic_members = None
            return
        group.epoch, protocol_type, group.protocol, group.classic_members = event.value[:4]
        group.protocol_type = protocol_type or ""

    def _made(self, kind: str, group_id: str, offset: int) -> Group:
        """The group of this kind. It is made if there is no group of that name, or one of another kind. A simple group
        gives way to it; any other group had a tombstone before this record, which a cleaner has taken (otherwise no
        coordinator could load this log)."""
        group = self._groups.get(group_id)
        if group is None or group.kind != kind:
            group = self._groups[group_id] = Group(kind, offset, protocol_type=kind)
        return group

    def _noted(self, group: Group, role: str, event: Event) -> None:
        if role == GROUP:
            group.made_at, group.has_record = event.offset, True
        elif role in (MEMBER, CURRENT) and event.key[1] not in group.members:
            group.set_member(event.key[1], 0, int(STABLE.get(group.kind, 0)))
        if not group.has_record:
            group.made_at = max(group.made_at, event.offset)

    def _value(self, group: Group, role: str, event: Event) -> None:
        value = event.value or ()
        if role == GROUP:
            group.epoch = value[0]
            if group.kind == STREAMS:
                group.validated_topology = value[1]
        elif role == TARGET:
            group.target_epoch = value[0]
        elif role == TOPOLOGY:
            group.topology_epoch = value[0]
        elif role == CURRENT:
            group.set_member(event.key[1], value[0], value[1])


def _row(group_id: str, group: Group) -> GroupRow:
    told = (group.epoch, group.protocol_type, group.protocol or None) if group.kind == CLASSIC else None
    epoch, protocol_type, protocol = told or (group.epoch, group.kind, None)
    place = group.member_count, group.made_at
    return group_id, group.shown_kind, group.state, epoch, protocol_type, protocol, *place
