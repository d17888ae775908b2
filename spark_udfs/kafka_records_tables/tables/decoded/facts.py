"""Every record as a row, decoded in columns, with nothing kept but what waits for the end of its transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords
from kafka_records_tables.tables.decoded.latest import joined
from kafka_records_tables.tables.decoded.transactions_settled import settled

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

OUTCOME: Final = "outcome"
"""The column that `facts` adds: how the transaction of the record ended (`transactions_settled`)."""

_ROWS: Final = 16_384
"""Rows that are decoded together."""


def facts(
    batches: Iterator[pa.RecordBatch], schemas: Mapping[int, RecordSchema], context: Context
) -> Iterator[DecodedRecords]:
    """The records, decoded, each with its OUTCOME, some thousand at a time.

    A record of a transaction comes behind the marker that ends it, or at the end. Raises what
    `transactions_settled.settled` raises.
    """
    waiting: list[pa.RecordBatch] = []
    count = 0
    for outcome, rows in settled(batches, context, tombstones_at_once=False, last_of_key=False):
        waiting.append(rows.append_column(OUTCOME, pa.repeat(pa.scalar(outcome), rows.num_rows)))
        count += rows.num_rows
        if count >= _ROWS:
            yield DecodedRecords(joined(waiting), schemas)
            waiting, count = [], 0
    if count:
        yield DecodedRecords(joined(waiting), schemas)
