"""Reads `topics`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_runtime.config_names import shown_value
from kafka_records_tables.tables.cluster.topic_replay import TopicReplay
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.declaration import SHOW_SECRETS
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.topics import TABLE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(TableReader):
    def __init__(self, context: Context) -> None:
        self._replay = TopicReplay(context)
        self._show_secrets = bool(context.options.get(SHOW_SECRETS.name))

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._replay.take(batch)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        replay = self._replay
        replay.finish()
        counts = replay.partition_counts()
        topics = [*replay.topics.values()]
        sizes = [counts.get(topic.topic_id, (0, None)) for topic in topics]
        created, deleted = (
            pa.array([getattr(topic, name) for topic in topics], pa.int64()) for name in ("created_ms", "deleted_ms")
        )
        configs = [self._configs(topic.configs if topic.is_deleted else replay.configs_of(topic)) for topic in topics]
        columns = {
            "topic": pa.array([topic.name for topic in topics], pa.string()),
            "topic_id": pa.array([topic.topic_id for topic in topics], pa.string()),
            "partition_count": pa.array([count for count, _ in sizes], pa.int32()),
            "replication_factor": pa.array([size for _, size in sizes], pa.int32()),
            "created_timestamp": instants(created),
            "created_timestamp_ms": created,
            "deleted_timestamp": instants(deleted),
            "deleted_timestamp_ms": deleted,
            "configs": pa.array(configs, TABLE.schema.field("configs").type),
        }
        yield record_batch(TABLE.schema, columns, len(topics))

    def _configs(self, configs: dict[str, str]) -> list[dict[str, str | None]]:
        return [
            {"name": name, "value": shown_value("topic", name, value, show_secrets=self._show_secrets)}
            for name, value in sorted(configs.items())
        ]
