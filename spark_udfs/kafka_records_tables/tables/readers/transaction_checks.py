"""Reads `transaction_checks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafka_records_tables.coordinator.records.decoded_records import schemas
from kafka_records_tables.tables.checking.check_rows import CheckReader
from kafka_records_tables.tables.checking.record_checks import RecordChecks
from kafka_records_tables.tables.transaction_checks import TABLE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.checking.check_rows import CheckRow


_STOPS: Final = (
    "a coordinator skips a value of an unknown version; for any other error it stops reading here, and serves what it "
    "has read"
)
"""`TransactionStateManager.loadTransactionMetadata`."""


class Reader(CheckReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, TABLE.schema)
        known = schemas(context, "transaction_state")
        self._records = RecordChecks(context, known, owner="transactional_id", stops=_STOPS)

    def checked(self, batch: pa.RecordBatch) -> Iterator[CheckRow]:
        found = self._records.decoded(batch)
        if found is not None:
            yield from self._records.look_at(found)

    def left(self) -> Iterator[CheckRow]:
        return self._records.rest()
