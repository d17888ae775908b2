"""The scene on which incidents are played: a cluster with one broker, its clients, and a random source."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tools.broker import Broker
from tools.incidents.crew import Crew
from tools.incidents.names import Names
from tools.incidents.truth import Truth

SETTINGS: Final[Mapping[str, str]] = {
    # Sessions, checks and delays in seconds rather than minutes: a case lasts one or two minutes.
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "500",
    "offsets.topic.num.partitions": "4",
}


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass
class Company:
    """Healthy groups around the case."""

    groups: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    """The names of the consumers, for `stop`."""
    latest: list[str] = field(default_factory=list)
    """The groups that start at the end of a log."""


class Scene:
    """A running broker, clients, names, and a random source."""

    def __init__(self, broker: Broker, crew: Crew, random: Random) -> None:
        self.broker = broker
        self.crew = crew
        self.random = random
        self.names = Names(random)
        self.company = Company()
        self._producers = 0

    def wait(self, low: float, high: float) -> None:
        """Let a random number of seconds pass."""
        time.sleep(self.random.uniform(low, high))

    def topic(self, partitions: int, **config: str) -> str:
        """Create a topic with a random name; `config` has underscores instead of dots."""
        name = self.names.topic()
        self.create(name, partitions, **config)
        return name

    def create(self, name: str, partitions: int, **config: str) -> None:
        """Create a topic of this name."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.crew.ask("create", topic=name, partitions=partitions, config=settings)

    def producer(self, topics: Sequence[str], rate: float, partitions: int = 0, **more: object) -> str:
        """Start a producer; with `partitions`, these are filled in turn; otherwise keys determine the partitions."""
        self._producers += 1
        name = str(more.pop("name", f"{topics[0]}-producer-{self._producers}"))
        seed = self.random.randrange(10**6)
        self.crew.ask("produce", name=name, topics=list(topics), rate=rate, spread=partitions, seed=seed, **more)
        return name

    def fill(self, topic: str, records: int, partitions: int) -> None:
        """Write this number of records at once, and wait until they are written."""
        started = now()
        name = self.producer([topic], 2e6, partitions, limit=records)
        self.crew.wait_for("written", [name], since=started)

    def consumer(self, name: str, group: str, topics: Sequence[str], protocol: str = "classic", **more: Any) -> str:
        """Start a consumer; `config` has its properties; `Reader.java` explains the other arguments."""
        config = {"group.protocol": protocol, **more.pop("config", {})}
        if protocol == "classic":
            config = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000", **config}
        self.crew.ask("consume", name=name, group=group, topics=list(topics), config=config, **more)
        return name

    def stop(self, name: str, how: str = "leave") -> None:
        """Stop a client: `leave`, or `vanish` without leaving its group."""
        self.crew.ask("stop", name=name, how=how)

    def change(self, name: str, **what: object) -> None:
        """Change how a client behaves: `pause` between records in ms, `stalled`, `refused`."""
        self.crew.ask("set", name=name, **what)

    def surround(self, count: int) -> None:
        """Start `count` healthy applications of all kinds."""
        kinds: list[Callable[[], None]] = [self._classic, self._modern, self._share, self._copier]
        chosen = [kinds[index % len(kinds)] if index < len(kinds) else self.random.choice(kinds[:2] * 2 + kinds[2:])
                  for index in range(count)]  # fmt: skip
        self.random.shuffle(chosen)
        for start in chosen:
            start()

    def read_twice(self, group: str) -> int:
        """The number of records that the clients of a group got again, as they counted."""
        return sum(place["twice"] for place in self.crew.ask("ledger", group=group).values())

    def jumped(self, group: str) -> tuple[int, list[int]]:
        """The number of records of a topic without transactions or compaction that a group has skipped, and when."""
        jumps = [jump for place in self.crew.ask("ledger", group=group).values() for jump in place["jumps"]]
        forward = [jump for jump in jumps if jump["to"] > jump["from"]]
        return sum(jump["to"] - jump["from"] for jump in forward), sorted(jump["at"] for jump in forward)

    def unread(self, group: str, topics: Sequence[str]) -> int:
        """The number of records between the committed offsets of a group and the ends of topics."""
        committed = self.crew.ask("committed", group=group)
        return sum(end - committed.get(place, 0) for place, end in self.crew.offsets("ends", topics).items())

    def finish(self, truth: Truth) -> None:
        """Add the final state to the truth."""
        topics = sorted({*self.company.topics, *truth.topics})
        truth.recorded_at = now()
        truth.details.setdefault("company", self.company.groups)
        truth.details["crashed"] = sorted({each.name for each in self.crew.seen("crashed", self.company.members)})
        known = [topic for topic in topics if topic not in truth.details.get("deleted", ())]
        truth.details["ends"] = dict(self.crew.offsets("ends", known)) if known else {}

    def _feed(self) -> tuple[str, int]:
        partitions = self.random.randint(1, 4)
        topic = self.topic(partitions)
        self.company.topics.append(topic)
        self.producer([topic], self.random.uniform(2, 12), partitions, size=self.random.randint(20, 60))
        return topic, partitions

    def _classic(self, protocol: str = "classic") -> None:
        topic, partitions = self._feed()
        group = self.names.group()
        self.company.groups.append(group)
        latest = self.random.random() < 0.25
        if latest:
            self.company.latest.append(group)
        config = {"auto.offset.reset": "latest" if latest else "earliest"}
        for number in range(self.random.randint(1, min(2, partitions))):
            commit = self.random.randint(500, 2000)
            name = self.consumer(f"{group}-{number}", group, [topic], protocol, commit=commit, config=config)
            self.company.members.append(name)

    def _modern(self) -> None:
        self._classic("consumer")

    def _share(self) -> None:
        topic, _ = self._feed()
        group = self.names.group()
        self.company.groups.append(group)
        earliest = {"share.auto.offset.reset": "earliest"}
        self.crew.ask("configure", type="GROUP", resource=group, config=earliest)
        name = f"{group}-0"
        self.crew.ask("share", name=name, group=group, topics=[topic])
        self.company.members.append(name)

    def _copier(self) -> None:
        topic, _ = self._feed()
        out = self.topic(1)
        self.company.topics.append(out)
        group = self.names.group()
        self.company.groups.append(group)
        name = f"{group}-0"
        length = self.random.randint(0, 200)
        self.crew.ask(
            "copy", name=name, group=group, topics=[topic], to=out, transactional=f"{group}-tx-0",
            transaction=length, pause=self.random.randint(200, 900), restart=1500,
        )  # fmt: skip
        self.company.members.append(name)
        after = self.names.group()
        self.company.groups.append(after)
        committed = {"isolation.level": "read_committed"}
        self.company.members.append(self.consumer(f"{after}-0", after, [out], config=committed))
