"""A user's own view whose rows do not name a group: the number of offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafka_records_tables import Column
from kafka_records_tables.tables.declaration import Table

TABLE: Final = Table(
    name="offset_counts",
    topic="",
    about="how many committed offsets there are",
    helper="view",
    inputs=("current_offsets",),
    records=(),
    reads=(),
    columns=(Column("offset_count", "int64", "committed offsets"),),
    sort=("offset_count",),
    group=None,
    module=__name__,
    rules="One row.\n",
)


def joined(parts: Mapping[str, Any], context: Any) -> Iterator[Any]:
    """The rows."""
    from kafka_records_tables.tables.column_types import record_batch

    yield record_batch(TABLE.schema, {"offset_count": parts["current_offsets"].num_rows}, 1)
