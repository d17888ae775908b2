"""Offsets of Spark queries as rows of committed offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_engine.findings import SPARK_CHECKPOINT, Finding
from kafka_records_runtime.errors import plural
from kafka_records_tables.tables.column_types import instants

if TYPE_CHECKING:
    from kafka_records_engine.sources.spark_checkpoints import QueryProgress

_NO_BATCH: Final = "the query has committed no batch yet"


def query_offsets(queries: Iterable[QueryProgress], schema: pa.Schema) -> pa.Table:
    """The offsets of the queries as a table with this schema. Values that checkpoints do not contain are null."""
    rows = [(each.query, *offset, each.timestamp_ms) for each in queries for offset in each.offsets]
    columns: dict[str, Any] = {name: [row[at] for row in rows] for at, name in enumerate(_COLUMNS)}
    stamps = pa.array(columns["commit_timestamp_ms"], pa.int64())
    columns |= {"commit_timestamp_ms": stamps, "commit_timestamp": instants(stamps)}
    missing = {name: [None] * len(rows) for name in schema.names if name not in columns}
    return pa.table({name: (columns | missing)[name] for name in schema.names}, schema)


_COLUMNS: Final = ("group_id", "topic", "partition", "offset", "commit_timestamp_ms")


def query_notes(queries: Iterable[QueryProgress]) -> Iterable[Finding]:
    """Notes about the given checkpoints."""
    for each in queries:
        if each.other_sources:
            others = plural(each.other_sources, "source")
            yield _note(
                each, f"{others} of the query {'is' if each.other_sources == 1 else 'are'} not Kafka", "left out"
            )
        if each.planned is not None and each.batch is not None:
            what = f"the batch {each.planned} of the query is planned but not committed"
            yield _note(each, what, f"the offsets come from the batch {each.batch}")
        elif each.batch is None:
            yield _note(each, _NO_BATCH, "its offsets are null")


def _note(query: QueryProgress, what: str, consequence: str) -> Finding:
    return Finding("note", SPARK_CHECKPOINT, what, consequence, file=query.place)
