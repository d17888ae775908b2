"""Base classes of tables about changes in the metadata log, with one row per change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from kafka_records_tables.tables.cluster.metadata_reader import MetadataReader, MetadataReplay

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
    from kafka_records_tables.tables.cluster.metadata_records import MetadataRecords
    from kafka_records_tables.tables.declaration import Table


class ChangeReplay(MetadataReplay):
    """Collects changes in log order. Each row has `at_timestamp_ms` and `log_offset`."""

    def __init__(self, records: MetadataRecords) -> None:
        super().__init__(records)
        self.rows: list[dict[str, Any]] = []

    def complete(self) -> list[dict[str, Any]]:
        """The rows, at the end of the log."""
        return self.rows


def times_of(decoded: DecodedRecords, is_checkpoint: bool) -> list[int | None]:
    """The times of records; None for records of a checkpoint."""
    if is_checkpoint:
        return [None] * decoded.rows.num_rows
    times: list[int | None] = decoded.rows.column("timestamp_ms").to_pylist()
    return times


class ChangeReader(MetadataReader[ChangeReplay]):
    """Returns the rows of a replay."""

    table: ClassVar[Table]

    def _rows(self) -> pa.RecordBatch:
        # Records of a checkpoint have no times. They come before those of the log.
        rows = self._replay.complete()
        rows.sort(key=lambda each: (each["at_timestamp_ms"] is not None, each["log_offset"]))
        return pa.RecordBatch.from_pylist(rows, schema=self.table.schema)
