"""Requests to brokers about the transactions of one partition, and the request to write the marker that aborts one.

The request for a marker is sent only once, because without an answer it is unknown whether it was executed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers.cluster import (
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Cluster,
    NotAllowed,
    Topic,
    TopicMissing,
    named,
)
from kafka_records_engine.sources._brokers.failures import BrokerFailure, ConnectionLost
from kafka_records_engine.sources._brokers.transactions import (
    NOT_AUTHORIZED,
    ActiveProducer,
    KnownTransaction,
    TopicPartition,
    active_producers,
    known_transactions,
    write_abort,
)
from kafka_records_engine.sources.missing_rights import MissingRight

__all__ = ["ActiveProducer", "KnownTransaction", "MarkerAnswerLost", "PartitionEnds", "TransactionRequests"]

T = TypeVar("T")


class MarkerAnswerLost(Exception):
    """A marker was requested, but no answer arrived. The text says why."""


class PartitionEnds(NamedTuple):
    """How far readers of a partition can read; None if its leader does not report it."""

    last_stable_offset: int | None
    high_watermark: int | None


class TransactionRequests:
    """Asks the brokers of a cluster about transactions. Methods raise LogSourceError if brokers do not answer or
    refuse."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def name(self) -> str:
        """The addresses, as a single string."""
        return named(self._cluster.bootstrap)

    @property
    def who(self) -> str:
        """The name of this client for messages."""
        return self._cluster.who

    def open_producers(self, place: TopicPartition) -> Sequence[ActiveProducer]:
        """The producers with an open transaction in a partition, ordered by first offset."""
        topic, _ = place
        self._leader(place)  # raises the error of the topic, if it has one
        told = self._asked(partial(active_producers, self._cluster, [topic])).get(place, "no leader reports it")
        if told == NOT_AUTHORIZED:
            raise MissingRight(self.name, self.who, "READ", topic)
        if isinstance(told, str):
            raise LogSourceError(self.name, f"{topic}-{place[1]}: {told}")
        return sorted((each for each in told if each.first_offset >= 0), key=lambda each: each.first_offset)

    def known_transactions(self, producers: Collection[int]) -> Sequence[KnownTransaction]:
        """The coordinators' states of the transactional ids with these producer ids, if the user may describe them."""
        return self._asked(partial(known_transactions, self._cluster, producers))

    def ends(self, place: TopicPartition) -> PartitionEnds:
        """How far readers of a partition can read."""
        topic, _ = self._leader(place)

        def end(isolation: int) -> int | None:
            ask = partial(self._cluster.offsets_of, [topic], {topic.name: [place[1]]}, LATEST, isolation=isolation)
            found = self._asked(ask).get(place)
            return found if isinstance(found, int) else None

        return PartitionEnds(end(READ_COMMITTED), end(READ_UNCOMMITTED))

    def abort(self, place: TopicPartition, producer: ActiveProducer) -> str | None:
        """Write the marker that aborts a transaction. Returns the name of the error, or None if it was written. Raises
        MarkerAnswerLost."""
        _, leader = self._leader(place)
        address = self._cluster.address_of(leader)
        if address is None:
            raise LogSourceError(self.name, f"{place[0]}-{place[1]} has no leader")
        try:
            return write_abort(self._cluster, address, place, producer)
        except ConnectionLost as lost:
            raise MarkerAnswerLost(str(lost)) from None
        except BrokerFailure as failed:
            raise LogSourceError(failed.address, failed.detail) from None

    def _leader(self, place: TopicPartition) -> tuple[Topic, int]:
        topic = self._asked(partial(self._cluster.topic, place[0]))
        if place[1] not in topic.leaders:
            raise LogSourceError(self.name, f"topic {place[0]} has no partition {place[1]}")
        return topic, topic.leaders[place[1]]

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except NotAllowed as right:
            raise MissingRight(self.name, right.who, right.operation, right.topic) from None
        except TopicMissing as missing:
            raise LogSourceError(self.name, str(missing)) from None
        except BrokerFailure as failed:
            raise LogSourceError(failed.address, failed.detail) from None
