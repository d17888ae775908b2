"""Live brokers as a source. It fetches raw record batches as they are in the log, and parses them with the code that
reads files. So control records, producers and transactions are available, although clients hide them. This source joins
no group, writes nothing and creates no topic."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final

import numpy as np

from kafka_records_engine import arguments
from kafka_records_engine.findings import DAMAGED_LOG, UNREACHABLE_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.unread import UNKNOWN, Unread, UnreadAsked
from kafka_records_engine.sources._brokers.cluster import Address, Cluster, NotAllowed, Topic, TopicMissing, named
from kafka_records_engine.sources._brokers.description import retentions
from kafka_records_engine.sources._brokers.failures import BrokerFailure, ConnectionLost
from kafka_records_engine.sources._brokers.first_batches import Seek, seek_first_batches
from kafka_records_engine.sources._brokers.log_bounds import AskingEnds, Bounds
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources._brokers.transactions import (
    NOT_AUTHORIZED,
    ActiveProducer,
    KnownTransaction,
    active_producers,
    known_transactions,
)
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.cluster_answers import ClusterAnswers
from kafka_records_engine.sources.log_details import OPEN, Details
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_engine.sources.missing_rights import COORDINATOR_TOPICS, AbsentTopic, MissingRight
from kafka_records_engine.sources.protocol import Context, LogEnds, LogStarts
from kafka_records_engine.sources.time_limit import Timeout, limit_of, now_ms
from kafka_records_engine.sources.transaction_requests import TransactionRequests
from kafka_records_engine.sources.unreachable import UnreachableBrokers
from kafka_records_runtime.kafka.uuids import Uuid

_NO_TIMES: Final = "it is unknown how long its records have been unread"
_URL: Final = re.compile(r"([A-Za-z][\w+.-]*://)(?:[^/?#]*@)?([^/?#]*)")
_NO_HOST: Final = re.compile(r"[\s/@\\?#]")

Config = ClientConfig | Mapping[str, str] | str | PathLike[str]


class LiveBrokers:
    """The logs of a running cluster, up to the high watermarks at the time when `partitions` is called.

    Parameters
    ----------
    bootstrap
        The addresses of some brokers: `HOST:PORT[,HOST:PORT…]`, or several such strings. The other brokers are found
        through them.
    config
        The configuration of connections: a ClientConfig, the path of a properties file like the one for
        `--command-config` of Kafka's tools, or a mapping of such properties. The default is PLAINTEXT without
        authentication.
    timeout
        Seconds or a timedelta counted from now, or a `time_limit.TimeLimit` that other sources share. After this time,
        the source stops waiting for brokers. Records that were not read by then are reported as damage, with
        partitions and offsets. To read again, create another LiveBrokers. By default there is no limit.

    Raises
    ------
    ValueError, TypeError
        For an invalid address, unsupported properties, or a timeout of 0 or less.
    LogSourceError
        If the properties file cannot be used.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        config: Config | None = None,
        *,
        timeout: Timeout | None = None,
    ) -> None:
        self._bootstrap = addresses_of(bootstrap)
        self._config = config_of(config)
        self._session = Session(limit_of(timeout))

    def __repr__(self) -> str:
        return f"LiveBrokers({self.name!r})"

    @property
    def name(self) -> str:
        """The addresses, as a single string."""
        return named(self._bootstrap)

    @property
    def is_over(self) -> bool:
        """Whether the time limit has passed, so that no more requests are sent."""
        return self._session.is_over

    def topics(self) -> list[str]:
        """The names of the topics that may be described; empty on a new cluster. Raises LogSourceError."""
        return sorted(self._topics())

    def known_topics(self) -> KnownTopics:
        """The topics that may be described, by id, with their partition counts. Raises LogSourceError."""
        asked_ms = now_ms()
        topics = self._topics()
        names = {str(topic_id): name for name, (topic_id, _) in topics.items()}
        return KnownTopics(names, {name: count for name, (_, count) in topics.items()}, asked_ms=asked_ms)

    def missing_rights(self, topics: Collection[str]) -> list[MissingRight]:
        """The missing right for each given topic that may not be described. Brokers do not reveal which of these topics
        exist. Raises LogSourceError."""
        cluster = Cluster(self._bootstrap, self._config, self._session)
        try:
            hidden = cluster.hidden(topics)
        except BrokerFailure as failed:
            raise self._error(failed) from None
        return [MissingRight(self.name, cluster.who, "DESCRIBE", name) for name in hidden]

    def _topics(self) -> dict[str, tuple[Uuid, int]]:
        try:
            return Cluster(self._bootstrap, self._config, self._session).topics()
        except BrokerFailure as failed:
            raise self._error(failed) from None

    def partitions(self, topic: str) -> list[BrokerPartition]:
        """The partitions of a topic, each from the start of its log to its present high watermark.

        If a partition has no leader, this waits for one. If the partition's end remains unknown, it has `trouble`, and
        reading it gives a finding instead of rows. Raises LogSourceError if no broker answers, the password is wrong,
        there is no such topic, or no partition has a leader; MissingRight if the topic may not be described or read;
        AbsentTopic if it is a coordinator's topic that does not exist yet.
        """
        arguments.text("topic", topic)
        cluster = Cluster(self._bootstrap, self._config, self._session)
        try:
            found = self._described(cluster, topic)
            if found.may_be_read is False:
                raise NotAllowed(cluster.who, "READ", topic)
            bounds = Bounds(cluster, found)
        except (BrokerFailure, NotAllowed, TopicMissing) as failed:
            raise self._error(failed) from None
        trouble = bounds.trouble
        if len(trouble) == len(bounds.topic.leaders):
            which, why = min(trouble.items())
            raise LogSourceError(self.name, f"{topic}-{which}: {why}")
        return [
            BrokerPartition(
                self._bootstrap,
                self._config,
                topic,
                bounds.topic.topic_id,
                partition,
                start=0 if partition in trouble else bounds.starts[partition],
                end=0 if partition in trouble else bounds.ends[partition],
                leader=leader,
                trouble=trouble.get(partition),
                found_ms=bounds.asked_ms,
                session=self._session,
            )
            for partition, leader in sorted(bounds.topic.leaders.items())
        ]

    def _described(self, cluster: Cluster, topic: str) -> Topic:
        try:
            return cluster.topic(topic)
        except TopicMissing:
            if topic in COORDINATOR_TOPICS:
                raise AbsentTopic(self.name, topic) from None
            raise

    def log_starts(self, topics: Sequence[str] | None) -> LogStarts:
        """See `abilities.TellsLogStarts`. Sends Metadata and ListOffsets. Raises LogSourceError."""
        asking = AskingEnds(Cluster(self._bootstrap, self._config, self._session), topics, starts_only=True)
        try:
            asking.ask()
        except (BrokerFailure, NotAllowed) as failed:
            raise self._error(failed) from None
        return asking.starts()

    def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
        """See `abilities.TellsLogEnds`. Sends Metadata and ListOffsets.

        Offsets that are still unknown after some retries are reported as findings. So is a lost connection, if these
        brokers have answered before, because other answers are still useful. Raises LogSourceError.
        """
        has_answered = self._session.has_answered
        cluster = Cluster(self._bootstrap, self._config, self._session)
        asking = AskingEnds(cluster, topics)
        try:
            if len(topics) == 1:
                cluster.topic(topics[0])  # raises an error if the only topic is gone
            asking.ask()
        except (BrokerFailure, NotAllowed, TopicMissing) as failed:
            # The answers so far are still useful.
            if not isinstance(failed, ConnectionLost) or not (has_answered or self._session.is_over):
                raise self._error(failed) from None
            context.report(self._lost(failed))
        context.counts.note_moment("log_ends", asking.asked_ms)
        context.counts.note_moment("log_ends", now_ms())
        rights = {each: NotAllowed(cluster.who, "DESCRIBE", each) for each in asking.hidden}
        for topic in asking.faulty:
            where = f"{self.name} {topic.name}"
            context.report(
                Finding("damage", DAMAGED_LOG, str(topic.fault), "the topic has no row", topic.name, file=where)
            )
        for topic, partition, ends, unknown in asking.answers():
            context.counts.partitions += 1
            if unknown is not None and unknown.not_allowed is not None:
                rights[topic.name] = unknown.not_allowed
            elif unknown is not None:
                where = f"{self.name} {topic.name}-{partition}"
                impact = "what is unknown is null"
                context.report(Finding("damage", DAMAGED_LOG, unknown.why, impact, topic.name, partition, file=where))
            yield ends
        for right in rights.values():
            missing = MissingRight(self.name, right.who, right.operation, right.topic)
            context.report(missing.finding("the starts and ends of its logs are unknown"))

    def first_unread(self, asked: Sequence[UnreadAsked], context: Context) -> Iterator[tuple[UnreadAsked, Unread]]:
        """See `abilities.TellsFirstUnread`. Sends Fetch, which requires the READ right. Records are not counted."""
        seeks = [[Seek(each.topic, each.partition, int(offset), each.end) for offset in each.offsets] for each in asked]
        flat = [seek for of_log in seeks for seek in of_log]
        try:
            seek_first_batches(Cluster(self._bootstrap, self._config, self._session), flat)
        except BrokerFailure as failed:
            reason = UNREACHABLE_LOG if isinstance(failed, ConnectionLost) else DAMAGED_LOG
            context.report(Finding("damage", reason, failed.detail, _NO_TIMES, file=failed.address))
        for place, trouble in {seek.place: seek.trouble for seek in flat if seek.trouble is not None}.items():
            topic, partition = place
            if isinstance(trouble, NotAllowed):
                right = MissingRight(self.name, trouble.who, trouble.operation, topic)
                context.report(right.finding(_NO_TIMES))
            else:
                where = f"{self.name} {topic}-{partition}"
                context.report(Finding("damage", UNREACHABLE_LOG, trouble, _NO_TIMES, topic, partition, file=where))
        for each, of_log in zip(asked, seeks, strict=True):
            unknown = np.full(len(of_log), UNKNOWN, np.int64)
            stamps = np.array([seek.timestamp_ms for seek in of_log], np.int64)
            yield each, Unread(unknown, unknown, stamps, np.array([seek.precision for seek in of_log], np.int64))

    def cluster_answers(self, records: Collection[str]) -> ClusterAnswers:
        """See `abilities.TellsCluster`. Sends Metadata, DescribeTopicPartitions, DescribeConfigs, DescribeCluster and
        ApiVersions. A missing right is reported as a finding. Requests are sent only when the rows are read."""
        return ClusterAnswers(self._bootstrap, self._config, records, self._session)

    def retentions(self, topics: Collection[str]) -> dict[str, int]:
        """See `abilities.TellsRetentions`. Sends DescribeConfigs, which requires the DESCRIBE_CONFIGS right. Topics are
        left out if it is missing. Raises LogSourceError."""
        try:
            return retentions(Cluster(self._bootstrap, self._config, self._session), topics)
        except BrokerFailure as failed:
            raise self._error(failed) from None

    def transaction_requests(self) -> TransactionRequests:
        """An object that sends requests about transactions to these brokers, including requests to abort them."""
        return TransactionRequests(Cluster(self._bootstrap, self._config, self._session))

    def log_details(self, topics: Collection[str], columns: Collection[str], context: Context) -> Details:
        """See `log_details.TellsLogDetails`. Only the columns OPEN are available, from DescribeProducers,
        ListTransactions and DescribeTransactions (KIP-664). Coordinators are asked after the leaders, so a transaction
        that begins in between has no row. A topic that may not be read has no rows, but its last stable offset shows
        whether any are missing."""
        if set(columns).isdisjoint(OPEN.names):
            return {}
        cluster = Cluster(self._bootstrap, self._config, self._session)
        impact = "transactions that are open there have no row"
        try:
            told = active_producers(cluster, topics)
            producers = {
                each.producer_id
                for active in told.values()
                if not isinstance(active, str)
                for each in active
                if each.first_offset >= 0
            }
            entries = {each.producer_id: each for each in known_transactions(cluster, producers)}
        except BrokerFailure as failed:
            reason = UNREACHABLE_LOG if isinstance(failed, ConnectionLost) else DAMAGED_LOG
            context.report(Finding("damage", reason, failed.detail, "open transactions are unknown", file=self.name))
            return {}
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for (topic, partition), active in told.items():
            if not isinstance(active, str):
                open_here = [each for each in active if each.first_offset >= 0]
                rows = [_open_row(each, entries.get(each.producer_id)) for each in open_here]
                found[topic, partition] = {"open_producers": rows}
            elif active != NOT_AUTHORIZED:
                where = f"{self.name} {topic}-{partition}"
                context.report(Finding("damage", DAMAGED_LOG, active, impact, topic, partition, file=where))
        return found

    def _lost(self, lost: ConnectionLost) -> Finding:
        what = f"where logs end is unknown: {lost.detail}"
        return Finding("damage", UNREACHABLE_LOG, what, "topics without a response have no row", file=lost.address)

    def _error(self, failed: Exception) -> LogSourceError:
        if isinstance(failed, ConnectionLost):
            return UnreachableBrokers(failed.address, failed.detail)
        if isinstance(failed, BrokerFailure):
            return LogSourceError(failed.address, failed.detail)
        if isinstance(failed, NotAllowed):
            return MissingRight(self.name, failed.who, failed.operation, failed.topic)
        return LogSourceError(self.name, str(failed))


def _open_row(producer: ActiveProducer, entry: KnownTransaction | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "producer_id": producer.producer_id,
        "first_offset": producer.first_offset,
        "last_timestamp_ms": producer.last_timestamp_ms if producer.last_timestamp_ms >= 0 else None,
        "is_asked": True,
    }
    return row if entry is None else row | entry.columns()


def addresses_of(bootstrap: str | Sequence[str]) -> tuple[Address, ...]:
    """The brokers in `bootstrap` (see LiveBrokers). Raises ValueError and TypeError."""
    texts = arguments.texts("bootstrap", bootstrap)
    addresses = tuple(address_of(part.strip()) for text in texts for part in text.split(",") if part.strip())
    if not addresses:
        raise ValueError("no broker is given: give at least one as HOST:PORT")
    return addresses


def address_of(text: str) -> Address:
    """The host and port in `HOST:PORT`; IPv6 addresses are in brackets. Raises ValueError."""
    url = _URL.match(text)
    if url is not None:
        host_and_port = f", as {url[2]}" if ":" in url[2] else ""
        raise ValueError(
            f"{url[1]}{url[2]} is a URL: write HOST:PORT{host_and_port}; security.protocol in the configuration says "
            "whether TLS is used"
        )
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_number = port.isascii() and port.isdigit()
    if not colon or not host or not is_number or _NO_HOST.search(host):
        raise ValueError(f"invalid broker {text!r}: write HOST:PORT")
    if len(port) > 5 or not 0 < int(port) < 65536:
        raise ValueError(f"invalid broker {text!r}: the port must be between 1 and 65535")
    return host, int(port)


def config_of(given: Any) -> ClientConfig:
    """The ClientConfig for the parameter `config`. Raises ValueError, TypeError, and LogSourceError for a file."""
    if given is None:
        return ClientConfig()
    if isinstance(given, ClientConfig):
        return given
    if isinstance(given, Mapping):
        return ClientConfig.of(given)
    if not isinstance(given, str | PathLike):
        # Do not show the value, because it may contain a password.
        kind = type(given).__name__
        raise TypeError(f"config must be a ClientConfig, the path of a properties file, or a mapping, not {kind}")
    return ClientConfig.read(given)
