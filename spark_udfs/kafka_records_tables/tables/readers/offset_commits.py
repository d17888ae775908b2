"""Reads `offset_commits`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.offsets.commits import COMMITS, report_undecided
from kafka_records_tables.coordinator.records.decoded_records import (
    DecodedRecords,
    nulled,
)
from kafka_records_tables.coordinator.transactions import UNKNOWN
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.commit_columns import commit_columns
from kafka_records_tables.tables.offset_commits import TABLE
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.tables.resolved_records import OUTCOME, ResolvedRecords

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


NO_EXPIRY: Final = -1


class Reader(RecordReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "consumer_offsets", COMMITS, "left out: it is unknown whose offset it is")
        self._facts = ResolvedRecords(self.schemas, context)

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return self._rows(self._facts.take(rows))

    def finish(self) -> Iterator[pa.RecordBatch]:
        return self._rows(self._facts.rest())

    def _rows(self, facts: Iterator[DecodedRecords]) -> Iterator[pa.RecordBatch]:
        context, types = self.context, self.types
        for found in facts:
            found.report(context, lambda row: "its row is left out")
            rows, outcome = found.rows, found.rows.column(OUTCOME)
            usable = found.has_key & ~found.has_error
            is_unknown = pc.equal(outcome, UNKNOWN).to_numpy(zero_copy_only=False)
            report_undecided(
                found, types, usable & is_unknown, context, "its row says that it is unknown", what="a commit"
            )
            expires = nulled(found.member(types[1:], "value", "expire_timestamp"), NO_EXPIRY)
            columns = {
                **commit_columns(found, types, context),
                "expire_timestamp": instants(expires),
                "expire_timestamp_ms": expires,
                "is_tombstone": pa.array(found.is_tombstone),
                "transaction": outcome,
                "producer_id": nulled(rows.column("producer_id"), -1),
                "log_timestamp": instants(rows.column("timestamp_ms")),
                "log_timestamp_ms": rows.column("timestamp_ms"),
            }
            if usable.all():
                yield record_batch(TABLE.schema, columns, rows.num_rows)
            elif usable.any():
                yield record_batch(TABLE.schema, columns, rows.num_rows).filter(pa.array(usable))
