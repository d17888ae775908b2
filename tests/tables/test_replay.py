"""`current_offsets`, compared with a coordinator that replays the same records one after another, as Kafka's does."""

from __future__ import annotations

import random

import pytest

from kafka_records_tables import read_table
from tests.tables.topic import Topic

GROUPS = [f"g{number}" for number in range(60)]
PRODUCERS = range(4)

Stored = dict[str, tuple[int, int]]
"""By group: the place of the record in the log, and the committed offset."""


class _Coordinator:
    """The rules of `OffsetMetadataManager`: pending commits per producer until its marker comes."""

    def __init__(self) -> None:
        self.stored: Stored = {}
        self.pending: dict[int, Stored] = {producer: {} for producer in PRODUCERS}
        self.groups: set[str] = set()

    def commit(self, group: str, place: int, offset: int, producer: int | None) -> None:
        (self.stored if producer is None else self.pending[producer])[group] = (place, offset)
        self.groups.add(group)

    def delete(self, group: str) -> None:
        for kept in (self.stored, *self.pending.values()):
            kept.pop(group, None)

    def end(self, producer: int, is_commit: bool) -> None:
        for group, record in self.pending[producer].items():
            if is_commit and record > self.stored.get(group, (-1, -1)):
                self.stored[group] = record
        self.pending[producer] = {}

    def delete_group(self, group: str) -> None:
        """A coordinator writes this tombstone after those of the offsets; it does not affect offsets."""
        self.groups.discard(group)


def _random_topic(seed: int, settled_by: str) -> tuple[Topic, _Coordinator]:
    """A topic and the coordinator that has replayed it.

    Its rows show the outcome of a transaction by markers or, as in a source without markers, in words.
    """
    chance = random.Random(seed)
    topic, coordinator = Topic(), _Coordinator()
    unsettled: dict[int, list[int]] = {producer: [] for producer in PRODUCERS}

    def end(producer: int, is_commit: bool) -> None:
        if settled_by == "markers":
            topic.marker("commit" if is_commit else "abort", producer=producer)
        else:
            for place in unsettled.pop(producer):
                row = topic.rows[place]
                topic.rows[place] = (*row[:11], "committed" if is_commit else "aborted", row[12])
            unsettled[producer] = []
        coordinator.end(producer, is_commit)

    for number in range(1500):
        group = chance.choice(GROUPS)
        kind = chance.choices(["plain", "pending", "delete", "end", "delete group"], [8, 8, 4, 2, 1])[0]
        record = chance.choice(["OffsetCommit", "OffsetCommit", "LegacyOffsetCommit"])
        if kind == "plain":
            coordinator.commit(group, topic.commit(group, number, record=record), number, None)
        elif kind == "pending":
            producer = chance.choice(PRODUCERS)
            place = topic.commit(group, number, record=record, transaction="open", producer=producer)
            unsettled[producer].append(place)
            coordinator.commit(group, place, number, producer)
        elif kind == "delete":
            topic.commit(group, None, record=record)
            coordinator.delete(group)
        elif kind == "delete group":
            topic.commit(group, None)
            topic.add("GroupMetadata", {"group": group}, None)
            coordinator.delete(group)
            coordinator.delete_group(group)
        else:
            end(chance.choice(PRODUCERS), chance.random() < 0.6)
    return topic, coordinator


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("settled_by", ["markers", "words"])
def test_random_topics(seed: int, settled_by: str) -> None:
    topic, coordinator = _random_topic(seed, settled_by)
    random.Random(seed).shuffle(topic.rows)

    offsets = read_table("current_offsets", topic.table())
    groups = read_table("groups", topic.table())

    assert offsets.findings == groups.findings == ()
    found = {row["group_id"]: (row["log_offset"], row["offset"]) for row in offsets.table.to_pylist()}
    assert found == coordinator.stored
    assert set(groups.table["group_id"].to_pylist()) == coordinator.groups
