"""Counts the records of `__consumer_offsets`, for `log_files`."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.words.loaded_records import loaded
from kafka_records_tables.topics import OFFSETS

TABLE: Final = loaded("loaded_offsets", OFFSETS, __name__)
