"""Requests about transactions (KIP-664): for the producers with open transactions in a partition, the coordinator's
state of a transaction, and the marker that aborts it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from kafka_records_engine.sources._brokers.cluster import PASSING, Address, Cluster, Topic, named
from kafka_records_engine.sources._brokers.connection import Connection
from kafka_records_engine.sources._brokers.failures import ConnectionLost, Refused
from kafka_records_engine.sources._brokers.requests_sent import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    WRITE_TXN_MARKERS,
)
from kafka_records_engine.sources.waiting import pause, side_by_side
from kafka_records_runtime.kafka.error_codes import ErrorCode

TopicPartition = tuple[str, int]

NOT_AUTHORIZED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED.name
"""The error for a partition whose topic this user may not read."""

_TRIES: Final = 4
_PAUSE: Final = 0.5
_LOADING: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class ActiveProducer(NamedTuple):
    """A producer in a partition, as known to the leader."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """The epoch of the coordinator that wrote the last marker; -1 if no marker has been written yet."""
    first_offset: int
    """The offset where its open transaction begins; -1 if none is open."""
    last_timestamp_ms: int


class KnownTransaction(NamedTuple):
    """The coordinator's state of a transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    """The state as brokers spell it, such as Ongoing."""
    timeout_ms: int
    start_timestamp_ms: int
    """When the transaction started, in milliseconds since 1970; -1 if none is open."""
    partitions: frozenset[TopicPartition]
    """The partitions in which the marker has not been written yet."""

    def columns(self) -> dict[str, Any]:
        """The values of table columns: all fields except the producer. Start is null if there is none, and partitions
        are grouped by topic."""
        numbers: dict[str, list[int]] = {}
        for topic, partition in sorted(self.partitions):
            numbers.setdefault(topic, []).append(partition)
        return {
            "transactional_id": self.transactional_id,
            "state": self.state,
            "timeout_ms": self.timeout_ms,
            "start_timestamp_ms": self.start_timestamp_ms if self.start_timestamp_ms >= 0 else None,
            "partitions": [{"topic": topic, "partitions": some} for topic, some in numbers.items()],
        }


def active_producers(
    cluster: Cluster, topics: Collection[str] | None
) -> dict[TopicPartition, Sequence[ActiveProducer] | str]:
    """For each partition of the given topics, or of all topics, its producers or, if the leader does not report them,
    the reason. Raises ConnectionLost and Refused."""
    found: dict[TopicPartition, Sequence[ActiveProducer] | str] = {}
    for tries_left in range(_TRIES - 1, -1, -1):
        described = [each for each in cluster.described(topics) if each.fault is None]
        found |= _producers_of(cluster, described, found)
        passing = {code.name for code in PASSING}
        if not tries_left or not any(isinstance(each, str) and each in passing for each in found.values()):
            break
        pause(_PAUSE)
    return found


def _producers_of(
    cluster: Cluster, topics: Sequence[Topic], known: dict[TopicPartition, Sequence[ActiveProducer] | str]
) -> dict[TopicPartition, Sequence[ActiveProducer] | str]:
    by_leader: dict[Address, dict[str, list[int]]] = {}
    found: dict[TopicPartition, Sequence[ActiveProducer] | str] = {}
    for topic in topics:
        for partition, leader in topic.leaders.items():
            if not isinstance(known.get((topic.name, partition), ""), str):
                continue
            address = cluster.address_of(leader)
            if address is None:
                found[topic.name, partition] = ErrorCode.LEADER_NOT_AVAILABLE.name
            else:
                by_leader.setdefault(address, {}).setdefault(topic.name, []).append(partition)
    for answer in side_by_side([partial(_asked_producers, cluster, *each) for each in by_leader.items()]):
        found |= answer
    return found


def _asked_producers(
    cluster: Cluster, address: Address, led: dict[str, list[int]]
) -> dict[TopicPartition, Sequence[ActiveProducer] | str]:
    """The answer of one broker about the partitions that it leads."""
    topics = [{"name": name, "partition_indexes": tuple(numbers)} for name, numbers in led.items()]
    try:
        answer = cluster.asked(address, partial(Connection.ask, name=DESCRIBE_PRODUCERS, fields={"topics": topics}))
    except ConnectionLost as lost:
        return {(name, number): f"its leader cannot be asked: {lost}" for name in led for number in led[name]}
    found: dict[TopicPartition, Sequence[ActiveProducer] | str] = {}
    for topic in answer["topics"]:
        for each in topic["partitions"]:
            code = each["error_code"]
            found[topic["name"], each["partition_index"]] = (
                ErrorCode(code).name
                if code
                else [
                    ActiveProducer(
                        producer["producer_id"],
                        producer["producer_epoch"],
                        producer["coordinator_epoch"],
                        producer["current_txn_start_offset"],
                        producer["last_timestamp"],
                    )
                    for producer in each["active_producers"]
                ]
            )
    return found


def known_transactions(cluster: Cluster, producers: Collection[int]) -> list[KnownTransaction]:
    """The coordinators' states of the transactional ids with the given producer ids. All brokers are asked. Raises
    ConnectionLost if any broker does not answer, because its answer may be the one that is needed."""
    return _known_by(cluster, {"producer_id_filters": tuple(sorted(producers))}) if producers else []


def unended_transactions(cluster: Cluster) -> list[KnownTransaction]:
    """The coordinators' states of transactional ids whose transaction lacks some markers. Raises the same errors as
    `known_transactions`."""
    return _known_by(cluster, {"state_filters": ("Ongoing", "PrepareCommit", "PrepareAbort")})


def _known_by(cluster: Cluster, filters: dict[str, Any]) -> list[KnownTransaction]:
    found: list[KnownTransaction] = []
    for address in cluster.brokers():
        listed = _again(partial(_listed, cluster, address, filters))
        if listed:
            found += _again(partial(_described, cluster, address, listed))
    return found


def _again(ask: Callable[[], Any]) -> Any:
    """The result of `ask`, which is called again as long as it raises ConnectionLost because a coordinator is
    loading."""
    for _ in range(_TRIES - 1):
        try:
            return ask()
        except ConnectionLost:
            pause(_PAUSE)
    return ask()


def _listed(cluster: Cluster, address: Address, filters: dict[str, Any]) -> list[str]:
    answer = cluster.asked(address, partial(Connection.ask, name=LIST_TRANSACTIONS, fields=filters))
    _check(address, answer["error_code"])
    return [each["transactional_id"] for each in answer["transaction_states"]]


def _described(cluster: Cluster, address: Address, ids: Iterable[str]) -> list[KnownTransaction]:
    fields = {"transactional_ids": tuple(ids)}
    answer = cluster.asked(address, partial(Connection.ask, name=DESCRIBE_TRANSACTIONS, fields=fields))
    found = []
    for each in answer["transaction_states"]:
        if each["error_code"] == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            continue  # the transactional id expired in the meantime
        _check(address, each["error_code"])
        found.append(
            KnownTransaction(
                each["transactional_id"],
                each["producer_id"],
                each["producer_epoch"],
                each["transaction_state"],
                each["transaction_timeout_ms"],
                each["transaction_start_time_ms"],
                frozenset((topic["topic"], number) for topic in each["topics"] for number in topic["partitions"]),
            )
        )
    return found


def _check(address: Address, code: int) -> None:
    if code in _LOADING or code in PASSING:
        raise ConnectionLost(named([address]), ErrorCode(code).name)
    if code:
        raise Refused(named([address]), f"the broker does not list transactions: {ErrorCode(code).name}")


def write_abort(cluster: Cluster, leader: Address, place: TopicPartition, producer: ActiveProducer) -> str | None:
    """Make the leader of a partition write the marker that aborts a transaction.

    Returns the name of the error, or None if the marker was written. If it raises ConnectionLost, it is unknown whether
    the marker was written. The epochs are those of the open transaction, or 0 for a coordinator that never wrote a
    marker there, as in Kafka's `TransactionsCommand.AbortTransactionCommand`.
    """
    topic, partition = place
    marker = {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "transaction_result": False,
        "topics": [{"name": topic, "partition_indexes": (partition,)}],
        "coordinator_epoch": max(producer.coordinator_epoch, 0),
    }
    answer = cluster.asked_once(leader, partial(Connection.ask, name=WRITE_TXN_MARKERS, fields={"markers": [marker]}))
    codes = [
        each["error_code"]
        for of_producer in answer["markers"]
        for told in of_producer["topics"]
        for each in told["partitions"]
        if (of_producer["producer_id"], told["name"], each["partition_index"]) == (producer.producer_id, *place)
    ]
    code = codes[0] if codes else ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode(code).name if code else None
