"""Topics, their partition counts, and configs, according to the records of a metadata log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.sources.log_facts import TopicDeletions
from kafka_records_runtime.kafka.config_names import RESOURCE_TYPES
from kafka_records_tables.tables.cluster.metadata_reader import MetadataReplay
from kafka_records_tables.tables.cluster.metadata_records import MetadataRecords, events, values_of

if TYPE_CHECKING:
    from kafka_records_engine.numpy_types import INT32, INT64
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

_TOPIC: Final = "topic"
_MADE, _REMOVED, _CONFIG = "TopicRecord", "RemoveTopicRecord", "ConfigRecord"
_IN_ORDER: Final = (_MADE, _REMOVED, _CONFIG)
_OF_CONFIG: Final = ("resource_type", "resource_name", "name", "value")
PARTITION, CHANGE = "PartitionRecord", "PartitionChangeRecord"


_NO_CONFIGS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(slots=True)
class Topic:
    """A topic that exists or existed."""

    name: str
    topic_id: str
    created_ms: int | None
    """The time of its creation; None if only a checkpoint contains the topic, because a checkpoint has no times."""
    deleted_ms: int | None = None
    is_deleted: bool = False
    configs: Mapping[str, str] | None = None
    """The configs that it had when it was deleted."""


class TopicReplay(MetadataReplay):
    """Replays topics and configs; partitions are counted in columns.

    Removing a topic also removes its configs (`ReplicationControlManager.replay(RemoveTopicRecord)`).
    """

    def __init__(self, context: Context, *, with_partitions: bool = True) -> None:
        apart = (PARTITION, CHANGE) if with_partitions else ()
        super().__init__(MetadataRecords(context, (*_IN_ORDER, *apart), apart))
        numbers = self._records.numbers
        self._in_order = {name: numbers[name] for name in _IN_ORDER}
        self._partition, self._change = numbers.get(PARTITION), numbers.get(CHANGE)
        self.topics: dict[str, Topic] = {}
        """The topics by id, including deleted ones."""
        self.configs: dict[tuple[str, str], dict[str, str]] = {}
        """The values of configs by name, for each resource type and name."""
        self._ids: list[pa.Array] = []
        self._partitions: list[INT32] = []
        self._replicas: list[INT64] = []

    def _add(self, decoded: DecodedRecords, is_checkpoint: bool) -> None:
        if values_of(decoded, self._in_order[_REMOVED]) is None:
            self._add_columns(decoded, is_checkpoint)
        else:
            times = _times(decoded, is_checkpoint)
            for row, name, value in events(decoded, self._in_order):
                if name == _MADE:
                    self._make(value["topic_id"], value["name"], times[row])
                elif name == _REMOVED:
                    self._remove(value["topic_id"], times[row])
                else:
                    self._configure(*(value[field] for field in _OF_CONFIG))
        if self._partition is not None and self._change is not None:
            made, changed = (values_of(decoded, number) for number in (self._partition, self._change))
            self._count(made and made[1], changed and changed[1])

    def _add_columns(self, decoded: DecodedRecords, is_checkpoint: bool) -> None:
        """Add records, none of which removes a topic, so topics and configs can be added separately, without an object
        for each record."""
        made, configs = (values_of(decoded, self._in_order[name]) for name in (_MADE, _CONFIG))
        if made is not None:
            rows, values = made
            ids, names = (values.field(field).to_pylist() for field in ("topic_id", "name"))
            times = _times(decoded, is_checkpoint)
            for topic_id, name, row in zip(ids, names, rows.tolist(), strict=True):
                self._make(topic_id, name, times[row])
        if configs is not None:
            columns = (configs[1].field(field).to_pylist() for field in _OF_CONFIG)
            for kind, resource, name, value in zip(*columns, strict=True):
                self._configure(kind, resource, name, value)

    def _make(self, topic_id: str, name: str, at: int | None) -> None:
        self.topics[topic_id] = Topic(name, topic_id, at)

    def _remove(self, topic_id: str, at: int | None) -> None:
        topic = self.topics.get(topic_id)
        if topic is not None:
            topic.deleted_ms, topic.is_deleted = at, True
            topic.configs = self.configs.pop((_TOPIC, topic.name), {})

    def _configure(self, number: int, resource: str, name: str, value: str | None) -> None:
        kind = RESOURCE_TYPES.get(number) or str(number)
        of_resource = self.configs.setdefault((kind, resource), {})
        if value is None:
            of_resource.pop(name, None)
        else:
            of_resource[name] = value

    def _count(self, made: pa.Array | None, changed: pa.Array | None) -> None:
        """Count new partitions, or changes to the replicas of partitions. They are passed separately, because each
        partition is created once, before it changes."""
        values = made
        if changed is not None:
            moved = changed.field("replicas").is_valid()
            values = changed.filter(moved) if pc.any(moved).as_py() else None
        if values is not None:
            partitions, replicas = values.field("partition_id").to_numpy(), values.field("replicas")
            self._keep(values.field("topic_id"), partitions, replicas.value_lengths().to_numpy().astype(np.int64))

    def _keep(self, ids: pa.Array, partitions: INT32, replicas: INT64) -> None:
        self._ids.append(ids)
        self._partitions.append(partitions)
        self._replicas.append(replicas)

    def partition_counts(self) -> dict[str, tuple[int, int]]:
        """By topic id, the number of partitions, and the number of replicas of the first partition."""
        if not self._ids:
            return {}
        ids = pa.chunked_array(self._ids).combine_chunks().dictionary_encode()
        codes: INT64 = ids.indices.to_numpy().astype(np.int64)
        partitions, replicas = np.concatenate(self._partitions), np.concatenate(self._replicas)
        keys = codes << 32 | partitions.astype(np.int64)
        # Keep the last row of each key. np.unique returns the first index, so reverse the arrays.
        unique, last = np.unique(keys[::-1], return_index=True)
        chosen = replicas[::-1][last]
        counts = np.bincount(unique >> 32, minlength=len(ids.dictionary))
        first = np.concatenate(([0], np.cumsum(counts)[:-1]))
        of_topics = zip(ids.dictionary.to_pylist(), counts.tolist(), chosen[first].tolist(), strict=True)
        return {topic_id: (count, size) for topic_id, count, size in of_topics}

    def configs_of(self, topic: Topic) -> Mapping[str, str]:
        """The configs of an existing topic."""
        return self.configs.get((_TOPIC, topic.name), _NO_CONFIGS)

    def deletions(self) -> TopicDeletions:
        """The times at which topics were deleted, according to records."""
        times: dict[str, list[int]] = {}
        for topic in self.topics.values():
            of_name = times.setdefault(topic.name, [])
            if topic.deleted_ms is not None:
                of_name.append(topic.deleted_ms)
        ordered = {name: tuple(sorted(each)) for name, each in times.items()}
        ids = frozenset(topic_id for topic_id, topic in self.topics.items() if topic.is_deleted)
        return TopicDeletions(ordered, self._records.since_ms, self._records.until_ms, ids)

    def live_topics(self) -> list[Topic]:
        """The existing topics."""
        return [topic for topic in self.topics.values() if not topic.is_deleted]


def _times(decoded: DecodedRecords, is_checkpoint: bool) -> list[int | None]:
    """When each record was written; None in a checkpoint and for negative times, which mean no time."""
    if is_checkpoint:
        return [None] * decoded.rows.num_rows
    times = decoded.rows.column("timestamp_ms")
    found: list[int | None] = pc.if_else(pc.less(times, 0), pa.scalar(None, times.type), times).to_pylist()
    return found
