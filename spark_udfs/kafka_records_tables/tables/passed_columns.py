"""The base class of readers that return the columns of a source unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.declaration import Table


class PassedColumns(TableReader):
    """Returns the columns of its table from each batch."""

    table: ClassVar[Table]

    def __init__(self, context: Context) -> None:
        pass

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        names = self.table.names
        yield record_batch(self.table.schema, {name: batch.column(name) for name in names}, batch.num_rows)
