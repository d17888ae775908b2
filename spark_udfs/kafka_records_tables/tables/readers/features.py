"""Reads `features`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_engine.findings import Finding, reason_of
from kafka_records_runtime.errors import DecodeError
from kafka_records_tables.tables.cluster.broker_replay import ClusterReplay
from kafka_records_tables.tables.cluster.metadata_reader import MetadataReader
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.features import TABLE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(MetadataReader[ClusterReplay]):
    def __init__(self, context: Context) -> None:
        super().__init__(ClusterReplay(context, TABLE.records))
        self._context = context

    def _of_quorum(self) -> dict[str, tuple[int, int | None]]:
        context = self._context
        try:
            level, at = self._replay.kraft_version
        except DecodeError as error:
            what = f"the control record with the level of kraft.version cannot be read: {error}"
            finding = Finding("damage", reason_of(error), what, "it has no row", context.topic, context.partition)
            context.report(finding)
            return {}
        return {"kraft.version": (level, at)} if level else {}

    def _rows(self) -> pa.RecordBatch:
        features = {**self._replay.features, **self._of_quorum()}
        changed = pa.array([at for _, at in features.values()], pa.int64())
        columns = {
            "feature": pa.array([*features], pa.string()),
            "level": pa.array([level for level, _ in features.values()], pa.int16()),
            "changed_timestamp": instants(changed),
            "changed_timestamp_ms": changed,
        }
        return record_batch(TABLE.schema, columns, len(features))
