"""Adds the outcomes of transactions to raw rows of a log that is read once.

A source returns rows of transactions as `pending`. A DataFrame of raw rows must say `committed` or `aborted`, so these
rows are held back until their marker; all other rows are returned at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import DELETED_MEANWHILE, MISSING_RIGHT, UNREACHABLE_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA, raw_column, rebatched
from kafka_records_engine.log.reading.segment_files import BATCH_ROWS
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_tables.coordinator.transactions import OPEN, PENDING, TransactionResolver
from kafka_records_tables.engines.log_ranges import LogRange
from kafka_records_tables.engines.spark_offsets import DataLost
from kafka_records_tables.engines.spark_tasks import DamageFound

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition

_log: Final = logging.getLogger(__name__)

_REMEDY: Final = 'mode "PERMISSIVE" continues, and standard error of the task lists what is left out'

_WAITS: Final = pa.array([PENDING, OPEN])
_AT: Final = RAW_SCHEMA.get_field_index("transaction")


class RawFindings(Findings):
    """Handles findings about raw rows of a `topic`, for which there is no list of findings. If a retry may solve a
    problem, reading ends with an error; otherwise, the task logs what is left out."""

    def __init__(self, topic: str, is_failfast: bool, fails_on_data_loss: bool) -> None:
        super().__init__()
        self._topic = topic
        self._is_failfast = is_failfast
        self._fails_on_data_loss = fails_on_data_loss

    def add(self, finding: Finding) -> None:
        """Report a finding. Raises DataLost, DamageFound, and LogSourceError for a problem that a retry may solve."""
        if finding.reason in (UNREACHABLE_LOG, MISSING_RIGHT):
            raise LogSourceError(finding.file or self._topic, f"{finding.what} ({finding.consequence})")
        if finding.reason == DELETED_MEANWHILE and self._fails_on_data_loss:
            raise DataLost(str(finding))
        if finding.severity == "damage" and self._is_failfast:
            raise DamageFound(str(finding), _REMEDY)
        if finding.severity == "damage" or finding.reason == DELETED_MEANWHILE:
            _log.warning("%s", finding)


def raw_rows(log: LogPartition, is_failfast: bool, fails_on_data_loss: bool = False) -> Iterator[pa.RecordBatch]:
    """The rows of a log partition from one task."""
    findings = RawFindings(log.topic, is_failfast, fails_on_data_loss)
    context = Context(log.topic, log.partition, findings=findings)
    return rebatched(raw_rows_of(log, context), BATCH_ROWS)


def raw_rows_of(log: LogPartition, context: Context) -> Iterator[pa.RecordBatch]:
    """The rows of a log partition with the columns of RAW_SCHEMA, each with the outcome of its transaction.

    A row is `open` if the rows read have no marker for it, and `unknown` if a hole in them (`LogFacts.holes`) may hide
    the marker. If the source does not show transactions, the row is unchanged. A column that the source lacks is null.
    """
    end = log.end if isinstance(log, LogRange) else None
    settling = TransactionResolver(context, tombstones_at_once=False, last_of_key=False)
    for batch in log.batches(context, RAW_SCHEMA.names):
        columns = [raw_column(batch, name) for name in RAW_SCHEMA.names]
        rows = pa.RecordBatch.from_arrays(columns, schema=RAW_SCHEMA)
        waits = pc.fill_null(pc.is_in(rows.column("transaction"), value_set=_WAITS), False)
        ends = pc.is_valid(rows.column("control"))
        if not pc.any(waits).as_py() and not (settling.waits and pc.any(ends).as_py()):
            yield rows
            continue
        # The batches of a LogRange are followed by markers from after its end. The rows of these markers belong to
        # another range.
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
