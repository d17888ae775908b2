"""Partitions replayed in columns equal those replayed record by record, for any log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka_records.cluster_metadata import encode_record
from kafka_records.cluster_metadata.clear_elr_record import ClearElrRecord
from kafka_records.cluster_metadata.partition_change_record import PartitionChangeRecord
from kafka_records.cluster_metadata.partition_record import PartitionRecord
from kafka_records.cluster_metadata.remove_topic_record import RemoveTopicRecord
from kafka_records.cluster_metadata.topic_record import TopicRecord
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables.tables.cluster import partition_replay
from kafka_records_tables.tables.partitions import TABLE
from kafka_records_tables.tables.readers.partitions import Reader
from tests.log.logs import batch, record

TOPIC = "__cluster_metadata"
SEEDS = range(24)


def random_records(random: Random, count: int) -> Iterator[Any]:
    ids = [Uuid(random.randbytes(16)) for _ in range(4)]

    def brokers() -> tuple[int, ...]:
        return tuple(random.sample(range(9), random.randint(0, 3)))

    def maybe() -> tuple[int, ...] | None:
        return random.choice((None, brokers()))

    for _ in range(count):
        which, partition = random.choice(ids), random.randrange(4)
        (kind,) = random.choices(range(5), (9, 1, 2, 18, 40))
        if kind == 0:
            yield TopicRecord(f"topic-{ids.index(which) % 3}", which)
        elif kind == 1:
            yield RemoveTopicRecord(which)
        elif kind == 2:
            yield ClearElrRecord(random.choice(("", "topic-0", "topic-1")))
        elif kind == 3:
            made, elr, leader = brokers(), maybe(), random.randrange(-1, 3)
            yield PartitionRecord(
                partition, which, made, made[:1], leader=leader, leader_epoch=7, eligible_leader_replicas=elr
            )
        else:
            isr, replicas, elr, leader = maybe(), maybe(), maybe(), random.choice((-2, -1, 0, 1))
            yield PartitionChangeRecord(
                partition, which, isr=isr, leader=leader, replicas=replicas, eligible_leader_replicas=elr
            )


@dataclass
class Plain:
    """`TopicsDelta` and `PartitionRegistration.merge`, record by record."""

    names: dict[Uuid, str] = field(default_factory=dict)
    topics: dict[Uuid, dict[int, dict[str, Any]]] = field(default_factory=dict)

    def replay(self, message: Any) -> None:
        if isinstance(message, TopicRecord):
            self.names[message.topic_id] = message.name
            self.topics.setdefault(message.topic_id, {})
        elif isinstance(message, RemoveTopicRecord):
            self.topics.pop(message.topic_id, None)
        elif isinstance(message, ClearElrRecord):
            for topic_id, partitions in self.topics.items():
                for state in partitions.values() if message.topic_name in ("", self.names[topic_id]) else ():
                    state["elr"] = ()
        elif message.topic_id in self.topics:
            self._partition(self.topics[message.topic_id], message)

    def _partition(self, partitions: dict[int, dict[str, Any]], message: Any) -> None:
        told = {"replicas": message.replicas, "isr": message.isr, "elr": message.eligible_leader_replicas}
        if isinstance(message, PartitionRecord):
            numbers = {"leader": message.leader, "leader_epoch": message.leader_epoch}
            partitions[message.partition_id] = {**told, "elr": told["elr"] or (), **numbers}
        elif message.partition_id in partitions:
            state = partitions[message.partition_id]
            state |= {name: value for name, value in told.items() if value is not None}
            if message.leader != -2:
                state |= {"leader": message.leader, "leader_epoch": state["leader_epoch"] + 1}

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"topic": self.names[topic_id], "topic_id": str(topic_id), "partition": partition, **state}
            for topic_id, partitions in self.topics.items()
            for partition, state in partitions.items()
        ]


@pytest.mark.parametrize("together", [0, 10, 1 << 18])
def test_columns_and_records_make_the_same(together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_replay, "_MOST_CHANGES", together)
    compared = 0
    for seed in SEEDS:
        random, plain = Random(seed), Plain()
        messages = [*random_records(random, (1, 30, 300)[seed % 3])]
        values = [encode_record(None, message)[1] for message in messages]
        place = tmp_path / str(seed) / f"{TOPIC}-0"
        place.mkdir(parents=True)
        data = batch(b"".join(record(number, None, value) for number, value in enumerate(values)), len(values))
        (place / f"{0:020}.log").write_bytes(data)

        (log,) = Segments(place.parent).partitions(TOPIC)
        context = Context(topic=TOPIC)
        reader = Reader(context)
        for rows in log.batches(context, TABLE.reads):
            for start in range(0, rows.num_rows, 20):
                assert reader.take(rows.slice(start, 20)) == ()
        found = [row for part in reader.finish() for row in part.to_pylist()]

        for message in messages:
            plain.replay(message)
        expected = [
            {name: [*value] if isinstance(value, tuple) else value for name, value in row.items()}
            for row in plain.rows()
        ]
        assert found == [{name: row[name] for name in TABLE.schema.names} for row in expected], seed
        compared += len(found)
    assert compared > 100
