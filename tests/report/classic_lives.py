"""Simulates classic groups, simple groups and Connect workers: the records that a coordinator writes about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka_records.client_protocols.connect_protocol_assignment import ConnectorAssignment, ConnectProtocolAssignment
from kafka_records.client_protocols.connect_protocol_subscription import ConnectProtocolSubscription
from kafka_records.consumer_offsets.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kafka_records.consumer_protocol import consumer_protocol_assignment, consumer_protocol_subscription
from tests.report.data_directory import OFFSETS
from tests.report.made_up_cluster import MINUTE, SECOND, MadeCluster, Place

_VALUE_VERSION: Final = 3
"""The version that brokers from 2.3 on write."""
_PROTOCOL_VERSION: Final = b"\x00\x03"
_CONNECT_VERSION: Final = b"\x00\x02"


@dataclass
class _Member:
    number: int
    member_id: str
    host: str
    instance_id: str | None


@dataclass
class ClassicLife:
    """A classic group of consumers. Each method writes the records of an event at a given time.

    A group that never starts is a simple group: a client that assigns itself partitions, with only commits in the log.
    """

    cluster: MadeCluster
    group: str
    topics: Sequence[str]
    protocol: str = "range"
    is_static: bool = False
    user_data: Callable[[int], bytes] | None = None
    """The user data of members for their assignor, by number."""
    generation: int = 0
    members: list[_Member] = field(default_factory=list)
    done: dict[Place, int] = field(default_factory=dict)
    """The last committed offsets."""
    _numbers: int = 0

    @property
    def places(self) -> list[Place]:
        """All partitions that it consumes."""
        return [(name, number) for name in self.topics for number in range(self.cluster.topic(name).partitions)]

    def start(self, at_ms: int, members: int = 2) -> None:
        """The first member joins, and the others join while the coordinator waits for them."""
        self._write(at_ms, "", 0, None)
        self.join(at_ms + 3 * SECOND, members)

    def join(self, at_ms: int, members: int = 1) -> None:
        """Members join, all in one generation."""
        for _ in range(members):
            self._numbers += 1
            self._add(self._numbers)
        self.rebalance(at_ms)

    def leave(self, at_ms: int, members: int = 1) -> None:
        """Members leave; the others rebalance, or the group is empty."""
        del self.members[:members]
        self.rebalance(at_ms)

    def restart(self, at_ms: int, every_ms: int = MINUTE) -> None:
        """A rolling deployment: one pod after another leaves and joins again, with another member id."""
        for number in range(len(self.members)):
            gone = self.members.pop(0)
            if self.members:
                self.rebalance(at_ms + number * every_ms)
            self._add(gone.number)
            self.rebalance(at_ms + number * every_ms + 20 * SECOND)

    def rejoin(self, at_ms: int, position: int) -> None:
        """A member that was removed because it did not poll in time joins again with another member id, in one
        generation."""
        gone = self.members.pop(position)
        self._add(gone.number)
        self.rebalance(at_ms)

    def rebalance(self, at_ms: int) -> None:
        """A generation ends, and the next begins with the present members."""
        self.generation += 1
        protocol = self.protocol if self.members else None
        self._write(at_ms, self._protocol_type, self.generation, protocol)

    def stop(self, at_ms: int) -> None:
        """All members leave."""
        self.members.clear()
        self.rebalance(at_ms)

    def commit(self, at_ms: int, places: Sequence[Place] | None = None, *, behind_ms: int = 2 * SECOND) -> None:
        """Each member commits what it has consumed: all that was there `behind_ms` ago."""
        wanted = set(self.places if places is None else places)
        shares = self._shares() if self.members else [self.places]
        for share in shares:
            offsets = {
                (name, number): max(self.cluster.topics[name].end(number, at_ms - behind_ms), self.done.get(place, 0))
                for place in share
                if place in wanted
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
        """Write tombstones of all offsets and of the group: by a clean-up, or because somebody deletes it."""
        self.cluster.delete_offsets(self.group, at_ms, self.done)
        self.cluster.logs.write(OFFSETS, self.group, at_ms, (GroupMetadataKey(self.group), None))
        self.done.clear()

    def delete_topic(self, at_ms: int, topic: str) -> None:
        """Tombstones of the offsets of one topic."""
        places = [place for place in self.done if place[0] == topic]
        self.cluster.delete_offsets(self.group, at_ms, places)
        for place in places:
            del self.done[place]

    # ------------------------------------------------------------------------------------------------ what is written

    _protocol_type = "consumer"
    _timeouts = (5 * MINUTE, 45 * SECOND)

    def _add(self, number: int) -> None:
        client = f"{self.group}-{number}"
        host = f"/10.42.{len(self.group) % 7}.{10 + number}"
        instance = f"{self.group}-pod-{number - 1}" if self.is_static else None
        prefix = instance or client
        self.members.append(_Member(number, f"{prefix}-{self.cluster.uuid()}", host, instance))

    def _shares(self) -> list[list[Place]]:
        """Ranges of the partitions of each topic, by member."""
        shares: list[list[Place]] = [[] for _ in self.members]
        for name in self.topics if shares else ():
            count = self.cluster.topic(name).partitions
            for number in range(count):
                shares[number * len(self.members) // count].append((name, number))
        return shares

    def _subscription(self, member: _Member) -> bytes:
        data = None if self.user_data is None else self.user_data(member.number)
        told = consumer_protocol_subscription.ConsumerProtocolSubscription(topics=tuple(self.topics), user_data=data)
        return _PROTOCOL_VERSION + told.encode(3)

    def _assignment(self, share: Sequence[Place]) -> bytes:
        names = dict.fromkeys(name for name, _ in share)
        parts = tuple(
            consumer_protocol_assignment.TopicPartition(name, tuple(number for each, number in share if each == name))
            for name in names
        )
        return _PROTOCOL_VERSION + consumer_protocol_assignment.ConsumerProtocolAssignment(parts).encode(3)

    def _write(self, at_ms: int, protocol_type: str, generation: int, protocol: str | None) -> None:
        rebalance, session = self._timeouts
        made = tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=f"{self.group}-{member.number}",
                client_host=member.host,
                rebalance_timeout=rebalance,
                session_timeout=session,
                subscription=self._subscription(member),
                assignment=self._assignment(share),
            )
            for member, share in zip(self.members, self._shares(), strict=True)
        )
        value = GroupMetadataValue(
            protocol_type=protocol_type,
            generation=generation,
            protocol=protocol,
            leader=self.members[0].member_id if made else None,
            current_state_timestamp=at_ms - (20 if made else 0),
            members=made,
        )
        self.cluster.logs.write(OFFSETS, self.group, at_ms, (GroupMetadataKey(self.group), value, _VALUE_VERSION))


@dataclass
class ConnectLife(ClassicLife):
    """Connect workers, which distribute connectors and tasks and commit nothing; `topics` are names of connectors."""

    _protocol_type = "connect"
    _timeouts = (MINUTE, 10 * SECOND)

    @property
    def places(self) -> list[Place]:
        """None: this group consumes nothing."""
        return []

    def _shares(self) -> list[list[Place]]:
        shares: list[list[Place]] = [[] for _ in self.members]
        for number, name in enumerate(self.topics if shares else ()):
            shares[number % len(shares)].append((name, 0))
        return shares

    def _subscription(self, member: _Member) -> bytes:
        url = f"http://{member.host[1:]}:8083/"
        return _CONNECT_VERSION + ConnectProtocolSubscription(url=url, config_offset=41).encode(2)

    def _assignment(self, share: Sequence[Place]) -> bytes:
        told = tuple(ConnectorAssignment(connector, (-1, task)) for connector, task in share)
        leader = self.members[0]
        value = ConnectProtocolAssignment(
            leader=leader.member_id,
            leader_url=f"http://{leader.host[1:]}:8083/",
            config_offset=41,
            assignment=told,
            revoked=(),
        )
        return _CONNECT_VERSION + value.encode(2)
