"""Raw rows that tell how transactions ended, of a log that is read once.

A source gives rows of transactions as `pending`. A DataFrame of raw rows is to say `committed` or `aborted`, so these
rows wait here for their marker and come behind it; all others come at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.raw_rows import RAW_SCHEMA
from kafka_records_tables.engines.log_ranges import LogRange
from kafka_records_tables.tables.transactions_settled import OPEN, PENDING, Settling

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context, LogPartition

_WAITS: Final = pa.array([PENDING, OPEN])
_AT: Final = RAW_SCHEMA.get_field_index("transaction")


def raw_rows_of(log: LogPartition, context: Context) -> Iterator[pa.RecordBatch]:
    """The rows of a log partition with the columns of RAW_SCHEMA, each with the outcome of its transaction.

    `open` is what has no marker in what is read, `unknown` what a hole in it (`Context.holes`) may hide the marker of.
    A row whose source does not tell of transactions stays as it is.
    """
    end = log.end if isinstance(log, LogRange) else None
    settling = Settling(context, tombstones_at_once=False, last_of_key=False)
    for batch in log.batches(context, RAW_SCHEMA.names):
        rows = batch.select(RAW_SCHEMA.names)
        waits = pc.fill_null(pc.is_in(rows.column("transaction"), value_set=_WAITS), False)
        ends = pc.is_valid(rows.column("control"))
        if not pc.any(waits).as_py() and not (settling.waits and pc.any(ends).as_py()):
            yield rows
            continue
        # A part of a log brings markers from behind its end, which are rows of another part.
        others = pc.invert(waits) if end is None else pc.and_(pc.invert(waits), pc.less(rows.column("offset"), end))
        if pc.any(others).as_py():
            yield rows.filter(others)
        for outcome, settled in settling.take(rows.filter(pc.or_(waits, ends))):
            yield _with(outcome, settled)
    for outcome, settled in settling.rest():
        yield _with(outcome, settled)


def _with(outcome: str, rows: pa.RecordBatch) -> Any:
    words = pa.repeat(pa.scalar(outcome, pa.string()), rows.num_rows)
    columns = [*rows.columns[:_AT], words, *rows.columns[_AT + 1 :]]
    return pa.RecordBatch.from_arrays(columns, schema=RAW_SCHEMA)
