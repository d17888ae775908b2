"""Whether a group coordinator can load the records of groups: what it refuses when it replays them.

The rules are those of `GroupMetadataManager.replay` of Kafka 4.3.1, `getOrMaybeCreatePersisted…Group` in it, and
`ConsumerGroup.addPartitionEpochs`, which throw IllegalStateException, and those of
`ClassicGroup.computeSubscribedTopics`: each ends the loading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.replay.embedded import subscribed_topics, what_stops_loading
from kafka_records_tables.tables.replay.group_replay import (
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    LEFT,
    MEMBER,
    SHARE_TARGET,
    SIMPLE,
    STREAMS,
    TARGET,
    TARGET_OF_MEMBER,
    role_of,
)
from kafka_records_tables.tables.replay.subscriptions import CONSUMER_PROTOCOL

if TYPE_CHECKING:
    from kafka_records_tables.tables.decoded.fold import Event

_UTF16_UNIT: Final = Struct(">H")

PASSED_OVER: Final = "Kafka 4.4 passes over it"
"""Since then `ConsumerProtocol` makes every error a SchemaException, which a coordinator bears."""

_NO_TARGET: Final = -1
_FIRST_EPOCH: Final = 1

_Partition = tuple[str, int]


class _RefusedError(Exception):
    """The coordinator stops at this record; the text says why."""


@dataclass(slots=True)
class _Member:
    epoch: int = 0
    partitions: tuple[_Partition, ...] = ()


@dataclass(slots=True)
class _Group:
    kind: str
    target_epoch: int = _FIRST_EPOCH
    members: dict[str, _Member] = field(default_factory=dict)
    targets: set[str] = field(default_factory=set)
    owned: dict[_Partition, int] = field(default_factory=dict)
    """The epoch at which somebody has a partition."""


def _read_subscriptions(subscriptions: Mapping[str, bytes]) -> None:
    """Read them as `ClassicGroup.computeSubscribedTopics` does: the first that is broken decides, for one that it bears
    ends the reading of all."""
    if any(map(what_stops_loading, subscriptions.values())):
        for member_id in _as_java_maps_them(tuple(subscriptions)):
            data = subscriptions[member_id]
            if (why := what_stops_loading(data)) is not None:
                raise _RefusedError(f"the subscription of a member cannot be read: {why} ({PASSED_OVER})")
            if subscribed_topics(data) is None:
                return


def _as_java_maps_them(keys: Sequence[str]) -> list[str]:
    """Keys in the order of a `java.util.HashMap` into which they were put one after the other."""
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
    """The groups after some records, taken in their order, as far as it takes to tell what is refused."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._left_out: set[str] = set()

    def commit(self, group_id: str) -> None:
        """Replay the value of a commit: where there is no group it makes a simple one."""
        if group_id not in self._groups and group_id not in self._left_out:
            self._groups[group_id] = _Group(SIMPLE)

    def take(self, event: Event) -> str | None:
        """Replay a record of a group. Returns why a coordinator stops there, or None.

        Of a group nothing more is told behind such a record, or behind one that cannot be decoded.
        """
        group_id = event.key[0]
        if group_id in self._left_out:
            return None
        if event.is_broken:
            self._leave_out(group_id)
            return None
        try:
            self._replay(group_id, event)
        except _RefusedError as refused:
            self._leave_out(group_id)
            return str(refused)
        return None

    def is_sound(self, group_id: str) -> bool:
        """Whether every record of the group could be replayed."""
        return group_id not in self._left_out

    def _leave_out(self, group_id: str) -> None:
        self._groups.pop(group_id, None)
        self._left_out.add(group_id)

    def _replay(self, group_id: str, event: Event) -> None:
        kind, role = role_of(event.record)
        if kind == CLASSIC:
            self._classic(group_id, event.value)
            return
        group = self._of_kind(group_id, kind, event.value is not None)
        if group is None:
            return
        if role == GROUP:
            if event.value is None:
                _check_gone(group)
                del self._groups[group_id]
        elif role in (TARGET, SHARE_TARGET):
            _target(group, event.value)
        elif role == TARGET_OF_MEMBER:
            (group.targets.discard if event.value is None else group.targets.add)(event.key[1])
        elif role == MEMBER:
            _member(group, event.key[1], event.value)
        elif role == CURRENT:
            _current(group, event.key[1], event.value)

    def _classic(self, group_id: str, value: tuple[Any, ...] | None) -> None:
        """A value replaces whatever there was, and a tombstone ends it."""
        if value is None:
            self._groups.pop(group_id, None)
            return
        _, protocol_type, protocol, count, instances, member_ids, subscriptions = value
        named = [instance for instance in instances or () if instance is not None]
        if len(named) > len(set(named)):
            twice = next(each for each in named if named.count(each) > 1)
            raise _RefusedError(f"two members of the group have the group.instance.id {twice!r}")
        if protocol_type == CONSUMER_PROTOCOL and protocol is not None:
            _read_subscriptions(dict(zip(member_ids or (), subscriptions or (), strict=True)))
        self._groups[group_id] = _Group(CLASSIC if protocol_type or count else SIMPLE)

    def _of_kind(self, group_id: str, kind: str, has_value: bool) -> _Group | None:
        group = self._groups.get(group_id)
        if group is None:
            if not has_value:
                return None
            group = self._groups[group_id] = _Group(kind)
        elif group.kind == SIMPLE and kind in (CONSUMER, STREAMS):
            group = self._groups[group_id] = _Group(kind)
        elif group.kind != kind:
            known = "simple (it has commits)" if group.kind == SIMPLE else group.kind
            raise _RefusedError(f"the record is of a {kind} group, and the group is {known} at this place of the log")
        return group


def _check_gone(group: _Group) -> None:
    if group.members:
        raise _RefusedError(f"the group is deleted while {_are(len(group.members), 'member')} left in it")
    if group.targets and group.kind != STREAMS:
        raise _RefusedError(f"the group is deleted while {_are(len(group.targets), 'target assignment')} left in it")
    if group.target_epoch != _NO_TARGET:
        raise _RefusedError("the group is deleted before its target assignment is (no tombstone of its epoch)")


def _are(count: int, one: str, more: str | None = None) -> str:
    return f"{count} {one} is" if count == 1 else f"{count} {more or one + 's'} are"


def _target(group: _Group, value: tuple[Any, ...] | None) -> None:
    if value is None and group.targets:
        left = _are(len(group.targets), "member's target", "members' targets")
        raise _RefusedError(f"the epoch of the target assignment is deleted while {left} left")
    group.target_epoch = _NO_TARGET if value is None else value[0] if value else group.target_epoch


def _member(group: _Group, member_id: str, value: tuple[Any, ...] | None) -> None:
    known = group.members.get(member_id)
    if value is not None:
        _set(group, member_id, _Member() if known is None else known)
        return
    if known is None:
        return
    if known.epoch != LEFT:
        raise _RefusedError("the member is deleted before its current assignment is")
    if member_id in group.targets:
        raise _RefusedError("the member is deleted before its target assignment is")
    _release(group, known)
    del group.members[member_id]


def _current(group: _Group, member_id: str, value: tuple[Any, ...] | None) -> None:
    if value is not None:
        epoch, _, _, *lists = value
        held = _partitions(lists) if group.kind == CONSUMER else ()
        _set(group, member_id, _Member(epoch, held))
    elif member_id in group.members:
        _set(group, member_id, _Member(LEFT))


def _set(group: _Group, member_id: str, member: _Member) -> None:
    known = group.members.get(member_id)
    if known is not None:
        _release(group, known)
    group.members[member_id] = member
    for place in member.partitions:
        epoch = group.owned.get(place)
        if epoch is not None and epoch >= member.epoch:
            raise _RefusedError(
                f"the member gets partition {place[1]} of the topic with id {place[0]} at epoch {member.epoch}, and "
                f"somebody has it at epoch {epoch}"
            )
        group.owned[place] = member.epoch


def _release(group: _Group, member: _Member) -> None:
    for place in member.partitions:
        if group.owned.get(place) == member.epoch:
            del group.owned[place]


def _partitions(lists: Iterable[Iterable[Mapping[str, Any]]]) -> tuple[_Partition, ...]:
    """Of a topic that a list names twice, what stands last; a partition in two lists stands twice."""
    found: list[_Partition] = []
    for topics in lists:
        last = {topic["topic_id"]: dict.fromkeys(topic["partitions"]) for topic in topics}
        found += [(topic_id, number) for topic_id, numbers in last.items() for number in numbers]
    return tuple(found)
