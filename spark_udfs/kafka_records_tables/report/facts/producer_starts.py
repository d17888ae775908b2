"""Producers that started with a transactional id that had been used before: a table that only the report uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.topics import TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_EMPTY: Final = 0
_COMPLETE_ABORT: Final = 5
_BY_COORDINATOR: Final = frozenset({_EMPTY, 3, _COMPLETE_ABORT, 6, 7})
"""States that a producer's start causes (PrepareAbort, CompleteAbort, PrepareEpochFence), or expiry (Dead)."""
_RETRIED_MS: Final = 1000
"""The longest time that a client waits before it requests its producer id again (retry.backoff.max.ms)."""

TABLE: Final = Table(
    name="producer_starts",
    topic=TRANSACTIONS,
    about="every start of a producer (InitProducerId) with a transactional id that had been used before",
    helper="history",
    records=("TransactionLog",),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("transactional_id", "string", "the transactional id"),
        Column("producer_id", "int64", "its producer id from then on"),
        Column("producer_epoch", "int32", "its epoch from then on"),
        Column("idle_ms", "int64", "how long before the one that used the id did something last; null if unknown"),
        Column("usual_ms", "int64", "how long the id usually is without anything done; null if unknown"),
        Column("has_aborted", "bool", "whether it aborted a transaction that was open then"),
        *timestamps("log", "when the record of the start was written"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    group="transactional_id",
    module=__name__,
    rules="""\
One row per record in state Empty of a transactional id that has earlier records. A start fences the producer before it
and aborts its transaction, which raises the epoch (`TransactionMetadata.prepareFenceProducerEpoch`); the client asks
again until that is done. An abort of the application leaves the epoch as it is, but in transactions of version 2, whose
every end raises it: there the time alone decides.
""",
)


class Reader(RecordReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "transaction_state", TABLE.records, "not used: its transactional id is unknown")
        self._records: dict[str, list[tuple[int, int, int, int, int]]] = {}

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        found = DecodedRecords(rows, self.schemas)
        times = found.timestamps
        names = ("transaction_status", "producer_id", "producer_epoch")
        ids = found.member(self.types, "key", "transactional_id").to_pylist()
        values = zip(*(found.member(self.types, "value", name).to_pylist() for name in names), strict=True)
        for at, (name, (status, producer, epoch)) in enumerate(zip(ids, values, strict=True)):
            time_ms = None if times is None else times[at]
            if name is not None and status is not None and time_ms is not None:
                record = (status, producer, epoch, time_ms, int(found.offsets[at]))
                self._records.setdefault(name, []).append(record)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        found = [row for name, records in self._records.items() for row in self._starts(name, records)]
        if found:
            found.sort(key=lambda each: each["log_offset"])
            names = [name for name in TABLE.schema.names if name != "log_timestamp"]
            columns = {name: pa.array([each[name] for each in found], TABLE.schema.field(name).type) for name in names}
            columns["log_timestamp"] = instants(columns["log_timestamp_ms"])
            yield record_batch(TABLE.schema, columns, len(found))

    def _starts(self, name: str, records: list[tuple[int, int, int, int, int]]) -> Iterator[dict[str, Any]]:
        if sum(each[0] == _EMPTY for each in records) < 2:
            return
        acts = [each[3] for each in records if each[0] not in _BY_COORDINATOR]
        gaps = [after - before for before, after in pairwise(acts)]
        usual = round(median(gaps)) if gaps else None
        last_act, before, used_epoch, before_ms, has_fenced = None, None, None, 0, True
        for status, producer, epoch, time_ms, offset in records:
            if status == _EMPTY and before is not None:
                yield {
                    "transactional_id": name,
                    "producer_id": producer,
                    "producer_epoch": epoch,
                    "idle_ms": None if last_act is None else max(time_ms - last_act, 0),
                    "usual_ms": usual,
                    "has_aborted": before == _COMPLETE_ABORT and has_fenced and time_ms - before_ms <= _RETRIED_MS,
                    "log_timestamp_ms": time_ms,
                    "log_partition": self.context.partition,
                    "log_offset": offset,
                }
            elif status not in _BY_COORDINATOR:
                last_act, used_epoch = time_ms, (producer, epoch)
            before, before_ms = status, time_ms
            has_fenced = used_epoch is None or (producer, epoch) != used_epoch
