"""Producers that started with a transactional id used before: a table that only the report uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.report.facts.transaction_statuses import (
    COMPLETE_ABORT,
    DEAD,
    EMPTY,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
)
from kafka_records_tables.tables.column_types import batch_of
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.topics import TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_BY_COORDINATOR: Final = frozenset({EMPTY, PREPARE_ABORT, COMPLETE_ABORT, DEAD, PREPARE_EPOCH_FENCE})
"""States caused by a producer's start (PrepareAbort, CompleteAbort, PrepareEpochFence) or by expiry (Dead)."""
_RETRIED_MS: Final = 1000
"""The longest time that a client waits before it requests its producer id again (retry.backoff.max.ms)."""
_ENDS_RAISE_EPOCHS: Final = 2
"""The first transaction.version in which every end of a transaction raises the epoch (KIP-890)."""

TABLE: Final = Table(
    name="producer_starts",
    topic=TRANSACTIONS,
    about="every start of a producer (InitProducerId) with a transactional id that had been used before",
    helper="history",
    records=("TransactionLog",),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("transactional_id", "string", "the transactional id"),
        Column("producer_id", "int64", "producer id from this start on"),
        Column("producer_epoch", "int32", "producer epoch from this start on"),
        Column("idle_ms", "int64", "time since the previous producer with the id was last active; null if unknown"),
        Column("usual_ms", "int64", "usual time between two records of the id; null if unknown"),
        Column("has_aborted", "bool", "whether the start aborted an open transaction"),
        Column("commits", "int64", "transactions that were committed since the previous start"),
        Column("raised_by_starts", "bool", "whether only starts and timeouts raise the epoch, not every transaction"),
        Column("is_whole", "bool", "whether the previous start is still in the log, because no cleaner has removed it"),
        *timestamps("log", "when the record of the start was written"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    group="transactional_id",
    module=__name__,
    rules="""\
One row per record in state Empty of a transactional id that has earlier records. A start fences the producer before it
and aborts its transaction, which raises the epoch (`TransactionMetadata.prepareFenceProducerEpoch`); the client asks
again until that is done, after 100 ms (Java) or 500 ms (librdkafka), so the abort shows when it started. If the
application aborts, the epoch stays as it is, except in transactions of version 2, in which every end raises it: there,
only the time decides.
""",
)


@dataclass(frozen=True, slots=True)
class _Record:
    """A record about a transactional id."""

    status: int
    producer_id: int
    epoch: int
    version: int
    """The transaction.version with which the record was written."""
    time_ms: int
    offset: int

    @property
    def is_act(self) -> bool:
        """Whether the record shows an action of the producer itself."""
        return self.status not in _BY_COORDINATOR

    @property
    def producer(self) -> tuple[int, int]:
        """Producer id and epoch."""
        return self.producer_id, self.epoch


class Reader(RecordReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "transaction_state", TABLE.records, "not used: its transactional id is unknown")
        self._records: dict[str, list[_Record]] = {}

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        found = DecodedRecords(rows, self.schemas)
        times = found.timestamps
        names = ("transaction_status", "producer_id", "producer_epoch", "client_transaction_version")
        ids = found.member(self.types, "key", "transactional_id").to_pylist()
        values = zip(*(found.member(self.types, "value", name).to_pylist() for name in names), strict=True)
        for at, (name, (status, producer, epoch, version)) in enumerate(zip(ids, values, strict=True)):
            time_ms = None if times is None else times[at]
            if name is not None and status is not None and time_ms is not None:
                record = _Record(status, producer, epoch, version or 0, int(time_ms), int(found.offsets[at]))
                self._records.setdefault(name, []).append(record)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        found = [row for name, records in self._records.items() for row in self._starts(name, records)]
        if found:
            found.sort(key=lambda each: each["log_offset"])
            yield batch_of(TABLE.schema, found)

    def _starts(self, name: str, records: list[_Record]) -> Iterator[dict[str, Any]]:
        if sum(each.status == EMPTY for each in records) + (records[0].status != EMPTY) < 2:
            return
        acts = [each for each in records if each.is_act]
        gaps = [after.time_ms - before.time_ms for before, after in pairwise(acts)]
        usual = round(median(gaps)) if gaps else None
        # The record version depends on the version of the coordinator.
        raised_by_starts = bool(acts) and max(each.version for each in acts) < _ENDS_RAISE_EPOCHS
        last_act: _Record | None = None
        before: _Record | None = None
        fence_ms, commits = None, 0
        is_new = records[0].status == EMPTY and records[0].epoch == 0
        is_whole = is_new or self.context.log.whole_from is None
        for each in records:
            if each.status == EMPTY and before is not None:
                is_fenced = last_act is None or before.producer != last_act.producer
                waited = each.time_ms - before.time_ms
                has_aborted = before.status == COMPLETE_ABORT and is_fenced and waited <= _RETRIED_MS
                started_ms = fence_ms if has_aborted and raised_by_starts and fence_ms is not None else each.time_ms
                yield {
                    "transactional_id": name,
                    "producer_id": each.producer_id,
                    "producer_epoch": each.epoch,
                    "idle_ms": None if last_act is None else max(started_ms - last_act.time_ms, 0),
                    "usual_ms": usual,
                    "has_aborted": has_aborted,
                    "commits": commits,
                    "raised_by_starts": raised_by_starts,
                    "is_whole": is_whole,
                    "log_timestamp_ms": each.time_ms,
                    "log_partition": self.context.partition,
                    "log_offset": each.offset,
                }
                commits, is_whole = 0, True
            elif each.is_act:
                last_act, fence_ms = each, None
                commits += each.status == PREPARE_COMMIT
            elif each.status == PREPARE_ABORT and fence_ms is None:
                fence_ms = each.time_ms
            before = each
