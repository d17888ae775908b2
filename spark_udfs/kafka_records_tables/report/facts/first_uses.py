"""The first record of each transactional id, and the transactions of that id: a table that only the report uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.report.facts.transaction_statuses import EMPTY
from kafka_records_tables.tables.column_types import batch_of
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.topics import TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.report.rule_context import RuleContext

_PREPARED: Final = frozenset({2, 3})
"""The states in which a transaction has just ended (PrepareCommit, PrepareAbort)."""

TABLE: Final = Table(
    name="first_uses",
    topic=TRANSACTIONS,
    about="the first record of every transactional id, and how long its transactions took",
    helper="history",
    records=("TransactionLog",),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("transactional_id", "string", "the transactional id"),
        Column("is_new", "bool", "whether the id was new then; if not, a cleaner has removed the earlier records"),
        Column("ended", "int64", "number of its transactions in the log that ended"),
        Column("longest_ms", "int64", "duration of the longest of these in milliseconds; null if there is none"),
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


def uses_of(context: RuleContext) -> dict[str, dict[str, Any]]:
    """The rows by transactional id; empty if the report was made only from tables."""
    return {each["transactional_id"]: each for each in context.look(TABLE).to_pylist()}


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
        began = found.member(self.types, "value", "transaction_start_timestamp_ms").to_pylist()
        updated = found.member(self.types, "value", "transaction_last_update_timestamp_ms").to_pylist()
        for at, (name, state, epoch) in enumerate(zip(ids, states, epochs, strict=True)):
            if state in _PREPARED and name in self._firsts and began[at] is not None and began[at] >= 0:
                of_id = self._firsts[name]
                of_id["ended"] += 1
                of_id["longest_ms"] = max(of_id["longest_ms"] or 0, updated[at] - began[at])
            if name is not None and state is not None and name not in self._firsts:
                self._firsts[name] = {
                    "transactional_id": name,
                    "is_new": state == EMPTY and epoch == 0,
                    "ended": 0,
                    "longest_ms": None,
                    "log_timestamp_ms": None if times is None else times[at],
                    "log_partition": self.context.partition,
                    "log_offset": int(found.offsets[at]),
                }
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        found = list(self._firsts.values())
        if found:
            yield batch_of(TABLE.schema, found)
