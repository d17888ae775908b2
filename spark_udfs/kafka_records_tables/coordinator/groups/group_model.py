"""The state that a group coordinator builds from the records of groups, by kind of group.

The rules are those of `GroupMetadataManager.replay` and of each kind's own class (`ClassicGroup`, `ConsumerGroup`,
`ShareGroup`, `StreamsGroup`) in Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafka_records.enums import MemberState, StreamsMemberState
from kafka_records_tables.coordinator.records.named_records import SIZE, Event, Picked

CLASSIC: Final = "classic"
SIMPLE: Final = "simple"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"

GROUP: Final = "group"
"""Role: the record that creates the group as a group of its kind. The tombstone of this record ends the group."""
TARGET: Final = "target"
"""Role: the record with the epoch of the target assignment, which members have to reach."""
MEMBER: Final = "member"
"""Role: the record that shows that a member exists."""
CURRENT: Final = "current"
"""Role: the record with the epoch and the state of a member."""
TARGET_OF_MEMBER: Final = "target of member"
"""Role: the record with the target assignment of a member."""
REGEX: Final = "regex"
"""Role: the record with the topics that match a regular expression of the group."""
TOPOLOGY: Final = "topology"
TOPICS: Final = "topics"
"""Role: the record with the topics of a group, which only older brokers wrote."""
SHARE_TARGET: Final = "share target"
"""Role: the record with the epoch of a share group's target assignment. The state of a share group does not depend on
it."""
SHARE_STATE: Final = "share_state"
"""Role: the record with share offsets that an administrator set. If the group never had a member, it has no group
record."""


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
"""The fields of each record that the replay needs. A table may request more (`picked_with`)."""

_TOPICS_IN: Final = {(CONSUMER, MEMBER): "subscribed_topic_names", (CONSUMER, REGEX): "topics"}
"""By kind and role, the field of a value that names topics to which the group subscribes."""

OF_MEMBERS: Final = (MEMBER, CURRENT, TARGET_OF_MEMBER)
"""The roles of records about one member."""

ROLES: Final[Mapping[str, str]] = {name: role.role for name, role in _ROLES.items()}
"""The role of each record in its group: one of the words above."""

STABLE: Final = {CONSUMER: MemberState.STABLE, STREAMS: StreamsMemberState.STABLE}
"""For each kind of group, the state of a member that has reached its target assignment."""

_FIRST_EPOCH: Final = 1
"""The epoch of a group, and of its target assignment, until a record sets it."""

NO_TARGET: Final = -1
"""The epoch of a target assignment that was deleted."""

_NO_TIMESTAMP: Final = -1

LEFT: Final = -1
"""The epoch of a member whose current assignment was deleted."""

GroupRow = tuple[str, str, str | None, int | None, str | None, str | None, int | None, int]
"""Group id, kind, state, epoch, protocol type, protocol, members, and the position of the record that creates the
group."""


def role_of(record: str) -> tuple[str, str]:
    """The kind of group that a record belongs to, and the role of the record in it."""
    role = _ROLES[record]
    return role.kind, role.role


def picked_with(*more: Picked) -> Picked:
    """The fields of each record that the replay needs, and those in `more`."""
    return {
        name: tuple(dict.fromkeys((*own, *(member for each in more for member in each.get(name, ())))))
        for name, own in PICKED.items()
    }


class Member(NamedTuple):
    """A member of a consumer, share or streams group, after the records that were replayed so far."""

    epoch: int = 0
    state: int = 0
    made_at: int = -1
    """Offset of the member's first record that could be decoded; -1 if there is no such record."""
    metadata: Event | None = None
    current: Event | None = None
    """The last decoded record of each of the two roles MEMBER and CURRENT."""
    target: Event | None = None
    """The last record of the member's target assignment, which may be a tombstone; None if there is none so far."""

    @property
    def is_known(self) -> bool:
        """Whether any record about this member could be decoded."""
        return self.made_at >= 0


@dataclass(slots=True)
class Group:
    """A group, after the records that were replayed so far."""

    group_id: str
    kind: str
    made_at: int
    """Offset of the record that creates the group."""
    has_record: bool = False
    """Whether the group's own record has been read. Not used for classic groups."""
    epoch: int | None = None
    target_epoch: int = _FIRST_EPOCH
    topology_epoch: int | None = None
    validated_topology: int = 0
    """The epoch of the validated topology. It starts with the same value as in `StreamsGroup`; the group's record sets
    it to -1 if no topology is valid."""
    protocol_type: str | None = None
    protocol: str | None = None
    classic_members: int | None = 0
    members: dict[str, Member] = field(default_factory=dict)
    """The members by id, which only `set_member` and `drop_member` change. Empty for a classic group: its record
    contains its members."""
    reached: dict[tuple[int, int], int] = field(default_factory=dict)
    """The number of members that have an epoch and a state. It is stored because counting the members of a large group
    each time would be slow."""
    broken: set[tuple[str, str]] = field(default_factory=set)
    """The role and member id of each key with an undecodable latest value."""
    records: dict[tuple[str, str], Event] = field(default_factory=dict)
    """The latest records, by role and by the last field of the key. Only `set_record` and `drop_record` change them."""
    named: dict[str, int] = field(default_factory=dict)
    """By topic, how many members and regular expressions of a consumer group name it, if these fields are read. It is
    stored because asking all members of a large group each time would be slow."""
    told_ms: int | None = None
    told_at: int = -1
    """Time and position of the last record about the group."""

    @property
    def is_simple(self) -> bool:
        """Whether this is a classic group without a protocol type."""
        return self.kind == CLASSIC and self.protocol_type == ""

    def makes_way_for(self, kind: str) -> bool:
        """Whether this is a simple group, which a coordinator replaces when it loads a record of a group of another
        kind."""
        return self.is_simple and not self.classic_members and kind in (CONSUMER, STREAMS)

    @property
    def shown_kind(self) -> str:
        """The kind shown in tables: `simple` for some classic groups."""
        return SIMPLE if self.is_simple else self.kind

    @property
    def member_count(self) -> int | None:
        """The number of members; None if the record of a classic group cannot be decoded."""
        return self.classic_members if self.kind == CLASSIC else len(self.members)

    @property
    def state(self) -> str | None:
        """The state of the group as the coordinator spells it; None if a record cannot be decoded."""
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
        there = self.reached.get((self.target_epoch, int(STABLE[self.kind])), 0)
        return "Stable" if there == len(self.members) else "Reconciling"

    def is_settled(self, state: str | None) -> bool:
        """Whether every member has reached its target assignment; `state` is the group's state. Always true for a share
        group, whose state does not depend on it."""
        if self.kind != SHARE:
            return state == "Stable"
        unknown = {of for role, of in self.broken if of in self.members and not self.members[of].is_known}
        return self.epoch is not None and self.reached.get((self.epoch, 0), 0) == len(self.members) - len(unknown)

    @property
    def state_since_ms(self) -> int | None:
        """When a classic group entered its present state; None for other kinds, and for values older than version 2,
        which lack this time. `current_state_timestamp` must be among the picked fields."""
        record = self.record(GROUP)
        if self.kind != CLASSIC or record is None or record.value is None:
            return None
        since: int = record.value.current_state_timestamp
        return None if since == _NO_TIMESTAMP else since

    def record(self, role: str) -> Event | None:
        """The latest record for a role with one record per group."""
        return self.records.get((role, self.group_id))

    def of_role(self, *roles: str) -> dict[str, Event]:
        """The latest records for the given roles, by the last field of their keys."""
        return {of: event for (role, of), event in self.records.items() if role in roles}

    def set_record(self, role: str, event: Event) -> None:
        """Set the current record for a role and the last field of its key."""
        place = role, event.member_id
        self._name(role, self.records.get(place), -1)
        self.records[place] = event
        self._name(role, event, 1)

    def drop_record(self, role: str, of: str) -> None:
        """Remove the current record for a role and the last field of the key, if there is one."""
        self._name(role, self.records.pop((role, of), None), -1)

    def _name(self, role: str, event: Event | None, change: int) -> None:
        """Change how often the topics of a record are named."""
        name = _TOPICS_IN.get((self.kind, role))
        if name is None or event is None or event.value is None:
            return
        for topic in getattr(event.value, name, ()):
            self.named[topic] = self.named.get(topic, 0) + change
            if not self.named[topic]:
                del self.named[topic]

    def set_member(self, member_id: str, member: Member) -> None:
        self._leave(self.members.get(member_id))
        self.members[member_id] = member
        place = self._place(member)
        self.reached[place] = self.reached.get(place, 0) + 1

    def drop_member(self, member_id: str) -> None:
        self._leave(self.members.pop(member_id, None))

    def _leave(self, member: Member | None) -> None:
        if member is not None:
            place = self._place(member)
            self.reached[place] -= 1
            if not self.reached[place]:
                del self.reached[place]

    def _place(self, member: Member) -> tuple[int, int]:
        # The state of a share group does not depend on the states of its members.
        return member.epoch, 0 if self.kind == SHARE else member.state


class Groups:
    """The groups of a log partition, after its records were replayed in log order.

    The replay continues after records that a coordinator refuses to load, because a cleaned log lacks records and any
    log may be damaged. `loading_groups` finds such records.
    """

    def __init__(self, *, tombstones_make_groups: bool = False) -> None:
        """If `tombstones_make_groups` is true, a tombstone for a simple group creates an empty group of the tombstone's
        kind, as it does while a coordinator loads (`GroupMetadataManager.getOrMaybeCreatePersistedConsumerGroup`)."""
        self._tombstones_make_groups = tombstones_make_groups
        self._groups: dict[str, Group] = {}
        self._ended: dict[str, int] = {}

    def replay(self, event: Event) -> Group | None:
        """Replay one record of a group. Returns the group that it ends or replaces, if any."""
        group_id = event.group_id
        before = self._groups.get(group_id)
        role = _ROLES[event.record]
        if event.is_tombstone:
            self._tombstone(role, event)
        elif role.kind == CLASSIC:
            if not event.is_past:
                self._groups[group_id] = _classic(event)
        else:
            _replay(self._made(role.kind, event), role.role, event)
        group = self._groups.get(group_id)
        if group is not None:
            group.told_ms, group.told_at = event.timestamp_ms, event.offset
        return before if before is not group else None

    def commit(self, group_id: str, offset: int, timestamp_ms: int | None = None) -> None:
        """Replay a commit, whether or not its transaction was committed. If the group does not exist, the commit
        creates a simple group (`GroupMetadataManager.replay` of OffsetCommit)."""
        if group_id not in self._groups and offset > self._ended.get(group_id, -1):
            self._groups[group_id] = Group(
                group_id, CLASSIC, offset, protocol_type="", told_ms=timestamp_ms, told_at=offset
            )

    def get(self, group_id: str) -> Group | None:
        """The group with this id, if it exists."""
        return self._groups.get(group_id)

    @property
    def by_id(self) -> Mapping[str, Group]:
        """The existing groups, by id."""
        return self._groups

    def rows(self) -> list[GroupRow]:
        """Rows for the existing groups, sorted by id, without the partition."""
        return list(map(_row, self._groups.values()))

    def forget_ends(self) -> None:
        """Forget the groups that have ended. Records replayed after this call must be later in the log than those
        replayed before."""
        self._ended.clear()

    def _tombstone(self, role: _Role, event: Event) -> None:
        group_id = event.group_id
        group = self._groups.get(group_id)
        if group is not None and group.makes_way_for(role.kind) and self._tombstones_make_groups:
            group = self._made(role.kind, event)
        if role.role == GROUP:
            self._ended[group_id] = event.offset
            # The tombstone of a classic group ends a group of any kind; those of other kinds also end a simple group of
            # the same name.
            if group is not None and (role.kind in (CLASSIC, group.kind) or group.is_simple):
                del self._groups[group_id]
        elif group is not None and group.kind == role.kind:
            _delete(group, role.role, event)

    def _made(self, kind: str, event: Event) -> Group:
        """The group with this kind, created if no group of that name exists or if it has another kind. A simple group
        is replaced. Any other group was deleted by a tombstone that a cleaner has removed since, because otherwise no
        coordinator could load this log."""
        group = self._groups.get(event.group_id)
        if group is None or group.kind != kind:
            group = self._groups[event.group_id] = Group(event.group_id, kind, event.offset, protocol_type=kind)
        return group


def _classic(event: Event) -> Group:
    """A group built from its classic record, which contains the whole group."""
    group = Group(event.group_id, CLASSIC, event.offset)
    group.set_record(GROUP, event)
    if event.value is None:
        group.broken.add((GROUP, event.group_id))
        group.classic_members = None
        return group
    group.epoch, group.protocol_type = event.value.generation, event.value.protocol_type or ""
    group.protocol, group.classic_members = event.value.protocol, event.value.members_count
    return group


def _replay(group: Group, role: str, event: Event) -> None:
    """Replay a value of a group that is not classic."""
    if event.is_past:
        return
    of = event.member_id
    group.set_record(role, event)
    if role == GROUP:
        group.made_at, group.has_record = event.offset, True
    elif role in (MEMBER, CURRENT) and of not in group.members:
        group.set_member(of, Member(state=int(STABLE.get(group.kind, 0))))
    if not group.has_record:
        group.made_at = max(group.made_at, event.offset)
    if event.is_broken:
        group.broken.add((role, of))
        return
    group.broken.discard((role, of))
    value = event.value
    if role == GROUP:
        group.epoch = value.epoch
        if group.kind == STREAMS:
            group.validated_topology = value.validated_topology_epoch
    elif role == TARGET:
        group.target_epoch = value.assignment_epoch
    elif role == SHARE_TARGET:
        # The state of the group does not depend on this value.
        group.target_epoch = _FIRST_EPOCH
    elif role == TOPOLOGY:
        group.topology_epoch = value.epoch
    elif role in OF_MEMBERS:
        _replay_member(group, role, event)


def _replay_member(group: Group, role: str, event: Event) -> None:
    member = group.members.get(event.member_id)
    if member is None or (role == TARGET_OF_MEMBER and not member.is_known):
        return
    if role == TARGET_OF_MEMBER:
        member = member._replace(target=event)
    else:
        made_at = member.made_at if member.is_known else event.offset
        # `_replace` takes longer than the rest of the replay of a record.
        if role == MEMBER:
            member = Member(member.epoch, member.state, made_at, event, member.current, member.target)
        else:
            value = event.value
            member = Member(value.member_epoch, value.state, made_at, member.metadata, event, member.target)
    group.set_member(event.member_id, member)


def _delete(group: Group, role: str, event: Event) -> None:
    """Replay a tombstone of any record but the group's own."""
    of = event.member_id
    group.broken.discard((role, of))
    group.drop_record(role, of)
    if role == MEMBER:
        group.drop_member(of)
    elif role in (CURRENT, TARGET_OF_MEMBER) and of in group.members:
        member = group.members[of]
        group.set_member(of, member._replace(epoch=LEFT) if role == CURRENT else member._replace(target=event))
    elif role in (TARGET, SHARE_TARGET):
        group.target_epoch = NO_TARGET
    elif role == TOPOLOGY:
        group.topology_epoch = None


def _row(group: Group) -> GroupRow:
    told = (group.epoch, group.protocol_type, group.protocol or None) if group.kind == CLASSIC else None
    epoch, protocol_type, protocol = told or (group.epoch, group.kind, None)
    place = group.member_count, group.made_at
    return group.group_id, group.shown_kind, group.state, epoch, protocol_type, protocol, *place
