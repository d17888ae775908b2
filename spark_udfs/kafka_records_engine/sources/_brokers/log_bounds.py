"""Asks leaders where logs begin and end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kafka_records_engine.sources._brokers.cluster import (
    CONSUMER,
    DEBUGGER,
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Cluster,
    Topic,
    UnknownOffset,
    named,
)
from kafka_records_engine.sources._brokers.failures import BrokerFailure, ConnectionLost, TopicUnavailable
from kafka_records_engine.sources._brokers.patience import GivenUp, Patience
from kafka_records_engine.sources.protocol import LogEnds, LogStarts
from kafka_records_engine.sources.time_limit import now_ms
from kafka_records_engine.sources.waiting import pause
from kafka_records_runtime.kafka.uuids import Uuid

_TRIES: Final = 4
_PAUSE: Final = 0.5
"""The number of seconds between two requests for log ends. "No leader" also counts as an answer."""


class Bounds:
    """Where the logs of all partitions of a topic begin, and their high watermarks.

    Waits for every partition, up to `default.api.timeout.ms`. If all remaining partitions have timed out before, their
    leaders are asked only once. `trouble` contains the partitions whose leader did not answer in time, with the reason.
    Raises ConnectionLost if no broker answers, and the errors of `Cluster.topic`.
    """

    def __init__(self, cluster: Cluster, topic: Topic) -> None:
        self._cluster = cluster
        self.topic = topic
        self.trouble: dict[int, str] = {}
        self.asked_ms = now_ms()
        """When the ends were first requested, in milliseconds since 1970."""
        self.ends = self._ask(LATEST)
        self.starts = self._ask(EARLIEST)

    def _ask(self, timestamp: int) -> dict[int, int]:
        known: dict[int, int] = {}
        waits: dict[int | None, Patience] = {}
        while True:
            missing = [each for each in self.topic.leaders if each not in known and each not in self.trouble]
            if self.topic.leaders and not missing:
                return known
            asked = self._waits(waits, missing)
            try:
                for each in asked.values():
                    each.begin()
                self._cluster.until = max(each.until for each in asked.values())
                unknown: dict[int, UnknownOffset] = {}
                for partition, offset in self._cluster.offsets(self.topic, missing, timestamp).items():
                    if isinstance(offset, int):
                        known[partition] = offset
                    else:
                        unknown[partition] = offset
                self._wait(asked, unknown)
            except GivenUp as over:
                if not known:
                    raise ConnectionLost(named(self._cluster.bootstrap), str(over)) from None
                self.trouble |= {each: str(over) for each in missing if each not in known}

    def _waits(self, waits: dict[int | None, Patience], missing: Sequence[int]) -> Mapping[int | None, Patience]:
        """The wait for each of the given partitions or, if there are none, the wait for the topic's partitions."""
        partitions: list[int | None] = [*missing] or [None]
        for partition in partitions:
            if partition not in waits:
                name = self.topic.name if partition is None else f"{self.topic.name}-{partition}"
                waits[partition] = Patience(
                    self._cluster.config, self._cluster.session, name, target=(self.topic.name, partition)
                )
            leader = -1 if partition is None else self.topic.leaders[partition]
            waits[partition].leader = None if leader < 0 else leader
        return {each: waits[each] for each in partitions}

    def _wait(self, waits: Mapping[int | None, Patience], unknown: Mapping[int, UnknownOffset]) -> None:
        """Wait before repeating the request for the unknown partitions, and look up their leaders. Partitions that
        timed out are added to `trouble`. Raises GivenUp if no broker answers any more."""
        if not self.topic.leaders:
            why = "no broker names its partitions"
            waits[None].wait(why, broker_failed=True)
            self._look_again(waits[None])
            return
        if all(waits[each].has_timed_out for each in unknown):
            for partition, offset in unknown.items():
                waits[partition].note_timeout(broker_failed=offset.broker_failed)
                self.trouble[partition] = offset.why
            return
        for partition, offset in unknown.items():
            try:
                waits[partition].check(offset.why, broker_failed=offset.broker_failed)
            except GivenUp as over:
                self.trouble[partition] = str(over)
        left = [each for each in unknown if each not in self.trouble]
        if left:
            waits[left[0]].pause(unknown[left[0]].why)
            self._look_again(waits[left[0]])

    def _look_again(self, patience: Patience) -> None:
        """Ask who leads now. The cluster has answered before, so its brokers may be restarting one after another.
        Raises GivenUp."""
        while True:
            self._cluster.until = patience.until
            try:
                self.topic = self._cluster.topic(self.topic.name)
            except ConnectionLost as lost:
                patience.wait(str(lost), broker_failed=not isinstance(lost, TopicUnavailable))
            else:
                return


class AskingEnds:
    """Asks the leaders of the given topics where logs begin and end. Leaders that do not answer are asked again."""

    _QUESTIONS: Final = {
        "log_start_offset": (EARLIEST, READ_UNCOMMITTED, CONSUMER),
        "last_stable_offset": (LATEST, READ_COMMITTED, CONSUMER),
        "high_watermark": (LATEST, READ_UNCOMMITTED, CONSUMER),
        "log_end_offset": (LATEST, READ_UNCOMMITTED, DEBUGGER),
    }
    """Keyed by the member of LogEnds. The order matters: an offset requested later is not below one requested
    earlier."""

    def __init__(self, cluster: Cluster, names: Sequence[str] | None, *, starts_only: bool = False) -> None:
        """`names` are topics; None for all. With `starts_only`, only log starts are requested."""
        self._cluster = cluster
        self._names = names
        self._asked = ("log_start_offset",) if starts_only else tuple(self._QUESTIONS)
        self._topics: list[Topic] = []
        self._known: dict[str, dict[tuple[str, int], int]] = {name: {} for name in self._asked}
        self._trouble: dict[tuple[str, int], UnknownOffset] = {}
        self._when: dict[tuple[str, int], int] = {}
        self.asked_ms = now_ms()
        """When the first request was sent, in milliseconds since 1970."""
        self.hidden: list[str] = []
        """The given topics that this user may not describe."""

    def ask(self) -> None:
        """Send the requests, and repeat unanswered ones. Raises BrokerFailure if no broker answers."""
        for tries_left in range(_TRIES - 1, -1, -1):
            try:
                topics = self._cluster.described(self._names)
                described = {each.name for each in topics}
                hidden = self._cluster.hidden([each for each in self._names or () if each not in described])
            except BrokerFailure:
                if not self._topics:
                    raise
                return  # the answers of the last attempt are still useful
            self._topics, self.hidden = topics, hidden
            self._trouble = {}
            for name in self._asked:
                self._ask_for(name, *self._QUESTIONS[name])
            if not self._may_change() or not tries_left or self._cluster.session.is_over:
                return
            pause(_PAUSE)

    def _may_change(self) -> bool:
        """Whether repeating requests can help. It cannot if a right is missing."""
        return any(each.not_allowed is None for each in self._trouble.values())

    @property
    def faulty(self) -> list[Topic]:
        """Topics about which brokers give invalid answers. Their offsets are not requested."""
        return [each for each in self._topics if each.fault is not None]

    @property
    def _sound(self) -> list[Topic]:
        return [each for each in self._topics if each.fault is None]

    def _ask_for(self, name: str, timestamp: int, isolation: int, replica: int) -> None:
        known = self._known[name]
        missing = {
            topic.name: [each for each in topic.leaders if (topic.name, each) not in known] for topic in self._sound
        }
        asked_at = now_ms()
        answers = self._cluster.offsets_of(self._sound, missing, timestamp, isolation=isolation, replica=replica)
        for place, offset in answers.items():
            if isinstance(offset, int):
                known[place] = offset
                if name == "high_watermark":
                    self._when[place] = asked_at
            else:
                self._trouble.setdefault(place, offset)

    def starts(self) -> LogStarts:
        """The known log starts, and the reasons why other starts are unknown."""
        ids = {topic.name: _id_of(topic) for topic in self._topics}
        known = self._known["log_start_offset"]
        offsets = {(topic, partition): (ids[topic], offset) for (topic, partition), offset in known.items()}
        trouble = {place: offset.why for place, offset in self._trouble.items()}
        trouble |= {(topic.name, each): str(topic.fault) for topic in self.faulty for each in topic.leaders}
        return LogStarts(offsets, trouble, self.asked_ms)

    def answers(self) -> Iterator[tuple[Topic, int, LogEnds, UnknownOffset | None]]:
        """For each topic and partition: the known values, and the reasons why values are unknown."""
        for topic in sorted(self._sound, key=lambda topic: topic.name):
            for partition, leader in sorted(topic.leaders.items()):
                place = topic.name, partition
                address = self._cluster.address_of(leader)
                known: dict[str, Any] = {name: of_all.get(place) for name, of_all in self._known.items()}
                ends = LogEnds(
                    topic.name,
                    partition,
                    _id_of(topic),
                    high_watermark_timestamp_ms=self._when.get(place),
                    place=None if address is None else named([address]),
                    **known,
                )
                yield topic, partition, ends, self._trouble.get(place)


def _id_of(topic: Topic) -> str | None:
    return str(Uuid(topic.topic_id)) if topic.has_id else None
