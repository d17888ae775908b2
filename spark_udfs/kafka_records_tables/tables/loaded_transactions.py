"""Counts the records of `__transaction_state`, for `log_files`."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.words.loaded_records import loaded
from kafka_records_tables.topics import TRANSACTIONS

TABLE: Final = loaded("loaded_transactions", TRANSACTIONS, __name__)
