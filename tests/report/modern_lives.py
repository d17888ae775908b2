"""Simulates groups whose coordinator assigns partitions: consumer groups (KIP-848), streams (KIP-1071) and share groups
(KIP-932).

The order of the records in a batch, and which batch has which, is that of `tests/data/topics/kafka-4.3`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kafka_records.registry import message_class
from kafka_records.share_group_state import share_snapshot, share_update
from kafka_records_runtime.kafka.uuids import Uuid
from tests.report.data_directory import OFFSETS, SHARE_STATE
from tests.report.made_up_cluster import MINUTE, SECOND, MadeCluster, Place
from tests.tables.topic import struct

_STABLE: Final = 0
_UNREVOKED: Final = 1
_UNRELEASED: Final = 2
_FIRST_EPOCH: Final = 1
"""The first epoch in a record is higher by one."""

_UPDATES_PER_SNAPSHOT: Final = 500
"""`share.coordinator.snapshot.update.records.per.snapshot`, as brokers have it."""
_SHARE_STATE: Final = {"ShareSnapshot": share_snapshot, "ShareUpdate": share_update}

Share = Mapping[Place, int]
"""Partitions (or tasks: subtopology and number) that a member has, with the epochs at which they were assigned."""


@dataclass
class _Member:
    number: int
    member_id: str
    epoch: int = 0
    has: dict[Place, int] = field(default_factory=dict)
    target: tuple[Place, ...] = ()


@dataclass
class ModernLife:
    """A group of one of the three kinds. Each method writes the records of an event at a given time."""

    cluster: MadeCluster
    group: str
    topics: Sequence[str]
    kind = "Consumer"
    state_offset = 0
    """The difference by which the number of a member's state in a record is higher."""
    epoch: int = _FIRST_EPOCH
    target_epoch: int = 0
    members: list[_Member] = field(default_factory=list)
    done: dict[Place, int] = field(default_factory=dict)
    """The last committed offsets."""
    _numbers: int = 0
    _hash: int = 0

    @property
    def places(self) -> list[Place]:
        """All partitions that it consumes."""
        return [(name, number) for name in self.topics for number in range(self.cluster.topic(name).partitions)]

    def start(self, at_ms: int, members: int = 2) -> None:
        """The first member joins and gets all partitions; the others join soon after."""
        self._hash = self.cluster.random.getrandbits(62)
        for number in range(members):
            self.join(at_ms + number * 8 * SECOND)

    def join(self, at_ms: int, number: int | None = None) -> None:
        """A member joins, and the group becomes stable."""
        self._come(at_ms, number)
        self.settle(at_ms + SECOND)

    def leave(self, at_ms: int, *, settles: bool = True) -> int:
        """The oldest member leaves; returns its number."""
        gone = self.members.pop(0)
        self.epoch += 1
        self._write(at_ms, *self._tombstones(gone), self._group_record())
        if settles and self.members:
            self.settle(at_ms + SECOND)
        return gone.number

    def restart(self, at_ms: int, every_ms: int = MINUTE) -> None:
        """A rolling deployment: one pod after another leaves and joins again, with another member id."""
        for number in range(len(self.members)):
            gone = self.leave(at_ms + number * every_ms)
            self.join(at_ms + number * every_ms + 25 * SECOND, gone)

    def stop(self, at_ms: int) -> None:
        """All members leave, one after the other."""
        for number in range(len(self.members)):
            self.leave(at_ms + number * 100, settles=False)

    def settle(self, at_ms: int) -> None:
        """Write a new target assignment, and the records of the heartbeats with which members take it over."""
        self.assign(at_ms)
        for member in self.members:
            if set(member.has) - set(member.target):
                self.give_up(at_ms + SECOND, member)
        for number, member in enumerate(self.members):
            self.follow(at_ms + (2 + number) * SECOND, member)
        for member in self.members:
            if len(member.has) < len(member.target):
                self.follow(at_ms + (3 + len(self.members)) * SECOND, member)

    def assign(self, at_ms: int) -> None:
        """Write the target assignment of the epoch."""
        records = []
        for member, share in zip(self.members, self._shares(), strict=True):
            if tuple(share) != member.target or member.epoch == 0:
                member.target = tuple(share)
                records.append(self._target_record(member))
        self.target_epoch = self.epoch
        value = {"assignment_epoch": self.epoch, "assignment_timestamp": at_ms - 4}
        self._write(at_ms, *records, self._record("TargetAssignmentMetadata", {}, value))

    def give_up(self, at_ms: int, member: _Member) -> None:
        """A member must give up partitions that are not in its target."""
        pending = {place: epoch for place, epoch in member.has.items() if place not in member.target}
        kept = {place: epoch for place, epoch in member.has.items() if place in member.target}
        self._write(at_ms, self._current(member, member.epoch, kept, pending, _UNREVOKED))
        member.has = kept

    def follow(self, at_ms: int, member: _Member) -> None:
        """A member reaches the epoch of the target, and gets the partitions that no other member has."""
        taken = {place for other in self.members if other is not member for place in other.has}
        free = [place for place in member.target if place not in taken]
        member.has = {place: member.has.get(place, self.target_epoch) for place in free}
        state = _STABLE if len(free) == len(member.target) else _UNRELEASED
        before, member.epoch = member.epoch, self.target_epoch
        self._write(at_ms, self._current(member, before, member.has, {}, state))

    def commit(self, at_ms: int, *, behind_ms: int = 2 * SECOND) -> None:
        """Each member commits what it has consumed: all that was there `behind_ms` ago."""
        for member in self.members:
            offsets = {
                (name, number): max(self.cluster.topics[name].end(number, at_ms - behind_ms), self.done.get(place, 0))
                for place in self._consumed(member)
                for name, number in (place,)
            }
            self.done |= offsets
            if offsets:
                self.cluster.commit(self.group, at_ms, offsets)

    def commits(self, from_ms: int, to_ms: int, every_ms: int = 15 * MINUTE, *, behind_ms: int = 2 * SECOND) -> None:
        """Commit again and again."""
        for at_ms in self.cluster.ticks(from_ms, to_ms, every_ms):
            self.commit(at_ms, behind_ms=behind_ms)

    def delete(self, at_ms: int) -> None:
        """Tombstones of all offsets and of the group, which is empty."""
        self.cluster.delete_offsets(self.group, at_ms, self.done)
        records = [self._record("TargetAssignmentMetadata", {}, None)]
        if self.kind == "Consumer":
            # This tombstone is still written, although values of this record no longer are.
            records.append(self._record("PartitionMetadata", {}, None))
        self._write(at_ms, *records, self._record("Metadata", {}, None))
        self.done.clear()

    # ------------------------------------------------------------------------------------------------ what is written

    def _come(self, at_ms: int, number: int | None) -> None:
        if number is None:
            self._numbers += 1
        member = _Member(number or self._numbers, self.cluster.kafka_id())
        self.members.append(member)
        self.epoch += 1
        first = self._first_records() if len(self.members) == 1 else []
        records = [self._member_record(member), *first, self._group_record()]
        if len(self.members) > 1:
            # Until there is a new target, the member has nothing, at the epoch of the previous one.
            records.append(self._current(member, 0, {}, {}, _STABLE, epoch=self.target_epoch))
            member.epoch = self.target_epoch
        self._write(at_ms, *records)

    def _first_records(self) -> list[tuple[Any, ...]]:
        """The other records that are written with the first member."""
        return []

    def _shares(self) -> list[list[Place]]:
        shares: list[list[Place]] = [[] for _ in self.members]
        for at, place in enumerate(self.places):
            shares[at * len(shares) // len(self.places)].append(place)
        return shares

    def _consumed(self, member: _Member) -> Sequence[Place]:
        return list(member.has)

    def _write(self, at_ms: int, *records: tuple[Any, ...]) -> None:
        self.cluster.logs.write(OFFSETS, self.group, at_ms, *records)

    def _record(self, name: str, key: Mapping[str, Any], value: Mapping[str, Any] | None) -> tuple[Any, ...]:
        made = None if value is None else message_class(f"{self.kind}Group{name}Value")(**value)
        return message_class(f"{self.kind}Group{name}Key")(group_id=self.group, **key), made

    def _group_record(self) -> tuple[Any, ...]:
        return self._record("Metadata", {}, {"epoch": self.epoch, "metadata_hash": self._hash if self.members else 0})

    def _member_record(self, member: _Member) -> tuple[Any, ...]:
        value = {
            "instance_id": None,
            "rack_id": None,
            "client_id": f"{self.group}-{member.number}",
            "client_host": f"/10.42.{len(self.group) % 7}.{10 + member.number}",
            "subscribed_topic_names": tuple(self.topics),
            "rebalance_timeout_ms": 5 * MINUTE,
            "server_assignor": "uniform",
        }
        return self._record("MemberMetadata", {"member_id": member.member_id}, value)

    def _tombstones(self, member: _Member) -> list[tuple[Any, ...]]:
        key = {"member_id": member.member_id}
        names = ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata")
        return [self._record(name, key, None) for name in names]

    def _target_record(self, member: _Member) -> tuple[Any, ...]:
        value = {"topic_partitions": self._parts("target_assignment_member", "TopicPartition", member.target)}
        return self._record("TargetAssignmentMember", {"member_id": member.member_id}, value)

    def _current(
        self, member: _Member, before: int, has: Share, pending: Share, state: int, *, epoch: int | None = None
    ) -> tuple[Any, ...]:
        follows = state != _UNREVOKED
        value = {
            "member_epoch": epoch if epoch is not None else self.target_epoch if follows else member.epoch,
            "previous_member_epoch": before,
            "state": state + self.state_offset,
            **self._held(has, pending),
        }
        return self._record("CurrentMemberAssignment", {"member_id": member.member_id}, value)

    def _held(self, has: Share, pending: Share) -> dict[str, Any]:
        name = "current_member_assignment"
        return {
            "assigned_partitions": self._parts(name, "TopicPartitions", has),
            "partitions_pending_revocation": self._parts(name, "TopicPartitions", pending),
        }

    def _parts(self, module: str, name: str, share: Share | Sequence[Place]) -> tuple[Any, ...]:
        """Partitions by topic id; with the epochs at which they were assigned where the share has them."""
        made = []
        for topic in dict.fromkeys(topic for topic, _ in share):
            places = [place for place in share if place[0] == topic]
            epochs = {"assignment_epochs": tuple(share[each] for each in places)} if isinstance(share, Mapping) else {}
            topic_id = Uuid.from_string(self.cluster.topics[topic].topic_id)
            numbers = tuple(number for _, number in places)
            module_name = f"{self.kind.lower()}_group_{module}"
            made.append(struct(module_name, name, topic_id=topic_id, partitions=numbers, **epochs))
        return tuple(made)


@dataclass
class StreamsLife(ModernLife):
    """A streams group: two subtopologies, the first of which reads the topics, with a repartition topic in between."""

    kind = "Streams"
    state_offset = 1

    @property
    def repartition_topic(self) -> str:
        """The topic between the subtopologies."""
        return f"{self.group}-by-customer-repartition"

    @property
    def places(self) -> list[Place]:
        """All tasks, by subtopology."""
        count = self.cluster.topic(self.topics[0]).partitions
        self.cluster.topic(self.repartition_topic, count)
        return [(subtopology, number) for subtopology in ("0", "1") for number in range(count)]

    def _consumed(self, member: _Member) -> Sequence[Place]:
        names = {"0": self.topics[0], "1": self.repartition_topic}
        return [(names[subtopology], number) for subtopology, number in member.has]

    def _first_records(self) -> list[tuple[Any, ...]]:
        module = "streams_group_topology"
        count = self.cluster.topic(self.topics[0]).partitions
        between = struct(module, "TopicInfo", name=self.repartition_topic, partitions=count, replication_factor=-1)
        store = struct(module, "TopicInfo", name=f"{self.group}-totals-changelog", replication_factor=-1)
        first = struct(
            module,
            "Subtopology",
            subtopology_id="0",
            source_topics=tuple(self.topics[:1]),
            repartition_sink_topics=(self.repartition_topic,),
        )
        second = struct(
            module,
            "Subtopology",
            subtopology_id="1",
            repartition_source_topics=(between,),
            state_changelog_topics=(store,),
        )
        return [self._record("Topology", {}, {"epoch": 0, "subtopologies": (first, second)})]

    def _group_record(self) -> tuple[Any, ...]:
        value = {"epoch": self.epoch, "metadata_hash": self._hash, "validated_topology_epoch": 0}
        return self._record("Metadata", {}, value)

    def _member_record(self, member: _Member) -> tuple[Any, ...]:
        host = f"{self.group}-{member.number}.internal"
        value = {
            "instance_id": None,
            "rack_id": None,
            "client_id": f"{self.group}-i{member.number}-StreamThread-1-consumer",
            "client_host": f"/10.42.{len(self.group) % 7}.{10 + member.number}",
            "rebalance_timeout_ms": 5 * MINUTE,
            "process_id": self.cluster.uuid(),
            "user_endpoint": struct("streams_group_member_metadata", "Endpoint", host=host, port=7070),
        }
        return self._record("MemberMetadata", {"member_id": member.member_id}, value)

    def _target_record(self, member: _Member) -> tuple[Any, ...]:
        value = {"active_tasks": self._tasks("target_assignment_member", member.target)}
        return self._record("TargetAssignmentMember", {"member_id": member.member_id}, value)

    def _held(self, has: Share, pending: Share) -> dict[str, Any]:
        name = "current_member_assignment"
        return {"active_tasks": self._tasks(name, has), "active_tasks_pending_revocation": self._tasks(name, pending)}

    def _tasks(self, module: str, share: Share | Sequence[Place]) -> tuple[Any, ...]:
        made = []
        for subtopology in dict.fromkeys(each for each, _ in share):
            places = [place for place in share if place[0] == subtopology]
            epochs = {"assignment_epochs": tuple(share[each] for each in places)} if isinstance(share, Mapping) else {}
            numbers = tuple(number for _, number in places)
            name = f"streams_group_{module}"
            made.append(struct(name, "TaskIds", subtopology_id=subtopology, partitions=numbers, **epochs))
        return tuple(made)


Batch = tuple[int, int, int, int]
"""First offset, last offset, delivery state (0 available, 2 acknowledged, 4 archived), delivery count."""


@dataclass
class ShareLife(ModernLife):
    """A share group: members, the list of partitions that have state, and that state."""

    kind = "Share"
    starts: dict[Place, int] = field(default_factory=dict)
    _updates: dict[Place, int] = field(default_factory=dict)
    _epochs: dict[Place, int] = field(default_factory=dict)

    def start(self, at_ms: int, members: int = 2) -> None:
        """Members join; then the state of all partitions is initialized."""
        super().start(at_ms, members)
        self._initialize(at_ms + MINUTE)

    def settle(self, at_ms: int) -> None:
        """A new target assignment, which members follow at once, since they may share partitions."""
        self.assign(at_ms)
        for number, member in enumerate(self.members):
            member.has = dict.fromkeys(member.target, self.target_epoch)
            before, member.epoch = member.epoch, self.target_epoch
            self._write(at_ms + (1 + number) * SECOND, self._current(member, before, member.has, {}, _STABLE))

    def consume(self, at_ms: int, *, behind_ms: int = 2 * SECOND, places: Sequence[Place] | None = None) -> None:
        """New records are acknowledged: each state advances to the records of `behind_ms` ago."""
        for place in self.places if places is None else places:
            end = self.cluster.topics[place[0]].end(place[1], at_ms - behind_ms)
            start = self.starts[place]
            if end > start:
                self.update(at_ms, place, start, end - start, (start, end - 1, 2, 1))
                self.starts[place] = end

    def consumes(self, from_ms: int, to_ms: int, every_ms: int = 20 * MINUTE) -> None:
        """Acknowledge new records repeatedly."""
        for at_ms in self.cluster.ticks(from_ms, to_ms, every_ms):
            self.consume(at_ms)

    def update(self, at_ms: int, place: Place, start: int, complete: int, *batches: Batch) -> None:
        """Write a change of the state of a partition; every so often, it is a snapshot, as from the coordinator."""
        self._updates[place] = self._updates.get(place, 0) + 1
        if self._updates[place] % _UPDATES_PER_SNAPSHOT == 0:
            self.snapshot(at_ms, place, start, complete, *batches)
            return
        value = {"leader_epoch": 3, "start_offset": start, "delivery_complete_count": complete}
        self._state(at_ms, place, "ShareUpdate", value, batches)

    def snapshot(self, at_ms: int, place: Place, start: int, complete: int, *batches: Batch) -> None:
        """Write a whole state."""
        self._epochs[place] = self._epochs.get(place, -1) + 1
        times = {"create_timestamp": at_ms - 2, "write_timestamp": at_ms - 2, "state_epoch": 2}
        value = {"leader_epoch": 3, "start_offset": start, "delivery_complete_count": complete, **times}
        self._state(at_ms, place, "ShareSnapshot", value, batches)

    def delete(self, at_ms: int) -> None:
        """Tombstones of the state, of its list and of the group, which is empty."""
        for place in self.starts:
            key = self._state_key("ShareSnapshot", place)
            self.cluster.logs.write(SHARE_STATE, self._state_place(place), at_ms, (key, None))
        names = ("TargetAssignmentMetadata", "StatePartitionMetadata", "Metadata")
        self._write(at_ms + 200, *(self._record(name, {}, None) for name in names))
        self.starts.clear()

    def _initialize(self, at_ms: int) -> None:
        module = "share_group_state_partition_metadata"
        told = tuple(
            struct(
                module,
                "TopicPartitionsInfo",
                topic_id=Uuid.from_string(self.cluster.topic(name).topic_id),
                topic_name=name,
                partitions=tuple(range(self.cluster.topic(name).partitions)),
            )
            for name in self.topics
        )
        self._write(at_ms, self._record("StatePartitionMetadata", {}, {"initializing_topics": told}))
        for place in self.places:
            self.starts[place] = self.cluster.topics[place[0]].end(place[1], at_ms)
            self.snapshot(at_ms + 50, place, self.starts[place], 0)
        self._write(at_ms + 200, self._record("StatePartitionMetadata", {}, {"initialized_topics": told}))

    def _state_place(self, place: Place) -> str:
        return f"{self.group}:{self.cluster.topics[place[0]].topic_id}:{place[1]}"

    def _state_key(self, record: str, place: Place) -> Any:
        topic_id = Uuid.from_string(self.cluster.topics[place[0]].topic_id)
        return message_class(f"{record}Key")(group_id=self.group, topic_id=topic_id, partition=place[1])

    def _state(self, at_ms: int, place: Place, record: str, value: Mapping[str, Any], batches: Sequence[Batch]) -> None:
        key = self._state_key(record, place)
        told = tuple(_SHARE_STATE[record].StateBatch(*each) for each in batches)
        made = message_class(f"{record}Value")(snapshot_epoch=self._epochs[place], state_batches=told, **value)
        self.cluster.logs.write(SHARE_STATE, self._state_place(place), at_ms, (key, made))

    def _shares(self) -> list[list[Place]]:
        """Every member gets every partition."""
        return [list(self.places) for _ in self.members]

    def _held(self, has: Share, pending: Share) -> dict[str, Any]:
        return {"assigned_partitions": self._parts("current_member_assignment", "TopicPartitions", tuple(has))}

    def _member_record(self, member: _Member) -> tuple[Any, ...]:
        value = {
            "rack_id": None,
            "client_id": f"{self.group}-{member.number}",
            "client_host": f"/10.42.{len(self.group) % 7}.{10 + member.number}",
            "subscribed_topic_names": tuple(self.topics),
        }
        return self._record("MemberMetadata", {"member_id": member.member_id}, value)
