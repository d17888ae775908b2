"""Returns every record as a row, decoded into columns. Only records that wait for the end of their transaction are kept
in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.coordinator.records.latest import joined
from kafka_records_tables.coordinator.transactions import Resolved, TransactionResolver

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

OUTCOME: Final = "outcome"
"""The column that `ResolvedRecords` adds: how the record's transaction ended (`transactions`)."""

_ROWS: Final = 16_384
"""The number of rows to decode together."""


class ResolvedRecords:
    """Returns every record decoded, with its OUTCOME, a few thousand at a time. A record of a transaction is returned
    after the marker that ends it, or at the end. Raises the same errors as `transactions.TransactionResolver`."""

    def __init__(self, schemas: Mapping[int, RecordSchema], context: Context) -> None:
        self._schemas = schemas
        self._settling = TransactionResolver(context, tombstones_at_once=False, last_of_key=False)
        self._waiting: list[pa.RecordBatch] = []
        self._count = 0

    def take(self, batch: pa.RecordBatch) -> Iterator[DecodedRecords]:
        """Add the raw rows that follow."""
        return self._decoded(self._settling.take(batch))

    def rest(self) -> Iterator[DecodedRecords]:
        """The remaining records at the end of the log."""
        yield from self._decoded(self._settling.rest())
        if self._count:
            yield self._decode()

    def _decoded(self, found: Iterator[Resolved]) -> Iterator[DecodedRecords]:
        for outcome, rows in found:
            self._waiting.append(rows.append_column(OUTCOME, pa.repeat(pa.scalar(outcome), rows.num_rows)))
            self._count += rows.num_rows
            if self._count >= _ROWS:
                yield self._decode()

    def _decode(self) -> DecodedRecords:
        rows = joined(self._waiting)
        self._waiting, self._count = [], 0
        return DecodedRecords(rows, self._schemas)
