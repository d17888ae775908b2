"""`current_offsets` against a coordinator that replays the same records one after another, as Kafka's does."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from kafka_records_tables.current_offsets import current_offsets
from kafka_records_tables.groups import groups
from tests.tables.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GROUPS = [f"g{number}" for number in range(60)]
PRODUCERS = range(4)

Stored = dict[str, tuple[int, int]]
"""Per group the place of the record in the log, and the offset it commits."""


class _Coordinator:
    """The rules of `OffsetMetadataManager`: pending commits per producer until its marker comes."""

    def __init__(self) -> None:
        self.stored: Stored = {}
        self.pending: dict[int, Stored] = {producer: {} for producer in PRODUCERS}

    def commit(self, group: str, place: int, offset: int, producer: int | None) -> None:
        (self.stored if producer is None else self.pending[producer])[group] = (place, offset)

    def delete(self, group: str) -> None:
        for kept in (self.stored, *self.pending.values()):
            kept.pop(group, None)

    def end(self, producer: int, is_commit: bool) -> None:
        for group, record in self.pending[producer].items():
            if is_commit and record > self.stored.get(group, (-1, -1)):
                self.stored[group] = record
        self.pending[producer] = {}

    def groups(self) -> set[str]:
        return {*self.stored, *(group for kept in self.pending.values() for group in kept)}


def _random_topic(seed: int) -> tuple[Topic, _Coordinator]:
    """A topic and the coordinator that has replayed it."""
    chance = random.Random(seed)
    topic, coordinator = Topic(), _Coordinator()
    unsettled: dict[int, list[int]] = {producer: [] for producer in PRODUCERS}

    def end(producer: int, is_commit: bool) -> None:
        for place in unsettled.pop(producer):
            row = topic.rows[place]
            topic.rows[place] = (*row[:11], "committed" if is_commit else "aborted", row[12])
        unsettled[producer] = []
        coordinator.end(producer, is_commit)

    for number in range(1500):
        group = chance.choice(GROUPS)
        kind = chance.choices(["plain", "pending", "delete", "end"], [4, 4, 2, 1])[0]
        record = chance.choice(["OffsetCommit", "OffsetCommit", "LegacyOffsetCommit"])
        if kind == "plain":
            coordinator.commit(group, topic.commit(group, number, record=record), number, None)
        elif kind == "pending":
            producer = chance.choice(PRODUCERS)
            place = topic.commit(group, number, record=record, transaction="open")
            unsettled[producer].append(place)
            coordinator.commit(group, place, number, producer)
        elif kind == "delete":
            topic.commit(group, None, record=record)
            coordinator.delete(group)
        else:
            end(chance.choice(PRODUCERS), chance.random() < 0.6)
    return topic, coordinator


@pytest.mark.parametrize("seed", [1, 2])
def test_random_topics(spark: SparkSession, seed: int) -> None:
    topic, coordinator = _random_topic(seed)
    random.Random(seed).shuffle(topic.rows)
    raw = topic.frame(spark)

    found = {row.group_id: (row.log_offset, row.offset) for row in current_offsets(raw).collect()}

    assert found == coordinator.stored
    assert {row.group_id for row in groups(raw).collect()} == coordinator.groups()
