"""The base classes of tables about the metadata log: a replay receives the rows of the log and returns the state at its
end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
    from kafka_records_tables.tables.cluster.metadata_records import MetadataRecords


class MetadataReplay:
    """Replays the records that took effect, batch by batch."""

    def __init__(self, records: MetadataRecords) -> None:
        self._records = records

    def take(self, batch: pa.RecordBatch) -> None:
        """Add the raw rows that follow."""
        for decoded, is_checkpoint in self._records.take(batch):
            self._add(decoded, is_checkpoint)

    def finish(self) -> None:
        """Finish at the end of the log, which may have no rows after a checkpoint."""
        for decoded, is_checkpoint in self._records.finish():
            self._add(decoded, is_checkpoint)

    def _add(self, decoded: DecodedRecords, is_checkpoint: bool) -> None:
        raise NotImplementedError


R = TypeVar("R", bound=MetadataReplay)


class MetadataReader(TableReader, Generic[R]):
    """The reader of a table that shows the final state of a replay."""

    every_type = True

    def __init__(self, replay: R) -> None:
        self._replay = replay

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._replay.take(batch)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        self._replay.finish()
        yield self._rows()

    def _rows(self) -> pa.RecordBatch:
        raise NotImplementedError
