"""A reader of records of some types, the base class of most readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kafka_records_tables.coordinator.records.decoded_records import filter_record_types, numbers_of, schemas
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_engine.sources import Context


class RecordReader(TableReader):
    """Passes control rows and the records named in `names` to `add`. `folder` is the folder of their specs. Records
    whose keys have no type are reported with the consequence `without_type`.
    """

    def __init__(self, context: Context, folder: str, names: Sequence[str], without_type: str) -> None:
        self.context = context
        self.schemas = schemas(context, folder)
        self.types = numbers_of(self.schemas, names)
        self._without_type = without_type

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        rows = filter_record_types(batch, self.types, self.context, self._without_type)
        return self.add(rows) if rows.num_rows else ()

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """Add the rows that follow. Returns the rows of the table that are known by now."""
        raise NotImplementedError
