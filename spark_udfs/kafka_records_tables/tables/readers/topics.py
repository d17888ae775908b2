"""Reads `topics`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kafka_records_runtime.kafka.config_names import shown_value
from kafka_records_tables.tables.cluster.metadata_reader import MetadataReader
from kafka_records_tables.tables.cluster.topic_replay import TopicReplay
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.declaration import SHOW_SECRETS
from kafka_records_tables.tables.topics import TABLE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(MetadataReader[TopicReplay]):
    def __init__(self, context: Context) -> None:
        super().__init__(TopicReplay(context))
        self._show_secrets = bool(context.question.options.get(SHOW_SECRETS.name))

    def _rows(self) -> pa.RecordBatch:
        replay = self._replay
        counts = replay.partition_counts()
        topics = [*replay.topics.values()]
        sizes = [counts.get(topic.topic_id, (0, None)) for topic in topics]
        created, deleted = (
            pa.array([getattr(topic, name) for topic in topics], pa.int64()) for name in ("created_ms", "deleted_ms")
        )
        configs = [replay.configs_of(topic) if topic.configs is None else topic.configs for topic in topics]
        columns = {
            "topic": pa.array([topic.name for topic in topics], pa.string()),
            "topic_id": pa.array([topic.topic_id for topic in topics], pa.string()),
            "partition_count": pa.array([count for count, _ in sizes], pa.int32()),
            "replication_factor": pa.array([size for _, size in sizes], pa.int32()),
            "created_timestamp": instants(created),
            "created_timestamp_ms": created,
            "deleted_timestamp": instants(deleted),
            "deleted_timestamp_ms": deleted,
            "configs": self._configs(configs),
        }
        return record_batch(TABLE.schema, columns, len(topics))

    def _configs(self, configs: list[Mapping[str, str]]) -> pa.Array:
        kind = TABLE.schema.field("configs").type
        ends = np.cumsum([0, *map(len, configs)])
        every = [pair for of_topic in configs if of_topic for pair in sorted(of_topic.items())]
        shown = [shown_value("topic", name, value, show_secrets=self._show_secrets) for name, value in every]
        members = [pa.array([name for name, _ in every], pa.string()), pa.array(shown, pa.string())]
        structs = pa.StructArray.from_arrays(members, fields=list(kind.value_type))
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, type=kind)
