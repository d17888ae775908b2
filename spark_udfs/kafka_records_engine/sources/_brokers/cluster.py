"""Asks a cluster about itself: its brokers, the leader of each partition, and where each log begins and ends."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_records_engine.sources._brokers.connection import Connection
from kafka_records_engine.sources._brokers.failures import ConnectionLost, Refused, TopicUnavailable
from kafka_records_engine.sources._brokers.patience import short_wait
from kafka_records_engine.sources._brokers.pool import borrow, give_back
from kafka_records_engine.sources._brokers.requests_sent import LIST_OFFSETS, METADATA
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources._brokers.transport import shown_address
from kafka_records_engine.sources.right_words import lacks_right
from kafka_records_engine.sources.waiting import side_by_side
from kafka_records_runtime.kafka.error_codes import ErrorCode
from kafka_records_runtime.kafka.uuids import Uuid

if TYPE_CHECKING:
    from kafka_records_engine.sources.client_config import ClientConfig

Address = tuple[str, int]

EARLIEST: Final = -2
LATEST: Final = -1
"""A timestamp in ListOffsets that asks for the high watermark, so that uncommitted records are read too."""
MAX_TIMESTAMP: Final = -3
"""A timestamp in ListOffsets that asks for the record with the largest timestamp (KIP-734); brokers before Kafka 3.0
return the first record of the log."""

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
"""An isolation level of ListOffsets."""

CONSUMER: Final = -1
DEBUGGER: Final = -2
"""A replica id in ListOffsets (`ListOffsetsRequest.DEBUGGING_REPLICA_ID`) for which the isolation level has no
effect."""

_NO_ID: Final = bytes(16)
_WITH_OPERATIONS: Final = 8
"""The first version of Metadata that reports the operations allowed on a topic."""
_NO_OPERATIONS: Final = -(1 << 31)
"""The value that brokers send if they do not report them."""
_OPERATIONS_OF_CLUSTER: Final = range(8, 11)
"""The versions of Metadata that report the operations allowed on the cluster."""
_READ: Final = 1 << 3
_DESCRIBE: Final = 1 << 8
"""The bits of READ and DESCRIBE in the allowed operations (`AclOperation`)."""
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
"""Temporary errors, which brokers return while leaders move, brokers start, or metadata is distributed."""


class TopicMissing(Exception):
    """A topic does not exist."""


class NotAllowed(Exception):
    """The user lacks a right on the topic: the ACL operation READ or DESCRIBE."""

    def __init__(self, who: str, operation: str, topic: str) -> None:
        super().__init__(who, operation, topic)
        self.who = who
        self.operation = operation
        self.topic = topic

    def __str__(self) -> str:
        return lacks_right(self.who, self.operation, f"topic {self.topic}")


@dataclass(frozen=True, slots=True)
class UnknownOffset:
    """The reason why the start or end of a log is unknown."""

    why: str
    broker_failed: bool = False
    """Whether the leader is unreachable, which affects its other partitions too."""
    not_allowed: NotAllowed | None = None
    """The missing right, if that is why the topic is unavailable."""

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as described by Metadata."""

    name: str
    topic_id: bytes
    """The id; sixteen zero bytes from brokers without topic ids (before Kafka 2.8)."""
    leaders: Mapping[int, int]
    """The broker that leads each partition; -1 if there is no leader."""
    may_be_read: bool | None = None
    """Whether this client has the READ right; None if the broker does not report it (before Kafka 2.3, KIP-430)."""
    fault: str | None = None
    """The error that all brokers return for this topic; None if there is no error."""

    @property
    def has_id(self) -> bool:
        """Whether the topic has an id, which distinguishes it from earlier topics with the same name."""
        return self.topic_id != _NO_ID


class _DescribedTopic(NamedTuple):
    """A broker's answer about a topic."""

    fields: dict[str, Any]
    """The fields of the topic in the answer to Metadata."""
    fault: str | None
    """The problem with the answer; None if there is none."""
    address: str


@dataclass(slots=True)
class Cluster:
    """A cluster, given the addresses of some brokers. Like connections, methods raise ConnectionLost and Refused."""

    bootstrap: Sequence[Address]
    config: ClientConfig
    session: Session = field(default_factory=Session)
    until: float = inf
    """The latest time (`time.monotonic`) to wait for an answer, never later than the configuration allows."""
    _brokers: dict[int, Address] = field(default_factory=dict)

    def asked(self, address: Address, ask: Callable[[Connection], dict[str, Any]]) -> dict[str, Any]:
        """The answer of a broker. If the broker closed an idle connection, the request is repeated at once."""
        until = self._until(address)
        connection = borrow(*address, self.config, self.session, until)
        try:
            return self._asked_by(connection, address, ask)
        except ConnectionLost:
            if not connection.was_idle or time.monotonic() >= until:
                raise
        return self._asked_by(Connection(*address, self.config, self.session, until), address, ask)

    def asked_of_any(self, ask: Callable[[Connection], dict[str, Any]]) -> dict[str, Any]:
        """The answer of the first broker that responds."""
        lost: list[ConnectionLost] = []
        for address in self._addresses():
            try:
                return self.asked(address, ask)
            except ConnectionLost as error:
                lost.append(error)
        raise _none_answers(lost)

    def asked_once(self, address: Address, ask: Callable[[Connection], dict[str, Any]]) -> dict[str, Any]:
        """Like `asked`, but the request is never repeated, because it may have been executed even if no answer
        arrived."""
        until = self._until(address, may_be_short=False)
        return self._asked_by(borrow(*address, self.config, self.session, until), address, ask)

    def _until(self, address: Address, may_be_short: bool = True) -> float:
        """The latest time to wait for an answer. The wait is short if the broker left the previous request unanswered,
        so that enough time is left for the other brokers."""
        name = self._address_text(address)
        if self.session.is_over:
            why = self.session.last_failure(name)
            over = f"{self.session.limit} has passed"
            raise ConnectionLost(name, f"was not asked, because {over}" if why is None else f"{why}, and {over}")
        patience = self.config.patience_ms / 1000
        if may_be_short and self.session.is_silent(name, patience):
            patience = short_wait(patience)
        return min(time.monotonic() + patience, self.until, self.session.end)

    def _asked_by(
        self, connection: Connection, address: Address, ask: Callable[[Connection], dict[str, Any]]
    ) -> dict[str, Any]:
        try:
            answer = ask(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, ConnectionLost):
                self.session.note_lost(self._address_text(address), error.detail)
            raise
        give_back(*address, self.config, connection)
        self.session.has_answered = True
        return answer

    def address_of(self, node: int) -> Address | None:
        """The address of a broker; None if unknown."""
        return self._brokers.get(node)

    def brokers(self) -> list[Address]:
        """The addresses of all brokers, from a new request."""
        self._metadata([])
        return [*self._brokers.values()]

    def topic(self, name: str) -> Topic:
        """The topic with this name. The request does not create the topic. Also raises TopicMissing and NotAllowed."""
        (found,) = self._metadata([name])
        code = found.fields["error_code"]
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise TopicMissing(f"there is no topic {name}")
        if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise NotAllowed(self.who, "DESCRIBE", name)
        if code == ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise TopicMissing(f"{name!r} is not a valid topic name")
        if code and code not in PASSING:
            raise TopicMissing(f"topic {name}: {ErrorCode(code).name}")
        if found.fault is not None:
            raise TopicUnavailable(found.address, found.fault)
        return _topic_of(found)

    def topics(self) -> dict[str, tuple[Uuid, int]]:
        """The id and the number of partitions of every topic that this client may describe, by topic name."""
        return {each["name"]: (each["topic_id"], len(_leaders_of(each))) for each in self.listed_topics()}

    def listed_topics(self) -> list[Mapping[str, Any]]:
        """All topics that this client may describe, as Metadata describes them."""
        return [each.fields for each in self._metadata(None) if not each.fields["error_code"] and each.fields["name"]]

    def described(self, names: Collection[str] | None) -> list[Topic]:
        """The topics among `names` (None: all topics) that exist and that this client may describe. Sends one
        request. A topic may have a `fault`."""
        topics = self._metadata(names) if names is None or names else []
        passing = {0, *PASSING} - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        return [_topic_of(each) for each in topics if each.fields["error_code"] in passing]

    def offsets(self, topic: Topic, partitions: Collection[int], timestamp: int) -> dict[int, int | UnknownOffset]:
        """The offsets at which the logs of the given partitions begin (EARLIEST) or end (LATEST). Also raises
        NotAllowed."""
        found = self.offsets_of([topic], {topic.name: partitions}, timestamp)
        for offset in found.values():
            if isinstance(offset, UnknownOffset) and offset.not_allowed is not None:
                raise offset.not_allowed
        return {partition: offset for (_, partition), offset in found.items()}

    def offsets_of(
        self,
        topics: Sequence[Topic],
        partitions: Mapping[str, Collection[int]],
        timestamp: int,
        *,
        isolation: int = READ_UNCOMMITTED,
        replica: int = CONSUMER,
    ) -> dict[tuple[str, int], int | UnknownOffset]:
        """Like `offsets`, for partitions of several topics; sends one request to each leader. A missing right does not
        raise an error.

        LATEST is the high watermark under READ_UNCOMMITTED, the last stable offset under READ_COMMITTED, and the log
        end for a DEBUGGER.
        """
        found: dict[tuple[str, int], int | UnknownOffset] = {}
        by_leader: dict[int, dict[str, list[int]]] = {}
        for topic in topics:
            for partition in partitions[topic.name]:
                led = by_leader.setdefault(topic.leaders.get(partition, -1), {})
                led.setdefault(topic.name, []).append(partition)
        asked: dict[Address, dict[str, list[int]]] = {}
        for leader, led in by_leader.items():
            address = self._brokers.get(leader)
            if address is None:
                found |= dict.fromkeys(_places(led), UnknownOffset("it has no leader"))
                continue
            for name, numbers in led.items():
                asked.setdefault(address, {}).setdefault(name, []).extend(numbers)
        ask = partial(self._offsets_by, timestamp=timestamp, isolation=isolation, replica=replica)
        for answer in side_by_side([partial(ask, *each) for each in asked.items()]):
            found |= answer
        return found

    def _offsets_by(
        self, address: Address, led: dict[str, list[int]], timestamp: int, isolation: int, replica: int
    ) -> dict[tuple[str, int], int | UnknownOffset]:
        """The answer of one broker about the partitions that it leads."""
        question = _asking_offsets(led, timestamp, isolation, replica)
        try:
            answer = self.asked(address, partial(Connection.ask, name=LIST_OFFSETS, fields=question))
        except ConnectionLost as lost:
            return dict.fromkeys(_places(led), UnknownOffset(f"its leader cannot be asked: {lost}", broker_failed=True))
        leader = self._address_text(address)
        found: dict[tuple[str, int], int | UnknownOffset] = dict.fromkeys(
            _places(led), UnknownOffset(f"its leader {leader} answers ListOffsets without this partition")
        )
        for topic_answer in answer["topics"]:
            name = topic_answer["name"]
            for each in topic_answer["partitions"]:
                place = name, each["partition_index"]
                if place not in found:
                    continue  # not requested
                code, offset = each["error_code"], each["offset"]
                if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    right = NotAllowed(self.who, "DESCRIBE", name)
                    found[place] = UnknownOffset(str(right), not_allowed=right)
                elif code:
                    found[place] = UnknownOffset(ErrorCode(code).name)
                elif offset < 0 and timestamp in (EARLIEST, LATEST):
                    found[place] = UnknownOffset(f"its leader {leader} answers ListOffsets with the offset {offset}")
                else:
                    found[place] = offset
        return found

    def _address_text(self, address: Address) -> str:
        host, port = address
        return shown_address(host, port, self.config)

    def hidden(self, names: Collection[str]) -> list[str]:
        """The topics among `names` that this client may not describe. Brokers do not reveal which of them exist."""
        topics = self._metadata(names) if names else []
        for each in topics:
            if each.fault is not None:
                raise ConnectionLost(each.address, each.fault)
        return [
            each.fields["name"] for each in topics if each.fields["error_code"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ]

    def may_describe(self) -> bool | None:
        """Whether this client has the DESCRIBE right on the cluster; None if no broker reports it (before Kafka
        2.3)."""
        answer = self.asked(random.choice(self.brokers()), _cluster_operations)
        operations = answer.get("cluster_authorized_operations", _NO_OPERATIONS)
        return None if operations == _NO_OPERATIONS else bool(operations & _DESCRIBE)

    @property
    def who(self) -> str:
        """The user name shown in messages."""
        return f"user {self.config.username}" if self.config.uses_sasl else "this client"

    def _metadata(self, names: Collection[str] | None) -> list[_DescribedTopic]:
        """What a broker knows about some topics, in order, or about all. If its answer has a fault, other brokers are
        asked."""
        lost: list[ConnectionLost] = []
        faulty: tuple[dict[str, Any], list[_DescribedTopic]] | None = None
        for address in self._addresses():
            try:
                answer = self.asked(address, partial(_metadata_of, names=names))
            except ConnectionLost as error:
                lost.append(error)
                continue
            topics = _topics_in(answer, names, self._address_text(address))
            if all(each.fault is None for each in topics):
                break
            faulty = faulty or (answer, topics)
        else:
            if faulty is None:
                raise _none_answers(lost)
            answer, topics = faulty
        self._brokers = {each["node_id"]: (each["host"], each["port"]) for each in answer["brokers"]}
        return topics

    def _addresses(self) -> list[Address]:
        """Addresses for requests that any broker can answer, in the order to try them. Brokers that left a recent
        request unanswered come last."""
        # Include the brokers of the last response, because those at the addresses given by the user may be gone.
        known = [*self._brokers.values()]
        random.shuffle(known)
        addresses = [*dict.fromkeys([*self.bootstrap, *known])]
        patience = self.config.patience_ms / 1000
        addresses.sort(key=lambda each: self.session.is_silent(self._address_text(each), patience))
        return addresses


def _none_answers(lost: Sequence[ConnectionLost]) -> ConnectionLost:
    by_address = {each.address: each for each in lost}
    first, *others = by_address.values()
    return ConnectionLost(", ".join(by_address), f"none of them answers; {first}") if others else first


def _places(partitions: Mapping[str, Sequence[int]]) -> list[tuple[str, int]]:
    return [(name, partition) for name, numbers in partitions.items() for partition in numbers]


def _metadata_of(connection: Connection, names: Collection[str] | None) -> dict[str, Any]:
    version = connection.version(METADATA)
    if version < 4:
        # A metadata request before version 4 may create the topic.
        raise Refused(connection.address, "this broker is too old: Kafka 0.11 or later is needed")
    topics = None if names is None else [{"name": name} for name in names]
    fields: dict[str, Any] = {"topics": topics, "allow_auto_topic_creation": False}
    if version >= _WITH_OPERATIONS:
        fields["include_topic_authorized_operations"] = True
    return connection.ask(METADATA, fields, version)


def _cluster_operations(connection: Connection) -> dict[str, Any]:
    version = connection.version(METADATA, _OPERATIONS_OF_CLUSTER[-1])
    if version not in _OPERATIONS_OF_CLUSTER:
        return {}
    fields = {"topics": [], "allow_auto_topic_creation": False, "include_cluster_authorized_operations": True}
    return connection.ask(METADATA, fields, version)


def _topics_in(answer: dict[str, Any], names: Collection[str] | None, address: str) -> list[_DescribedTopic]:
    """The requested topics in an answer to Metadata (None: all)."""
    found = {each["name"]: each for each in answer["topics"]}
    topics = answer["topics"] if names is None else [found.get(name, _NOTHING | {"name": name}) for name in names]
    return [_DescribedTopic(each, _fault_of(each), address) for each in topics]


_NOTHING: Final[dict[str, Any]] = {
    "error_code": 0,
    "topic_id": _NO_ID,
    "partitions": None,
    "topic_authorized_operations": _NO_OPERATIONS,
}
"""Used for topics missing from the answer to Metadata."""


def _fault_of(topic: Mapping[str, Any]) -> str | None:
    if topic["partitions"] is None:
        return f"its response to Metadata lacks topic {topic['name']}"
    if any(each["partition_index"] < 0 for each in topic["partitions"]):
        return f"its response to Metadata has a partition with a negative number in topic {topic['name']}"
    return None


def _leaders_of(topic: Mapping[str, Any]) -> dict[int, int]:
    partitions = topic["partitions"] or ()
    return {each["partition_index"]: each["leader_id"] for each in partitions if each["partition_index"] >= 0}


def _topic_of(found: _DescribedTopic) -> Topic:
    topic = found.fields
    operations = topic["topic_authorized_operations"]
    may_be_read = None if operations == _NO_OPERATIONS else bool(operations & _READ)
    fault = None if found.fault is None else f"{found.address}: {found.fault}"
    return Topic(topic["name"], bytes(topic["topic_id"]), _leaders_of(topic), may_be_read, fault)


def _asking_offsets(
    partitions: Mapping[str, Sequence[int]], timestamp: int, isolation: int, replica: int
) -> dict[str, Any]:
    topics = [
        {"name": name, "partitions": [{"partition_index": each, "timestamp": timestamp} for each in numbers]}
        for name, numbers in partitions.items()
    ]
    return {"replica_id": replica, "isolation_level": isolation, "topics": topics}


def named(addresses: Sequence[Address]) -> str:
    """The addresses as one string, in the form of a `bootstrap` setting."""
    return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses)
