"""The number of records in each log: a table that only the report uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine.log.reading.unread import UNKNOWN
from kafka_records_tables.report.facts.log_samples import ENDS, PLACE, unread_from_starts, with_ends
from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_engine.sources import Context

TABLE: Final = Table(
    name="records_left",
    topic=EVERY_TOPIC,
    about="how many records logs have",
    helper="view",
    records=(),
    reads=(),
    columns=(
        *PLACE,
        *ENDS,
        Column("records", "int64", "number of records, without those of aborted transactions; null if it is unknown"),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    inputs=("log_ends",),
    rules="One row per log partition of every topic in the source.",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[pa.RecordBatch]:
    """A row for each log. For large logs, not all batch headers are read, so their records are not counted."""
    ends = parts["log_ends"].combine_chunks()
    if not ends.num_rows:
        return
    records: list[int | None] = [None] * ends.num_rows
    for asked, rows, places in unread_from_starts(ends, context):
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            if asked.unread[place] != UNKNOWN:
                records[row] = int(asked.unread[place] + asked.held_back[place])
    yield with_ends(TABLE, ends, {"records": records})
