"""Logs that grow and are cleaned between the runs of a snapshot, made of histories; importable by other processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.protocol import LogPartition
from kafka_records_engine.sources.question import Question
from kafka_records_engine.sources.snapshots import Snapshot
from tests.tables.histories import history
from tests.tables.topic import Topic
from tools.judge.cleaner import CleanedLog, Row, cleaned, last_stable, table_of

TOPIC = "__consumer_offsets"


@dataclass(frozen=True)
class LiveLog(CleanedLog):
    """A log whose end is known from a broker."""

    high_watermark: int = 0


@dataclass(frozen=True)
class Logs:
    """Some log partitions as a source."""

    logs: tuple[CleanedLog, ...]
    name: str = "the test"

    def topics(self) -> list[str]:
        """The only topic."""
        return sorted({log.topic for log in self.logs})

    def partitions(self, topic: str) -> list[CleanedLog]:
        """The partitions of a topic."""
        return [log for log in self.logs if log.topic == topic]


@dataclass(frozen=True)
class Moment:
    """A log as it was when a snapshot was taken."""

    end: int
    """The offset after the last record that had been written."""
    rows: list[Row]
    """The rows that a cleaner had left."""
    active: int
    """The base offset of the active segment."""
    partition: int = 0

    @property
    def time(self) -> int:
        """The timestamp of the last record."""
        time: int = self.rows[-1]["timestamp_ms"]
        return time

    @property
    def table(self) -> pa.Table:
        """The rows in Arrow."""
        return table_of([{**row, "partition": self.partition} for row in self.rows])

    def log(self) -> CleanedLog:
        """The log as in files."""
        return CleanedLog(self.table, TOPIC, self.active, partition=self.partition)

    def live(self) -> LiveLog:
        """The log as on a broker."""
        return LiveLog(self.table, TOPIC, self.active, partition=self.partition, high_watermark=self.end)


def moments(name: str, chance: Random, most: int = 6, partition: int = 0) -> Iterator[Moment]:
    """A growing history, at random moments. In between, a cleaner cleans it, and removes tombstones and markers at once
    or later."""
    whole = history(name).rows.to_pylist()
    cuts = sorted(
        {*chance.sample(range(5, len(whole)), min(chance.randrange(2, most + 1), len(whole) - 6)), len(whole)}
    )
    takes_tombstones = chance.random() < 0.7
    rows: list[Row] = []
    written = active = cleaned_to = 0
    for cut in cuts:
        steps = chance.randrange(1, 4)
        for step in range(steps):
            to = cut if step == steps - 1 else min(cut, written + max(1, (cut - written) // 2))
            rows, written = rows + whole[written:to], to
            active = max(active, chance.randrange(active, written)) if active < written else active
            stable = min(active, last_stable(rows))
            if chance.random() < 0.8 and stable > cleaned_to:
                cleaned_to = chance.randrange(cleaned_to, stable + 1) if chance.random() < 0.5 else stable
                horizon = cleaned_to if takes_tombstones else chance.choice([0, cleaned_to, cleaned_to // 2])
                rows = cleaned(rows, cleaned_to, horizon)
        yield Moment(cut, list(rows), active, partition)


def rows_of(log: LogPartition, as_of_ms: int | None = None, history: bool = True) -> pa.Table:
    """All raw rows of a log partition, by default those for a table of history."""
    context = Context(log.topic, log.partition, Question(as_of_ms=as_of_ms), history=history)
    return pa.Table.from_batches(log.batches(context, RAW_SCHEMA.names), RAW_SCHEMA)


def all_rows(source: Any, topic: str = TOPIC) -> list[dict[str, Any]]:
    """The raw rows of all partitions of a topic."""
    return [row for log in source.partitions(topic) for row in rows_of(log).to_pylist()]


def files_in(root: Path, topic: str = TOPIC, partition: int = 0) -> list[str]:
    """The names of the files with records of a partition, as a listing has them."""
    return sorted(path.name for path in (root / f"topic={topic}" / f"partition={partition}").iterdir())


def findings_of(root: Path, as_of_ms: int | None = None, history: bool = True) -> list[Finding]:
    """The findings of reading a snapshot."""
    (log,) = Snapshot(root).partitions(TOPIC)
    context = Context(log.topic, log.partition, Question(as_of_ms=as_of_ms), history=history)
    for _ in log.batches(context, RAW_SCHEMA.names):
        pass
    return [*context.findings]


def log_of(topic: Topic, up_to: int | None = None, **settings: Any) -> Logs:
    """A synthetic topic up to an offset, as a source with one partition."""
    rows = topic.table()
    kept = rows if up_to is None else rows.filter(pc.less(rows["offset"], up_to))
    return Logs((CleanedLog(kept, TOPIC, **{"cleaned_up_to": 0, **settings}),))


def commits(count: int, group: str = "g") -> Topic:
    """A topic in which one group commits again and again."""
    topic = Topic()
    for number in range(count):
        topic.commit(group, number)
    return topic
