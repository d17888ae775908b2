"""Live brokers as a source: raw record batches by Fetch, as they stand in the log.

No group is joined, nothing is written, no topic is created. Batches go through the reader that reads files, so control
records, producers and transactions are seen, which clients hide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final

from kafka_records_engine import arguments
from kafka_records_engine.findings import DAMAGED_LOG, Finding
from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.sources._brokers.cluster import Address, Cluster, NotAllowed, TopicMissing, named
from kafka_records_engine.sources._brokers.failures import BrokerFailure
from kafka_records_engine.sources._brokers.log_bounds import AskingEnds, Bounds
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.known_topics import KnownTopics
from kafka_records_engine.sources.protocol import Context, LogEnds
from kafka_records_runtime.uuids import Uuid

_URL: Final = re.compile(r"([A-Za-z][\w+.-]*://)(?:[^/?#]*@)?([^/?#]*)")
_NO_HOST: Final = re.compile(r"[\s/@\\?#]")

Config = ClientConfig | Mapping[str, str] | str | PathLike[str]


class LiveBrokers:
    """The logs of a running cluster, up to the high watermarks that there are when `partitions` is called.

    Parameters
    ----------
    bootstrap
        Some brokers, `HOST:PORT[,HOST:PORT…]` or several of such texts; they tell of the others.
    config
        How to talk to them: a ClientConfig, the path of a properties file as `--command-config` of Kafka's tools takes
        it, or a mapping of such properties. Plain text without a password by default.

    Raises
    ------
    ValueError, TypeError
        For an address that is none, and for properties that cannot be obeyed.
    LogSourceError
        For a file that cannot be used.
    """

    def __init__(self, bootstrap: str | Sequence[str], config: Config | None = None) -> None:
        self._bootstrap = addresses_of(bootstrap)
        self._config = config_of(config)
        self._waited_for: dict[str, frozenset[int]] = {}
        """Partitions that were waited for in vain: asked again, they are not waited for once more."""

    def __repr__(self) -> str:
        return f"LiveBrokers({self.name!r})"

    @property
    def name(self) -> str:
        """The addresses, as one text."""
        return named(self._bootstrap)

    def topics(self) -> list[str]:
        """The names of the topics that may be described. Raises LogSourceError, also where there is none."""
        names = sorted(self._topics())
        if not names:
            raise LogSourceError(self.name, "there is no topic that may be described")
        return names

    def known_topics(self) -> KnownTopics:
        """The same by their ids, and how many partitions they have. Raises LogSourceError."""
        topics = self._topics()
        names = {str(topic_id): name for name, (topic_id, _) in topics.items()}
        return KnownTopics(names, {name: count for name, (_, count) in topics.items()})

    def _topics(self) -> dict[str, tuple[Uuid, int]]:
        try:
            return Cluster(self._bootstrap, self._config).topics()
        except BrokerFailure as failed:
            raise self._error(failed) from None

    def partitions(self, topic: str) -> list[BrokerPartition]:
        """The partitions of a topic, each from the start of its log to its high watermark of now.

        One without a leader is waited for. If nobody tells where it ends, it has `trouble`: who reads it gets a finding
        in the place of rows. Raises LogSourceError: no broker answers, the password is wrong, a right is missing, there
        is no such topic, no partition has a leader.
        """
        arguments.text("topic", topic)
        cluster = Cluster(self._bootstrap, self._config)
        waited_for = self._waited_for.get(topic, frozenset())
        try:
            bounds = Bounds(cluster, cluster.topic(topic), waited_for)
        except (BrokerFailure, NotAllowed, TopicMissing) as failed:
            raise self._error(failed) from None
        trouble = bounds.trouble
        if len(trouble) == len(bounds.topic.leaders):
            which, why = min(trouble.items())
            raise LogSourceError(self.name, f"{topic}-{which}: {why}")
        self._waited_for[topic] = frozenset(trouble)
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
            )
            for partition, leader in sorted(bounds.topic.leaders.items())
        ]

    def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
        """See `protocol.Source`: by Metadata and ListOffsets. What no leader tells, also when it is asked again, is a
        finding. Raises LogSourceError."""
        cluster = Cluster(self._bootstrap, self._config)
        try:
            if len(topics) == 1:
                cluster.topic(topics[0])  # says what is wrong with it; of many topics one may be deleted meanwhile
            asking = AskingEnds(cluster, topics)
            asking.ask()
        except (BrokerFailure, NotAllowed, TopicMissing) as failed:
            raise self._error(failed) from None
        for topic, partition, ends, trouble in asking.answers():
            context.counts.partitions += 1
            if trouble is not None:
                where = f"{self.name} {topic.name}-{partition}"
                consequence = "what it does not tell is null"
                context.report(Finding("damage", DAMAGED_LOG, trouble, consequence, topic.name, partition, file=where))
            yield ends

    def _error(self, failed: Exception) -> LogSourceError:
        if isinstance(failed, BrokerFailure):
            return LogSourceError(failed.address, failed.detail)
        return LogSourceError(self.name, str(failed))


def addresses_of(bootstrap: str | Sequence[str]) -> tuple[Address, ...]:
    """The brokers that somebody named, see LiveBrokers. Raises ValueError, TypeError."""
    texts = arguments.texts("bootstrap", bootstrap)
    addresses = tuple(address_of(part.strip()) for text in texts for part in text.split(",") if part.strip())
    if not addresses:
        raise ValueError("no broker: name one at least, HOST:PORT")
    return addresses


def address_of(text: str) -> Address:
    """The host and port in `HOST:PORT`; IPv6 addresses stand in brackets. Raises ValueError."""
    url = _URL.match(text)
    if url is not None:
        host_and_port = f", as {url[2]}" if ":" in url[2] else ""
        raise ValueError(
            f"{url[1]}{url[2]} is a URL, and brokers have none: write HOST:PORT{host_and_port}; whether TLS is spoken "
            "there says security.protocol in the configuration"
        )
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536
    if not colon or not host or not is_port or _NO_HOST.search(host):
        raise ValueError(f"{text!r} is no broker: write HOST:PORT")
    return host, int(port)


def config_of(given: Any) -> ClientConfig:
    """The configuration that somebody gave. Raises ValueError, TypeError, and LogSourceError for a file."""
    if given is None:
        return ClientConfig()
    if isinstance(given, ClientConfig):
        return given
    if isinstance(given, Mapping):
        return ClientConfig.of(given)
    if not isinstance(given, str | PathLike):
        # What it is may hold a password.
        kind = type(given).__name__
        raise TypeError(f"config is a ClientConfig, the path of a properties file, or a mapping, and no {kind}")
    return ClientConfig.read(given)
