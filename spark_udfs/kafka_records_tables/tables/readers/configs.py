"""Reads `configs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_runtime.kafka.config_names import is_sensitive, shown_value
from kafka_records_tables.tables.cluster.metadata_reader import MetadataReader
from kafka_records_tables.tables.cluster.topic_replay import TopicReplay
from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.configs import TABLE
from kafka_records_tables.tables.declaration import SHOW_SECRETS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(MetadataReader[TopicReplay]):
    def __init__(self, context: Context) -> None:
        super().__init__(TopicReplay(context, with_partitions=False))
        self._show_secrets = bool(context.question.options.get(SHOW_SECRETS.name))

    def _rows(self) -> pa.RecordBatch:
        rows = [
            (kind, resource, name, value)
            for (kind, resource), configs in self._replay.configs.items()
            for name, value in configs.items()
        ]
        kinds, resources, names, _ = zip(*rows, strict=True) if rows else ((), (), (), ())
        shown = [shown_value(kind, name, value, show_secrets=self._show_secrets) for kind, _, name, value in rows]
        columns = {
            "resource_type": pa.array(kinds, pa.string()),
            "resource_name": pa.array(resources, pa.string()),
            "name": pa.array(names, pa.string()),
            "value": pa.array(shown, pa.string()),
            "is_sensitive": pa.array([is_sensitive(kind, name) for kind, _, name, _ in rows], pa.bool_()),
        }
        return record_batch(TABLE.schema, columns, len(rows))
