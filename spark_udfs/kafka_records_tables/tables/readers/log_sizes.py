"""Reads `log_sizes`."""

from __future__ import annotations

from kafka_records_tables.tables.log_sizes import TABLE
from kafka_records_tables.tables.passed_columns import PassedColumns


class Reader(PassedColumns):
    table = TABLE
