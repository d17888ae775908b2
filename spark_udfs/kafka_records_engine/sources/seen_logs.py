"""Stores the brokers' answers about the logs that a run read. If brokers later give the same answers, nothing has
changed. The module loads neither numpy nor pyarrow, so a program can check this before it loads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._brokers.cluster import Address, Cluster, NotAllowed, TopicMissing
from kafka_records_engine.sources._brokers.log_bounds import AskingEnds, Bounds
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources._stored.locking import locked_directory
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_engine.sources.protocol import LogEnds, LogStarts
from kafka_records_engine.sources.time_limit import TimeLimit
from kafka_records_runtime.errors import KafkaRecordsError

_Place = tuple[str, int]


@dataclass(slots=True)
class SeenLogs:
    """The brokers' answers in a run so far."""

    is_whole: bool = True
    """Whether all answers of the run are stored here."""
    has_answer: bool = False
    """Whether the result of the run depends only on these answers."""
    until_ms: int | None = None
    """When a log partition must be reread from its start, in milliseconds since 1970."""
    _read: dict[_Place, tuple[Any, ...]] = field(default_factory=dict)
    _ends: dict[_Place, tuple[Any, ...]] = field(default_factory=dict)
    _starts: LogStarts = field(default_factory=lambda: LogStarts({}))
    _topics: tuple[Any, ...] | None = None
    _names: list[str] | None = None
    _rights: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def note_read(self, topic: str, partition: int, topic_id: bytes, start: int, end: int) -> None:
        """Record that the records of a log partition were read up to its end."""
        self._read[topic, partition] = (topic_id.hex(), start, end)

    def note_ends(self, ends: LogEnds) -> None:
        """Record the end of a log."""
        offsets = (ends.log_start_offset, ends.last_stable_offset, ends.high_watermark, ends.log_end_offset)
        self._ends[ends.topic, ends.partition] = (ends.topic_id, *offsets, ends.place)

    def note_starts(self, starts: LogStarts) -> None:
        """Record the log starts before records are read."""
        self._starts = starts
        self.is_whole &= not starts.trouble

    def note_topics(self, known: KnownTopics) -> None:
        """Record all topics of the cluster."""
        self._topics = sorted(known.names.items()), sorted(known.partition_counts.items())

    def note_names(self, names: Iterable[str]) -> None:
        """Record the names of all topics of the cluster."""
        self._names = sorted(names)

    def note_rights(self, topics: Iterable[str], hidden: Iterable[str]) -> None:
        """Record which of the given topics may not be described."""
        self._rights[tuple(sorted(topics))] = sorted(hidden)

    # -- to keep -------------------------------------------------------------------------------------------------------

    @property
    def questions(self) -> dict[str, Any]:
        """The requests whose answers can be compared with these, as JSON values."""
        return {
            "read": sorted({topic for topic, _ in self._read}),
            "ends": sorted({topic for topic, _ in self._ends}),
            "topics": self._topics is not None,
            "names": self._names is not None,
            "rights": sorted(map(list, self._rights)),
        }

    @property
    def records(self) -> str:
        """A digest that is equal for equal records."""
        return _digest(sorted(self._read.items()))

    @property
    def everything(self) -> str:
        """A digest that is equal for equal answers."""
        ends = sorted(self._ends.items())
        starts = [self._starts.offsets.get(place, (known[0], known[1])) for place, known in ends]
        return _digest(
            [sorted(self._read.items()), ends, starts, self._topics, self._names, sorted(self._rights.items())]
        )


@contextmanager
def unchanged_state(
    state: str,
    bootstrap: Sequence[Address],
    config: str | None,
    limit: TimeLimit,
    questions: Mapping[str, Any],
    seen: tuple[str, str],
) -> Iterator[bool]:
    """Whether brokers still give the same answers as in a SeenLogs. False also if this is unknown.

    `config` is a properties file, `seen` are the digests of the SeenLogs. Within the context, no other run can use the
    directory `state`, so the output of a later run is not overwritten.
    """
    with ExitStack() as stack:
        try:
            busy = LogSourceError(state, "another run uses it")
            stack.enter_context(locked_directory(state, "state", busy, lambda root: None))
            settings = ClientConfig() if config is None else ClientConfig.read(config)
            is_unchanged = _is_unchanged(Cluster(bootstrap, settings, Session(limit)), questions, *seen)
        except (KafkaRecordsError, NotAllowed, TopicMissing, OSError, ValueError):
            is_unchanged = False
        yield is_unchanged


def _is_unchanged(cluster: Cluster, questions: Mapping[str, Any], records: str, everything: str) -> bool:
    """Compare the logs whose records were read first, so that nothing else is requested on a busy cluster."""
    seen = SeenLogs()
    for name in questions["read"]:
        topic = cluster.topic(name)
        bounds = Bounds(cluster, topic)
        if bounds.trouble or topic.may_be_read is False:
            return False
        for each in bounds.topic.leaders:
            seen.note_read(name, each, bounds.topic.topic_id, bounds.starts[each], bounds.ends[each])
    if seen.records != records:
        return False
    if questions["ends"]:
        asking = AskingEnds(cluster, questions["ends"])
        asking.ask()
        if asking.hidden or asking.faulty:
            return False
        for _, _, ends, unknown in asking.answers():
            if unknown is not None:
                return False
            seen.note_ends(ends)
    if questions["topics"] or questions["names"]:
        topics = cluster.topics()
        if questions["topics"]:
            names = {str(topic_id): name for name, (topic_id, _) in topics.items()}
            seen.note_topics(KnownTopics(names, {name: count for name, (_, count) in topics.items()}))
        if questions["names"]:
            seen.note_names(topics)
    for asked in questions["rights"]:
        seen.note_rights(asked, cluster.hidden(asked))
    return seen.everything == everything


def _digest(value: Any) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()
