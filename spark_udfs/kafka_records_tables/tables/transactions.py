"""The transactional ids, as a transaction coordinator knows them at the end of the log."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import TRANSACTIONS

_RECORDS: Final = ("TransactionLog",)

STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""The values of the column `state`, as spelled by Kafka's tools (`TransactionState`)."""

TABLE: Final = Table(
    name="transactions",
    topic=TRANSACTIONS,
    about="every transactional id with its producer and the state of its last transaction",
    helper="latest",
    records=_RECORDS,
    reads=("offset", "key", "value", "control"),
    columns=(
        Column("transactional_id", "string", "the transactional id"),
        Column("producer_id", "int64", "producer of the transaction"),
        Column("producer_epoch", "int16", "epoch of the producer; a higher one fences lower ones"),
        Column(
            "state",
            "string",
            "state of the last transaction, as Kafka's tools spell it: Ongoing, CompleteCommit, …",
            STATES,
        ),
        Column("timeout_ms", "int32", "milliseconds after which the coordinator aborts the transaction"),
        Column(
            "partitions",
            "list<struct<topic: string, partitions: list<int32>>>",
            "partitions written to in the transaction; null in state Empty",
        ),
        *timestamps("start", "when the transaction began; null if none has begun"),
        *timestamps("last_update", "when this state was recorded"),
        *LOG_PLACE,
    ),
    sort=("transactional_id",),
    group="transactional_id",
    module=__name__,
    essential=("transactional_id", "state", "last_update_timestamp"),
    details=("producer_epoch", "timeout_ms", "start_timestamp", "log_partition", "log_offset"),
    rules="""\
One row per transactional id with a record and no later tombstone (`TransactionStateManager.loadTransactionMetadata`;
KIP-98).
""",
)
