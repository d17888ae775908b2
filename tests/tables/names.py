"""Which tables there are."""

from __future__ import annotations

from typing import Final

from kafka_records_tables import TABLES

OF_RECORDS: Final = tuple(name for name, table in TABLES.items() if table.records)
"""The names of the tables that are made of records."""
