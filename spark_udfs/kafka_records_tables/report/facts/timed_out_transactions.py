"""Transactions that a coordinator aborted because they were open for too long: a table that only the report uses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.report.facts.transaction_statuses import (
    COMPLETE_ABORT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from kafka_records_tables.tables.column_types import batch_of
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.topics import TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.report.rule_context import RuleContext

_LAST: Final = 5
"""The number of the last committed transactions of which `slowest_ms` is the longest."""

TABLE: Final = Table(
    name="timed_out_transactions",
    topic=TRANSACTIONS,
    about="the transactions of each transactional id that timed out since its last commit",
    helper="history",
    records=("TransactionLog",),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("transactional_id", "string", "the transactional id"),
        Column("producer_ids", "list<int64>", "all producer ids that it has had"),
        Column("timeout_ms", "int64", "timeout of the last one"),
        Column("committed_timestamp_ms", "int64", "when its last commit was prepared; null if the log has none"),
        Column(
            "slowest_ms", "int64", f"duration of the longest of the last {_LAST} that were committed; null if unknown"
        ),
        Column(
            "timeouts",
            "list<struct<began_ms: int64, aborted_ms: int64, producer_epoch: int64, log_offset: int64>>",
            "the transactions that timed out since, with the records of their aborts",
        ),
        Column("aborts", "int64", "all transactions that were aborted since"),
        *timestamps("log", "when its last record was written"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    group="transactional_id",
    module=__name__,
    rules="""\
One row per transactional id with such transactions. The coordinator aborts a transaction that is open for longer than
its timeout, and raises the epoch of its producer (`TransactionCoordinator.abortTimedOutTransactions`). That producer is
fenced, so the next record of the id is that of a start (state Empty). An application that aborts goes on without one.
""",
)


@dataclass(frozen=True, slots=True)
class _Record:
    """The content of a record about a transactional id."""

    status: int
    producer_id: int
    epoch: int
    timeout_ms: int
    began_ms: int
    time_ms: int
    offset: int


@dataclass(slots=True)
class _Life:
    """What is known about a transactional id. Of the transactions before its last commit, only a few durations are
    kept: the log may have millions of records."""

    producer_ids: set[int] = field(default_factory=set)
    durations: deque[int | None] = field(default_factory=lambda: deque(maxlen=_LAST))
    """The durations of the last committed transactions in milliseconds; None if one is unknown."""
    committed_ms: int | None = None
    """When the last commit was prepared."""
    records: list[_Record] = field(default_factory=list)
    """The records since the last commit, which is the first of them; all if there was none."""

    def add(self, record: _Record) -> None:
        self.producer_ids.add(record.producer_id)
        if record.status == PREPARE_COMMIT:
            self.records.clear()
            self.committed_ms = record.time_ms
            self.durations.append(record.time_ms - record.began_ms if record.began_ms >= 0 else None)
        self.records.append(record)


def timed_out_of(context: RuleContext) -> list[dict[str, Any]]:
    """The rows; empty if there are no transactions, or if the report is made only from tables."""
    return context.look(TABLE).to_pylist() if context.table("transactions").num_rows else []


class Reader(RecordReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "transaction_state", TABLE.records, "not used: its transactional id is unknown")
        self._lives: dict[str, _Life] = {}

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        found = DecodedRecords(rows, self.schemas)
        times = found.timestamps
        names = (
            *("transaction_status", "producer_id", "producer_epoch", "transaction_timeout_ms"),
            "transaction_start_timestamp_ms",
        )
        ids = found.member(self.types, "key", "transactional_id").to_pylist()
        values = zip(*(found.member(self.types, "value", name).to_pylist() for name in names), strict=True)
        for at, (name, (status, producer, epoch, timeout, began)) in enumerate(zip(ids, values, strict=True)):
            time_ms = None if times is None else times[at]
            if name is not None and status is not None and time_ms is not None:
                record = _Record(status, producer, epoch, timeout, began, int(time_ms), int(found.offsets[at]))
                self._lives.setdefault(name, _Life()).add(record)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        found = [row for name, life in self._lives.items() if (row := self._row(name, life)) is not None]
        if found:
            found.sort(key=lambda each: each["log_offset"])
            yield batch_of(TABLE.schema, found)

    def _row(self, name: str, life: _Life) -> dict[str, Any] | None:
        later = life.records
        aborts = [(before, each) for before, each in pairwise(later) if each.status == PREPARE_ABORT]
        timeouts = [
            {
                "began_ms": before.began_ms,
                "aborted_ms": each.time_ms,
                "producer_epoch": each.epoch,
                "log_offset": each.offset,
            }
            for before, each in aborts
            if _timed_out(before, each) and _is_fenced(later, each)
        ]
        if not timeouts:
            return None
        last = later[-1]
        return {
            "transactional_id": name,
            "producer_ids": sorted(life.producer_ids),
            "timeout_ms": last.timeout_ms,
            "committed_timestamp_ms": life.committed_ms,
            "slowest_ms": max((each for each in life.durations if each is not None), default=None),
            "timeouts": timeouts,
            "aborts": len(aborts),
            "log_timestamp_ms": last.time_ms,
            "log_partition": self.context.partition,
            "log_offset": last.offset,
        }


def _timed_out(before: _Record, abort: _Record) -> bool:
    """Whether an abort is one of a coordinator, of a transaction that was open for its timeout."""
    is_raised = (abort.producer_id, abort.epoch) != (before.producer_id, before.epoch)
    began = before.began_ms
    return before.status == ONGOING and is_raised and began >= 0 and abort.time_ms - began >= abort.timeout_ms


def _is_fenced(records: list[_Record], abort: _Record) -> bool:
    """Whether the producer of an aborted transaction did nothing more: the next producer had to start."""
    after = next((each for each in records if each.offset > abort.offset and each.status != COMPLETE_ABORT), None)
    return after is None or after.status == EMPTY
