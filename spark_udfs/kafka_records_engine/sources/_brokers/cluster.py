"""What a cluster says about itself: its brokers, who leads a partition, where its log begins and ends."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine.sources._brokers.connection import TOLD_AFTER, Connection
from kafka_records_engine.sources._brokers.failures import ConnectionLost, Refused
from kafka_records_engine.sources._brokers.pool import borrow, give_back
from kafka_records_engine.sources._brokers.requests_sent import LIST_OFFSETS, METADATA
from kafka_records_runtime.error_codes import ErrorCode
from kafka_records_runtime.uuids import Uuid

if TYPE_CHECKING:
    from kafka_records_engine.sources.client_config import ClientConfig

Address = tuple[str, int]

EARLIEST: Final = -2
LATEST: Final = -1
"""Timestamps of ListOffsets: the start of the log, and its high watermark (for who reads uncommitted records too)."""
MAX_TIMESTAMP: Final = -3
"""The record with the largest timestamp (KIP-734); for brokers before Kafka 3.0 the first record of the log."""

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
"""Isolation levels of ListOffsets."""

CONSUMER: Final = -1
DEBUGGER: Final = -2
"""Who asks ListOffsets: for a debugger (`ListOffsetsRequest.DEBUGGING_REPLICA_ID`) isolation does not count."""

_log: Final = logging.getLogger(__name__)

_NO_ID: Final = bytes(16)
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0

PASSING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""What a broker says while leaders move, brokers start and metadata spreads."""


class TopicMissing(Exception):
    """There is no such topic."""


class NotAllowed(Exception):
    """The right to do something with the topic is missing."""


class GivenUp(Exception):
    """Nothing has moved for as long as the configuration has patience; the text says why."""


class Patience:
    """Waits before another try, longer each time, until nothing has moved for too long."""

    def __init__(self, config: ClientConfig) -> None:
        self.limit = config.patience_ms / 1000
        """Seconds."""
        self.moved()

    def moved(self) -> None:
        """Something was read."""
        self._since: float | None = None
        self._is_told = False
        self._pause = _FIRST_PAUSE

    def wait(self, why: str, at_most: float = inf) -> None:
        """Wait a little; who has waited for a while is told so once. Raises GivenUp after so many seconds, `at_most`
        as many as the configuration has patience for."""
        limit = min(self.limit, at_most)
        now = time.monotonic()
        if self._since is None:
            self._since = now
        waited = now - self._since
        if waited > limit:
            raise GivenUp(f"{why}, for {limit:g} s")
        if waited > TOLD_AFTER and not self._is_told:
            self._is_told = True
            _log.warning("%s; it is tried again, for up to %g s", why, limit)
        # No two readers in step: a broker that has just come back would get them all at once.
        time.sleep(self._pause * random.uniform(0.8, 1.2))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as Metadata describes it."""

    name: str
    topic_id: bytes
    """Sixteen zeros from brokers that know no ids (before Kafka 2.8)."""
    leaders: Mapping[int, int]
    """The broker that leads each partition, -1 while none does."""

    @property
    def has_id(self) -> bool:
        """Whether the id says which topic of this name it is."""
        return self.topic_id != _NO_ID


@dataclass(slots=True)
class Cluster:
    """A cluster by the addresses of some of its brokers. Raises ConnectionLost and Refused, as connections do."""

    bootstrap: Sequence[Address]
    config: ClientConfig
    has_answered: bool = False
    """Whether a broker has ever answered something."""
    _brokers: dict[int, Address] = field(default_factory=dict)

    def asked(self, address: Address, ask: Callable[[Connection], dict[str, Any]]) -> dict[str, Any]:
        """What a broker answers. One that has closed a connection while it was idle is asked anew at once."""
        connection = borrow(*address, self.config)
        try:
            return self._asked_by(connection, address, ask)
        except ConnectionLost:
            if not connection.was_idle:
                raise
        return self._asked_by(Connection(*address, self.config), address, ask)

    def asked_once(self, address: Address, ask: Callable[[Connection], dict[str, Any]]) -> dict[str, Any]:
        """The same, and never asked anew: what changes something may have been done although no answer came."""
        return self._asked_by(borrow(*address, self.config), address, ask)

    def _asked_by(
        self, connection: Connection, address: Address, ask: Callable[[Connection], dict[str, Any]]
    ) -> dict[str, Any]:
        try:
            answer = ask(connection)
        except BaseException:
            connection.close()
            raise
        give_back(*address, self.config, connection)
        self.has_answered = True
        return answer

    def address_of(self, node: int) -> Address | None:
        """Where a broker listens, as far as it was told."""
        return self._brokers.get(node)

    def brokers(self) -> list[Address]:
        """Where all brokers listen now."""
        self._metadata([])
        return [*self._brokers.values()]

    def topic(self, name: str) -> Topic:
        """The topic of that name. Nothing is created by asking. Raises TopicMissing, NotAllowed too."""
        (found,) = self._metadata([{"name": name}])
        code = found["error_code"]
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise TopicMissing(f"there is no topic {name}")
        if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise NotAllowed(f"{self._who} may not describe topic {name}: it needs the ACL operation DESCRIBE on it")
        if code == ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise TopicMissing(f"{name!r} is no name of a topic")
        if code and code not in PASSING:
            raise TopicMissing(f"topic {name}: {ErrorCode(code).name}")
        return _topic_of(found)

    def topics(self) -> dict[str, tuple[Uuid, int]]:
        """All topics that may be described here, by their names: the id of each, and how many partitions it has."""
        return {
            each["name"]: (each["topic_id"], len(each["partitions"]))
            for each in self._metadata(None)
            if not each["error_code"]
        }

    def described(self, names: Collection[str]) -> list[Topic]:
        """Those of some topics that are there and may be described, by one request."""
        topics = self._metadata([{"name": name} for name in names]) if names else []
        passing = PASSING - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        return [_topic_of(each) for each in topics if not each["error_code"] or each["error_code"] in passing]

    def offsets(self, topic: Topic, partitions: Collection[int], timestamp: int) -> dict[int, int | str]:
        """Where the logs of some partitions begin or end: EARLIEST or LATEST. A text says why one is not known.

        Raises NotAllowed too.
        """
        found = self.offsets_of([topic], {topic.name: partitions}, timestamp)
        return {partition: offset for (_, partition), offset in found.items()}

    def offsets_of(
        self,
        topics: Sequence[Topic],
        partitions: Mapping[str, Collection[int]],
        timestamp: int,
        *,
        isolation: int = READ_UNCOMMITTED,
        replica: int = CONSUMER,
    ) -> dict[tuple[str, int], int | str]:
        """The same for partitions of several topics, by one request to each of their leaders.

        LATEST is the high watermark under READ_UNCOMMITTED, the last stable offset under READ_COMMITTED, and the log
        end for a DEBUGGER.
        """
        found: dict[tuple[str, int], int | str] = {}
        by_leader: dict[int, dict[str, list[int]]] = {}
        for topic in topics:
            for partition in partitions[topic.name]:
                led = by_leader.setdefault(topic.leaders.get(partition, -1), {})
                led.setdefault(topic.name, []).append(partition)
        for leader, led in by_leader.items():
            places = [(name, partition) for name, numbers in led.items() for partition in numbers]
            address = self._brokers.get(leader)
            if address is None:
                found |= dict.fromkeys(places, "it has no leader")
                continue
            try:
                question = _asking_offsets(led, timestamp, isolation, replica)
                answer = self.asked(address, partial(Connection.ask, name=LIST_OFFSETS, fields=question))
            except ConnectionLost as lost:
                found |= dict.fromkeys(places, f"its leader cannot be asked: {lost}")
                continue
            for topic_answer in answer["topics"]:
                name = topic_answer["name"]
                for each in topic_answer["partitions"]:
                    code = each["error_code"]
                    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                        raise NotAllowed(
                            f"{self._who} may not describe topic {name}: it needs the ACL operation DESCRIBE on it"
                        )
                    found[name, each["partition_index"]] = ErrorCode(code).name if code else each["offset"]
        return found

    @property
    def _who(self) -> str:
        return f"user {self.config.username}" if self.config.uses_sasl else "this client"

    def _metadata(self, topics: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
        lost: dict[str, ConnectionLost] = {}
        # Whoever answered last knows the brokers of now; the addresses that were given may be gone.
        known = [*self._brokers.values()]
        random.shuffle(known)
        for address in dict.fromkeys([*self.bootstrap, *known]):
            try:
                answer = self.asked(address, partial(_metadata_of, topics=topics))
            except ConnectionLost as error:
                lost[error.address] = error
                continue
            self._brokers = {each["node_id"]: (each["host"], each["port"]) for each in answer["brokers"]}
            return list(answer["topics"])
        first, *others = lost.values()
        if others:
            raise ConnectionLost(", ".join(lost), f"none of them answers; {first}")
        raise first


def _metadata_of(connection: Connection, topics: list[dict[str, Any]] | None) -> dict[str, Any]:
    version = connection.version(METADATA)
    if version < 4:
        # Before version 4 a broker may create what it is asked about.
        raise Refused(connection.address, "Kafka 0.11 and later are read, and this broker is older")
    return connection.ask(METADATA, {"topics": topics, "allow_auto_topic_creation": False}, version)


def _topic_of(found: Mapping[str, Any]) -> Topic:
    leaders = {each["partition_index"]: each["leader_id"] for each in found["partitions"]}
    return Topic(found["name"], bytes(found["topic_id"]), leaders)


def _asking_offsets(
    partitions: Mapping[str, Sequence[int]], timestamp: int, isolation: int, replica: int
) -> dict[str, Any]:
    topics = [
        {"name": name, "partitions": [{"partition_index": each, "timestamp": timestamp} for each in numbers]}
        for name, numbers in partitions.items()
    ]
    return {"replica_id": replica, "isolation_level": isolation, "topics": topics}


def named(addresses: Sequence[Address]) -> str:
    """The addresses as one text, as somebody would write them."""
    return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses)
