"""The findings of `checks` in one partition of `__transaction_state`."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import Table
from kafka_records_tables.tables.words.check_words import OPTIONS, PART_COLUMNS, READS
from kafka_records_tables.topics import TRANSACTIONS

TABLE: Final = Table(
    name="transaction_checks",
    topic=TRANSACTIONS,
    about="what checks finds in __transaction_state",
    helper="fold",
    records=("TransactionLog",),
    reads=READS,
    columns=PART_COLUMNS,
    sort=("log_partition", "log_offset", "check"),
    group="transactional_id",
    module=__name__,
    options=OPTIONS,
    rules="This table is an input of `checks`.",
)
