"""The partitions of a cluster, as the records of its metadata log leave them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.cluster.metadata_records import MetadataRecords, events

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

RECORDS: Final = ("TopicRecord", "PartitionRecord", "PartitionChangeRecord", "RemoveTopicRecord", "ClearElrRecord")
_AS_BEFORE: Final = -2
"""The leader of a change that leaves the leader alone (`LeaderConstants.NO_LEADER_CHANGE`)."""


@dataclass(slots=True)
class PartitionState:
    """What a partition is like."""

    replicas: list[int]
    isr: list[int]
    elr: list[int]
    leader: int
    leader_epoch: int


class PartitionReplay:
    """Replays partitions, as `PartitionRegistration.merge` does."""

    def __init__(self, context: Context) -> None:
        self._records = MetadataRecords(context, RECORDS)
        self._names: dict[str, str] = {}
        self._topics: dict[str, dict[int, PartitionState]] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        """Add raw rows of the log after those before."""
        for decoded, _ in self._records.take(batch):
            self._add(decoded)

    def finish(self) -> Iterator[tuple[str, str, int, PartitionState]]:
        """Topic, topic id, partition and state of each partition, at the end of the log."""
        for decoded, _ in self._records.finish():
            self._add(decoded)
        for topic_id, partitions in self._topics.items():
            for number, state in partitions.items():
                yield self._names[topic_id], topic_id, number, state

    def _add(self, decoded: DecodedRecords) -> None:
        for _, name, value in events(decoded, self._records.numbers):
            match name:
                case "TopicRecord":
                    self._names[value["topic_id"]] = value["name"]
                    self._topics.setdefault(value["topic_id"], {})
                case "RemoveTopicRecord":
                    self._topics.pop(value["topic_id"], None)
                case "PartitionRecord":
                    self._make(value)
                case "PartitionChangeRecord":
                    self._change(value)
                case _:
                    self._clear(value["topic_name"])

    def _make(self, value: dict[str, Any]) -> None:
        partitions = self._topics.get(value["topic_id"])
        if partitions is not None:
            partitions[value["partition_id"]] = PartitionState(
                value["replicas"],
                value["isr"],
                value["eligible_leader_replicas"] or [],
                value["leader"],
                value["leader_epoch"],
            )

    def _change(self, value: dict[str, Any]) -> None:
        state = self._topics.get(value["topic_id"], {}).get(value["partition_id"])
        if state is None:
            return
        for attribute, name in (("replicas", "replicas"), ("isr", "isr"), ("elr", "eligible_leader_replicas")):
            if value[name] is not None:
                setattr(state, attribute, value[name])
        if value["leader"] != _AS_BEFORE:
            state.leader = value["leader"]
            state.leader_epoch += 1

    def _clear(self, topic: str) -> None:
        """Forget the eligible leader replicas of a topic, or of all (`TopicsDelta.replay(ClearElrRecord)`)."""
        for topic_id, partitions in self._topics.items():
            if not topic or self._names[topic_id] == topic:
                for state in partitions.values():
                    state.elr = []
