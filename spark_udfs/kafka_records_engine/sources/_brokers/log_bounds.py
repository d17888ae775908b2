"""Where logs begin and end, by the word of their leaders."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from kafka_records_engine.sources._brokers.cluster import (
    CONSUMER,
    DEBUGGER,
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Cluster,
    GivenUp,
    Patience,
    Topic,
    named,
)
from kafka_records_engine.sources._brokers.failures import ConnectionLost
from kafka_records_engine.sources.protocol import LogEnds
from kafka_records_runtime.uuids import Uuid

_TRIES: Final = 4
_PAUSE: Final = 0.5
"""How often leaders are asked where logs end, and the seconds between: no leader at all is an answer too."""


class Bounds:
    """Where the logs of all partitions of a topic begin, and their high watermarks.

    Every partition is waited for, for as long as the configuration has patience. `trouble` has those whose leader did
    not say it by then, and why; `given_up` names those that were waited for before, in vain, and are asked once.
    Raises ConnectionLost where no broker answers, and what `Cluster.topic` raises.
    """

    def __init__(self, cluster: Cluster, topic: Topic, given_up: Collection[int] = ()) -> None:
        self._cluster = cluster
        self._given_up = given_up
        self.topic = topic
        self.trouble: dict[int, str] = {}
        self.ends = self._asked(LATEST)
        self.starts = self._asked(EARLIEST)

    def _asked(self, timestamp: int) -> dict[int, int]:
        patience = Patience(self._cluster.config)
        known: dict[int, int] = {}
        while True:
            unknown: dict[int, str] = {}
            missing = [each for each in self.topic.leaders if each not in known and each not in self.trouble]
            for partition, offset in self._cluster.offsets(self.topic, missing, timestamp).items():
                if isinstance(offset, int):
                    known[partition] = offset
                else:
                    unknown[partition] = offset
            awaited = [each for each in unknown if each not in self._given_up]
            if self.topic.leaders and not awaited:
                self.trouble |= unknown
                return known
            why = f"{self.topic.name}: no broker tells anything of it"
            if awaited:
                why = f"{self.topic.name}-{awaited[0]}: {unknown[awaited[0]]}"
            try:
                patience.wait(why)
            except GivenUp as over:
                if not self.topic.leaders:
                    raise ConnectionLost(named(self._cluster.bootstrap), str(over)) from None
                self.trouble |= {which: f"{why}, for {patience.limit:g} s" for which, why in unknown.items()}
                return known
            self._look_again(patience)

    def _look_again(self, patience: Patience) -> None:
        """Ask who leads now. The cluster has answered before: its brokers may be started anew, one after another."""
        while True:
            try:
                self.topic = self._cluster.topic(self.topic.name)
            except ConnectionLost as lost:
                try:
                    patience.wait(str(lost))
                except GivenUp as over:
                    raise ConnectionLost(named(self._cluster.bootstrap), str(over)) from None
            else:
                return


class AskingEnds:
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
                    place=None if address is None else named([address]),
                    **{name: known.get(place) for name, known in self._known.items()},
                )
                yield topic, partition, ends, self._trouble.get(place)
