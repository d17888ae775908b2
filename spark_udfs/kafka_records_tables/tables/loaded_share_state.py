"""Counts the records of `__share_group_state`, for `log_files`."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.words.loaded_records import loaded
from kafka_records_tables.topics import SHARE_STATE

TABLE: Final = loaded("loaded_share_state", SHARE_STATE, __name__)
