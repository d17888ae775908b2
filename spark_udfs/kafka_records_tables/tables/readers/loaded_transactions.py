"""Reads `loaded_transactions`."""

from __future__ import annotations

from kafka_records_tables.tables.record_counter import RecordCounter as Reader

__all__ = ["Reader"]
