"""The state of a coordinator after the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from kafka_records_engine.sources import Context
from kafka_records_tables.tables.removal.held_offsets import Held, HeldCollector


def held(rows: pa.Table, context: Context, names: Iterable[str]) -> Held:
    """The state; `names` are the names of the records that count."""
    collector = HeldCollector(context, names)
    for batch in rows.to_batches():
        collector.take(batch)
    return collector.held()
