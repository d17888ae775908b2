"""Finds the records of groups that a group coordinator cannot load, because its replay fails at them.

The rules are those of Kafka 4.3.1: of `GroupMetadataManager.replay`, its `getOrMaybeCreatePersisted…Group` and
`ConsumerGroup.addPartitionEpochs`, which throw IllegalStateException, and of `ClassicGroup.computeSubscribedTopics`.
Each of these errors stops the coordinator from loading the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.coordinator.groups.embedded import subscribed_topics, what_stops_loading
from kafka_records_tables.coordinator.groups.group_model import (
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    LEFT,
    MEMBER,
    NO_TARGET,
    SHARE_TARGET,
    STREAMS,
    TARGET,
    TARGET_OF_MEMBER,
    Group,
    Groups,
    role_of,
)
from kafka_records_tables.coordinator.groups.replay_bugs import PARTITION_EPOCHS, STREAMS_AFTER_COMMITS, TASK_PROCESSES
from kafka_records_tables.coordinator.groups.subscriptions import CONSUMER_PROTOCOL
from kafka_records_tables.coordinator.groups.task_processes import TaskProcesses, assignment_of, process_of

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.groups.group_model import Member
    from kafka_records_tables.coordinator.groups.replay_bugs import ReplayBug
    from kafka_records_tables.coordinator.records.named_records import Event

_UTF16_UNIT: Final = Struct(">H")

PASSED_OVER: Final = "Kafka 4.4 skips it"
"""In these releases, `ConsumerProtocol` turns every error into a SchemaException, which a coordinator tolerates."""

_Partition = tuple[str, int]


class _RefusedError(Exception):
    """A coordinator stops loading at this record; the text says why."""


def _read_subscriptions(subscriptions: Mapping[str, bytes]) -> None:
    """Read the subscriptions as `ClassicGroup.computeSubscribedTopics` does. The first broken one decides, because the
    coordinator stops reading there even if it tolerates the error."""
    if any(map(what_stops_loading, subscriptions.values())):
        for member_id in _as_java_maps_them(tuple(subscriptions)):
            data = subscriptions[member_id]
            if (why := what_stops_loading(data)) is not None:
                raise _RefusedError(f"the subscription of a member cannot be read: {why} ({PASSED_OVER})")
            if subscribed_topics(data) is None:
                return


def _as_java_maps_them(keys: Sequence[str]) -> list[str]:
    """The keys in the iteration order of a `java.util.HashMap` to which they were added in this order."""
    buckets = 16
    while len(keys) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: str) -> int:
        units = key.encode("utf-16-be", "surrogatepass")
        number = 0
        for (unit,) in _UTF16_UNIT.iter_unpack(units):
            number = 31 * number + unit & 0xFFFFFFFF
        return (number ^ number >> 16) & buckets - 1

    return sorted(keys, key=bucket)


class LoadingGroups:
    """Replays groups and finds the records at which a coordinator would stop loading."""

    def __init__(self) -> None:
        self.groups = Groups(tombstones_make_groups=True)
        """The groups after the records so far."""
        self._left_out: set[str] = set()
        self._owned: dict[str, dict[_Partition, int]] = {}
        """By group, the epoch at which a member owns each partition."""
        self._tasks: dict[str, TaskProcesses] = {}
        """By streams group, the processes that have tasks."""
        self.bug: ReplayBug | None = None
        """The bug that stops some releases from loading the last replayed record, although other releases can; None if
        there is none."""

    def take(self, event: Event) -> str | None:
        """Replay a record of a group. Returns why a coordinator stops at it, or None if it does not stop.

        After such a record, or an undecodable one, no further problems of the same group are reported.
        """
        why = self.bug = None
        if event.group_id not in self._left_out:
            try:
                if not event.is_broken:
                    self._check(event)
            except _RefusedError as refused:
                why = str(refused)
            if event.is_broken or why is not None:
                self._left_out.add(event.group_id)
                self._forget(event.group_id)
        self.groups.replay(event)
        return why

    def is_sound(self, group_id: str) -> bool:
        """Whether every record of the group could be replayed."""
        return group_id not in self._left_out

    def _check(self, event: Event) -> None:
        kind, role = role_of(event.record)
        if kind == CLASSIC:
            self._forget(event.group_id)
            if event.value is not None:
                _check_classic(event.value)
            return
        group = self._of_kind(event, kind)
        if group is None:
            return
        if role == GROUP and event.is_tombstone:
            _check_gone(group)
            self._forget(group.group_id)
        elif role in (TARGET, SHARE_TARGET) and event.is_tombstone:
            _check_target_gone(group)
        elif role == MEMBER:
            self._member(group, event)
        elif role == CURRENT:
            self._current(group, event)

    def _of_kind(self, event: Event, kind: str) -> Group | None:
        """The group before the record, or an empty group if the record creates it."""
        group = self.groups.get(event.group_id)
        if group is None:
            return None if event.is_tombstone else Group(event.group_id, kind, event.offset)
        if group.makes_way_for(kind):
            self.bug = STREAMS_AFTER_COMMITS if kind == STREAMS else None
            return Group(event.group_id, kind, event.offset)
        if group.kind != kind:
            known = "simple (it has commits)" if group.is_simple and not group.classic_members else group.kind
            raise _RefusedError(f"the record is of a {kind} group, but the group is {known} at this point of the log")
        return group

    def _member(self, group: Group, event: Event) -> None:
        known = group.members.get(event.member_id)
        if known is None:
            return
        if event.is_tombstone:
            if known.epoch != LEFT:
                raise _RefusedError("the member is deleted while it still has a current assignment")
            if (TARGET_OF_MEMBER, event.member_id) in group.records:
                raise _RefusedError("the member is deleted while it still has a target assignment")
            return
        if group.kind == STREAMS:
            self._run(group, known, event.value.process_id, assignment_of(known))
            return
        held = _held(group, known)
        self._release(group, held, known.epoch)
        self._own(group, held, known.epoch)

    def _current(self, group: Group, event: Event) -> None:
        known = group.members.get(event.member_id)
        if group.kind == STREAMS:
            self._run(group, known, process_of(known), event.value)
            return
        if known is not None:
            self._release(group, _held(group, known), known.epoch)
        if not event.is_tombstone and group.kind == CONSUMER:
            self._own(group, _partitions(event.value), event.value.member_epoch)

    def _run(self, group: Group, known: Member | None, process: str | None, value: Any) -> None:
        if self._tasks.setdefault(group.group_id, TaskProcesses()).stops(known, process, value):
            self.bug = TASK_PROCESSES

    def _forget(self, group_id: str) -> None:
        self._owned.pop(group_id, None)
        self._tasks.pop(group_id, None)

    def _own(self, group: Group, places: Iterable[_Partition], epoch: int) -> None:
        owned = self._owned.setdefault(group.group_id, {})
        for place in places:
            since = owned.get(place)
            if since is not None and since >= epoch:
                raise _RefusedError(
                    f"the member gets partition {place[1]} of the topic with id {place[0]} at epoch {epoch}, but "
                    f"another member has had it since epoch {since}"
                )
            self.bug = self.bug if since is None else PARTITION_EPOCHS
            owned[place] = epoch

    def _release(self, group: Group, places: Iterable[_Partition], epoch: int) -> None:
        owned = self._owned.get(group.group_id, {})
        for place in places:
            if owned.get(place) == epoch:
                del owned[place]
            else:
                self.bug = PARTITION_EPOCHS


def _check_classic(value: Any) -> None:
    """Check a classic group's value, which replaces the earlier one."""
    named = [instance for instance in value.members_group_instance_id or () if instance is not None]
    if len(named) > len(set(named)):
        twice = next(each for each in named if named.count(each) > 1)
        raise _RefusedError(f"two members of the group have the group.instance.id {twice!r}")
    if value.protocol_type == CONSUMER_PROTOCOL and value.protocol is not None:
        subscriptions = value.members_subscription or ()
        _read_subscriptions(dict(zip(value.members_member_id or (), subscriptions, strict=True)))


def _check_gone(group: Group) -> None:
    if group.members:
        raise _RefusedError(f"the group is deleted, but {_are(len(group.members), 'member')} still in it")
    targets = group.of_role(TARGET_OF_MEMBER)
    if targets and group.kind != STREAMS:
        raise _RefusedError(f"the group is deleted, but {_are(len(targets), 'target assignment')} still in it")
    if group.target_epoch != NO_TARGET:
        raise _RefusedError("the group is deleted while it still has a target assignment (no tombstone of its epoch)")


def _check_target_gone(group: Group) -> None:
    targets = group.of_role(TARGET_OF_MEMBER)
    if targets:
        left = _are(len(targets), "member's target", "members' targets")
        raise _RefusedError(f"the epoch of the target assignment is deleted, but {left} still there")


def _are(count: int, one: str, more: str | None = None) -> str:
    return f"{count} {one} is" if count == 1 else f"{count} {more or one + 's'} are"


def _held(group: Group, member: Member) -> tuple[_Partition, ...]:
    """The partitions that a member of a consumer group has, including those that it must give up."""
    value = assignment_of(member) if group.kind == CONSUMER else None
    return () if value is None else _partitions(value)


def _partitions(value: Any) -> tuple[_Partition, ...]:
    """The partitions in some lists. If a list names a topic twice, the last entry counts; a partition in two lists is
    returned twice."""
    found: list[_Partition] = []
    for topics in (value.assigned_partitions, value.partitions_pending_revocation):
        last = {topic["topic_id"]: dict.fromkeys(topic["partitions"]) for topic in topics}
        found += [(topic_id, number) for topic_id, numbers in last.items() for number in numbers]
    return tuple(found)
