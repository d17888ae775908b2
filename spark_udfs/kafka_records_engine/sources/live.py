"""Live brokers as a source: raw record batches by Fetch, as they stand in the log.

No group is joined, nothing is written, no topic is created. Batches go through the reader that reads files, so control
records, producers and transactions are seen, which clients hide.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.findings import DAMAGED_LOG, DELETED_MEANWHILE, UNREACHABLE_LOG, UNREAD_LOG, Finding, Severity
from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.log.fetched import RecordSets
from kafka_records_engine.log.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._brokers.cluster import (
    CONSUMER,
    DEBUGGER,
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Address,
    Cluster,
    GivenUp,
    NotAllowed,
    Patience,
    Topic,
    TopicMissing,
)
from kafka_records_engine.sources._brokers.failures import BrokerFailure, ConnectionLost, Refused
from kafka_records_engine.sources._brokers.fetching import EndMoved, Fetched, Fetcher, StartMoved, Unreadable
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.protocol import Context, LogEnds
from kafka_records_runtime.uuids import Uuid

Config = ClientConfig | Mapping[str, str] | str | PathLike[str]

_BYTES_PER_OFFSET: Final = 100
"""What a record takes in the topics of coordinators, roughly: brokers tell sizes to administrators only."""
_TRIES: Final = 4
_PAUSE: Final = 0.5
"""How often leaders are asked where logs end, and the seconds between: no leader at all is an answer too."""
_QUIET: Final = 5
"""How often a leader has to say that nothing follows, with pauses between, until it is asked which records it knows."""


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
    ValueError
        For an address that is none, and for properties that cannot be obeyed.
    LogSourceError
        For a file that cannot be used.
    """

    def __init__(self, bootstrap: str | Sequence[str], config: Config | None = None) -> None:
        texts = [bootstrap] if isinstance(bootstrap, str) else list(bootstrap)
        addresses = [part.strip() for text in texts for part in text.split(",") if part.strip()]
        self._bootstrap = tuple(map(address_of, addresses))
        if not self._bootstrap:
            raise ValueError("no broker: name one at least, HOST:PORT")
        self._config = config_of(config)

    def __repr__(self) -> str:
        return f"LiveBrokers({self.name!r})"

    @property
    def name(self) -> str:
        """The addresses, as one text."""
        return _named(self._bootstrap)

    def topics(self) -> list[str]:
        """The names of the topics that may be described. Raises LogSourceError, also where there is none."""
        names = sorted(self._names())
        if not names:
            raise LogSourceError(self.name, "there is no topic that may be described")
        return names

    def topic_names(self) -> dict[str, str]:
        """The same by their ids, as Kafka writes them. Raises LogSourceError."""
        return {str(topic_id): name for name, topic_id in self._names().items()}

    def _names(self) -> dict[str, Uuid]:
        try:
            return Cluster(self._bootstrap, self._config).topics()
        except BrokerFailure as failed:
            raise self._error(failed) from None

    def partitions(self, topic: str) -> list[BrokerPartition]:
        """The partitions of a topic, each from the start of its log to its high watermark of now.

        Raises LogSourceError: no broker answers, the password is wrong, a right is missing, there is no such topic.
        """
        cluster = Cluster(self._bootstrap, self._config)
        try:
            found = cluster.topic(topic)
            ends = self._offsets(cluster, topic, LATEST)
            starts = self._offsets(cluster, topic, EARLIEST)
        except (BrokerFailure, NotAllowed, TopicMissing) as failed:
            raise self._error(failed) from None
        return [
            BrokerPartition(
                self._bootstrap,
                self._config,
                topic,
                found.topic_id,
                partition,
                starts.get(partition, 0),
                end,
                found.leaders.get(partition, -1),
            )
            for partition, end in sorted(ends.items())
        ]

    def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
        """See `protocol.Source`: by Metadata and ListOffsets. What no leader tells, also when it is asked again, is a
        finding. Raises LogSourceError."""
        cluster = Cluster(self._bootstrap, self._config)
        try:
            if len(topics) == 1:
                cluster.topic(topics[0])  # says what is wrong with it; of many topics one may be deleted meanwhile
            asking = _AskingEnds(cluster, topics)
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

    def _offsets(self, cluster: Cluster, topic: str, timestamp: int) -> dict[int, int]:
        """Where the logs of all partitions end or begin, once every partition has a leader that says so."""
        patience = Patience(self._config)
        known: dict[int, int] = {}
        while True:
            try:
                found = cluster.topic(topic)
            except ConnectionLost as lost:
                # The cluster has answered before: its brokers are started anew, one after another.
                self._wait(patience, str(lost))
                continue
            unknown: dict[int, str] = {} if found.leaders else {0: "no broker tells anything of it"}
            missing = [each for each in found.leaders if each not in known]
            for partition, offset in cluster.offsets(found, missing, timestamp).items():
                if isinstance(offset, int):
                    known[partition] = offset
                else:
                    unknown[partition] = offset
            if not unknown:
                return known
            which, why = next(iter(unknown.items()))
            self._wait(patience, f"{topic}-{which}: {why}")

    def _wait(self, patience: Patience, why: str) -> None:
        try:
            patience.wait(why)
        except GivenUp as given_up:
            raise ConnectionLost(self.name, str(given_up)) from None

    def _error(self, failed: Exception) -> LogSourceError:
        if isinstance(failed, BrokerFailure):
            return LogSourceError(failed.address, failed.detail)
        return LogSourceError(self.name, str(failed))


class _AskingEnds:
    """Asks the leaders of some topics where logs begin and end, several times if some do not answer at once."""

    _QUESTIONS: Final = {
        "log_start_offset": (EARLIEST, READ_UNCOMMITTED, CONSUMER),
        "last_stable_offset": (LATEST, READ_COMMITTED, CONSUMER),
        "high_watermark": (LATEST, READ_UNCOMMITTED, CONSUMER),
        "log_end_offset": (LATEST, READ_UNCOMMITTED, DEBUGGER),
    }
    """By the member of LogEnds, in this order: what is asked later is not below what was asked before it."""

    def __init__(self, cluster: Cluster, names: Sequence[str]) -> None:
        self._cluster = cluster
        self._names = names
        self._topics: list[Topic] = []
        self._known: dict[str, dict[tuple[str, int], int]] = {name: {} for name in self._QUESTIONS}
        self._trouble: dict[tuple[str, int], str] = {}
        self._when: dict[tuple[str, int], int] = {}

    def ask(self) -> None:
        """Ask, and ask again for what was not told."""
        for tries_left in range(_TRIES - 1, -1, -1):
            self._topics = self._cluster.described(self._names)
            self._trouble = {}
            for name, question in self._QUESTIONS.items():
                self._ask_for(name, *question)
            if not self._trouble or not tries_left:
                return
            time.sleep(_PAUSE)

    def _ask_for(self, name: str, timestamp: int, isolation: int, replica: int) -> None:
        known = self._known[name]
        missing = {
            topic.name: [each for each in topic.leaders if (topic.name, each) not in known] for topic in self._topics
        }
        asked_at = time.time_ns() // 1_000_000
        answers = self._cluster.offsets_of(self._topics, missing, timestamp, isolation=isolation, replica=replica)
        for place, offset in answers.items():
            if isinstance(offset, int):
                known[place] = offset
                if name == "high_watermark":
                    self._when[place] = asked_at
            else:
                self._trouble.setdefault(place, offset)

    def answers(self) -> Iterator[tuple[Topic, int, LogEnds, str | None]]:
        """By topic and partition: what is known, and what is wrong with the rest."""
        for topic in sorted(self._topics, key=lambda topic: topic.name):
            for partition, leader in sorted(topic.leaders.items()):
                place = topic.name, partition
                address = self._cluster.address_of(leader)
                ends = LogEnds(
                    topic.name,
                    partition,
                    str(Uuid(topic.topic_id)) if topic.has_id else None,
                    high_watermark_timestamp_ms=self._when.get(place),
                    place=None if address is None else _named([address]),
                    **{name: known.get(place) for name, known in self._known.items()},
                )
                yield topic, partition, ends, self._trouble.get(place)


@dataclass(frozen=True, slots=True)
class BrokerPartition:
    """One log partition on brokers, from the offset `start` up to `end`, which is not read any more.

    Connects when it is read, from whatever process that is.
    """

    bootstrap: tuple[Address, ...]
    config: ClientConfig
    topic: str
    topic_id: bytes
    partition: int
    start: int
    end: int
    leader: int = field(default=-1, compare=False)
    """The broker that led it when it was found; -1 if none did."""

    @property
    def size(self) -> int:
        """Bytes, guessed from the number of offsets."""
        return max(self.end - self.start, 0) * _BYTES_PER_OFFSET

    @property
    def in_memory(self) -> bool:
        """Never."""
        return False

    @property
    def high_watermark(self) -> int:
        """Where the log ended when it was found, by the word of the broker. A snapshot takes it for the end of the log
        at that moment; no export has one, for nobody can tell how old it is."""
        return self.end

    def cuts(self, size: int) -> list[int]:
        """Offsets at which it can be cut into parts of about `size` bytes, as far as these can be guessed."""
        count = max(-(-self.size // size), 1)
        return [self.start + (self.end - self.start) * number // count for number in range(1, count)]

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """See `protocol.LogPartition.batches`. Raises LogSourceError where a right or the topic is missing.

        What cannot be fetched for as long as the configuration has patience is a finding, with the offsets.
        """
        context.counts.partitions += 1
        context.log_start = self.start
        wanted = replace(
            self, start=max(self.start, start or 0), end=self.end if end is None else min(self.end, max(end, 0))
        )
        yield from _Reading(wanted, context, columns, self.start).batches()
        if wanted.end < self.end:
            context.add_hole(wanted.end - 1)


class _Reading:
    """One run over a log partition."""

    def __init__(self, log: BrokerPartition, context: Context, columns: Collection[str], log_start: int) -> None:
        """`log` is what is wanted of the log partition, which starts at `log_start`."""
        self._log = log
        self._log_start = log_start
        self._context = context
        names = [name for name in columns if name in RAW_SCHEMA.names]
        self._added = "offset" not in names
        self._sets = RecordSets(
            log.topic, log.partition, [*names, "offset"] if self._added else names, self._damaged, context.add_hole
        )
        self._position = log.start
        self._quiet = 0
        self._ahead = self._skip = 0

    def batches(self) -> Iterator[Any]:
        log, context = self._log, self._context
        if log.start >= log.end:
            return
        cluster = Cluster(log.bootstrap, log.config)
        fetcher: Fetcher | None = None
        try:
            topic = self._found(cluster)
            fetcher = Fetcher(cluster, topic, log.partition)
            fetcher.ask(self._position)
            while self._position < log.end:
                yield from self._taken(fetcher, fetcher.answer())
                context.progress((self._position - log.start) * _BYTES_PER_OFFSET)
        except (NotAllowed, TopicMissing) as failed:
            raise LogSourceError(_named(log.bootstrap), str(failed)) from None
        except Refused as failed:
            raise LogSourceError(failed.address, failed.detail) from None
        except GivenUp as given_up:
            self._unread(self._position, log.end, str(given_up), reason=UNREACHABLE_LOG)
        finally:
            if fetcher is not None:
                fetcher.close()

    def _found(self, cluster: Cluster) -> Topic:
        patience = Patience(self._log.config)
        while True:
            try:
                topic = cluster.topic(self._log.topic)
            except ConnectionLost as lost:
                patience.wait(str(lost))
                continue
            if topic.topic_id != self._log.topic_id:
                raise TopicMissing(
                    f"topic {topic.name} was deleted since its logs were found, and another one has its name now"
                )
            return topic

    def _taken(self, fetcher: Fetcher, came: Fetched | StartMoved | EndMoved | Unreadable) -> Iterator[Any]:
        log = self._log
        if isinstance(came, StartMoved):
            self._start_moved(came)
            fetcher.moved()
        elif isinstance(came, EndMoved):
            # Asking again shows whether a leader that has just begun knows all of its log by now.
            fetcher.wait(f"{came.address}: the log ends before offset {self._position} now, and went up to {log.end}")
        elif isinstance(came, Unreadable):
            self._skipped(came.address, came.what)
        elif not came.data:
            self._nothing(fetcher, came)
        else:
            self._quiet = 0
            self._context.counts.bytes += len(came.data)
            taken = self._sets.take(came.data, self._place(came.address), self._position, came.high_watermark)
            before = self._position
            if taken.behind is not None:
                self._position, self._ahead, self._skip = taken.behind, 0, 0
                fetcher.moved()
            elif not (taken.is_cut and fetcher.larger()):
                self._look_ahead()
            if self._position < log.end:
                fetcher.ask(self._position + self._ahead)
            for rows in taken.rows:
                kept = self._kept(rows, before)
                if kept.num_rows:
                    yield kept
            return
        if self._position < log.end:
            fetcher.ask(self._position + self._ahead)

    def _look_ahead(self) -> None:
        """Nothing that was sent could be used, which is told: what is further on may be sound."""
        self._ahead = 2 * self._ahead or 1
        if self._position + self._ahead >= self._log.end:
            self._position = self._log.end

    def _kept(self, rows: Any, position: int) -> Any:
        """Only the rows that were asked for: a batch is sent whole, and one may hold offsets before and behind."""
        offsets = rows.column("offset").to_numpy()
        if len(offsets) and (offsets[0] < position or offsets[-1] >= self._log.end):
            rows = rows.filter(pa.array((offsets >= position) & (offsets < self._log.end)))
        return rows.select(rows.schema.names[:-1]) if self._added else rows

    # -- what is not there ---------------------------------------------------------------------------------------------

    def _nothing(self, fetcher: Fetcher, came: Fetched) -> None:
        """The leader sends no record from here on, and its high watermark is further on.

        That is so where a cleaner took all of them away. The leader is asked for the records it knows by their
        timestamps too: as long as it names one that it does not send, it is asked again, and in the end that is damage.
        """
        log = self._log
        if came.high_watermark < log.end:
            fetcher.wait(f"{came.address}: the log goes up to {came.high_watermark} now, and went up to {log.end}")
            return
        silence = f"{came.address}: no record is sent from offset {self._position} on"
        if came.is_throttled:
            fetcher.wait(f"{silence}, as the broker asks for a pause")
            return
        self._quiet += 1
        if self._quiet < _QUIET:
            fetcher.wait(f"{silence}, and the log went up to {log.end}")
            return
        named = fetcher.record_named()
        if named is not None:
            fetcher.wait(f"{silence}, although there is one at offset {named}")
            return
        what = f"the leader has no record at {_spoken(self._position, log.end)}"
        self._find("note", UNREAD_LOG, what, "a cleaner may have taken all of them away", came.address)
        self._position = log.end

    def _start_moved(self, came: StartMoved) -> None:
        first, behind = self._position, min(came.log_start, self._log.end)
        what = f"{_offsets(first, behind)} deleted while the log was read: it starts at {came.log_start} now"
        self._find("note", DELETED_MEANWHILE, what, "the answer does not have them", came.address)
        self._sets.add_hole(first - 1)
        if first == self._log_start:
            self._context.log_start = behind
        self._position, self._ahead = behind, 0

    def _skipped(self, address: str, what: str) -> None:
        self._skip = 2 * self._skip or 1
        behind = min(self._position + self._skip, self._log.end)
        self._unread(self._position, behind, f"the broker cannot read its own log: {what}", address)
        self._position, self._ahead = behind, 0

    def _unread(self, first: int, behind: int, why: str, address: str | None = None, reason: str = DAMAGED_LOG) -> None:
        consequence = f"{_offsets(first, behind)} not read"
        self._find("damage", reason, why, consequence, address, base_offset=first)
        self._sets.add_hole(first - 1)

    def _damaged(self, found: Finding) -> None:
        # Which byte of an answer it is would tell nobody anything.
        self._context.report(replace(found, topic=self._log.topic, partition=self._log.partition, position=None))

    def _find(
        self,
        severity: Severity,
        reason: str,
        what: str,
        consequence: str,
        address: str | None,
        base_offset: int | None = None,
    ) -> None:
        place = self._place(address or _named(self._log.bootstrap))
        topic, partition = self._context.topic, self._context.partition
        self._context.report(
            Finding(severity, reason, what, consequence, topic, partition, file=place, base_offset=base_offset)
        )

    def _place(self, address: str) -> str:
        return f"{address} {self._log.topic}-{self._log.partition}"


def address_of(text: str) -> Address:
    """The host and port in `HOST:PORT`; IPv6 addresses stand in brackets. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is no broker: write HOST:PORT")
    return host, int(port)


def config_of(given: Config | None) -> ClientConfig:
    """The configuration that somebody gave. Raises ValueError, and LogSourceError for a file."""
    if given is None:
        return ClientConfig()
    if isinstance(given, ClientConfig):
        return given
    if isinstance(given, Mapping):
        return ClientConfig.of(given)
    return ClientConfig.read(given)


def _named(addresses: Sequence[Address]) -> str:
    return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses)


def _spoken(first: int, behind: int) -> str:
    return f"offset {first}" if behind - first == 1 else f"offsets {first} to {behind - 1}"


def _offsets(first: int, behind: int) -> str:
    return f"{_spoken(first, behind)} {'is' if behind - first == 1 else 'are'}"
