"""The first record of each transactional id: a table that only the report uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

TABLE: Final = Table(
    name="first_uses",
    topic=TRANSACTIONS,
    about="the first record of every transactional id",
    helper="history",
    records=("TransactionLog",),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("transactional_id", "string", "the transactional id"),
        Column("is_new", "bool", "whether the id was new then; if not, a cleaner has removed the earlier records"),
        *timestamps("log", "when the record was written"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    group="transactional_id",
    module=__name__,
    rules="""\
One row per transactional id. It was new in state Empty at epoch 0, which the first InitProducerId leaves
(`TransactionCoordinator.handleInitProducerId`); a cleaner keeps later records only.
""",
)


class Reader(RecordReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "transaction_state", TABLE.records, "not used: its transactional id is unknown")
        self._firsts: dict[str, dict[str, Any]] = {}

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        found = DecodedRecords(rows, self.schemas)
        times = found.timestamps
        ids = found.member(self.types, "key", "transactional_id").to_pylist()
        states = found.member(self.types, "value", "transaction_status").to_pylist()
        epochs = found.member(self.types, "value", "producer_epoch").to_pylist()
        for at, (name, state, epoch) in enumerate(zip(ids, states, epochs, strict=True)):
            if name is not None and state is not None and name not in self._firsts:
                self._firsts[name] = {
                    "transactional_id": name,
                    "is_new": state == _EMPTY and epoch == 0,
                    "log_timestamp_ms": None if times is None else times[at],
                    "log_partition": self.context.partition,
                    "log_offset": int(found.offsets[at]),
                }
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        found = list(self._firsts.values())
        if found:
            names = [name for name in TABLE.schema.names if name != "log_timestamp"]
            columns = {name: pa.array([each[name] for each in found], TABLE.schema.field(name).type) for name in names}
            columns["log_timestamp"] = instants(columns["log_timestamp_ms"])
            yield record_batch(TABLE.schema, columns, len(found))
