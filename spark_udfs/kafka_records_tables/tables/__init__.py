"""The tables, one module each: a declaration and a function from the records of one log partition to rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_records_tables.tables import (
    assignments,
    current_offsets,
    expirations,
    groups,
    log_ends,
    members,
    offset_commits,
    open_transactions,
    pending_offsets,
    share_group_topics,
    share_partitions,
    transactions,
)
from kafka_records_tables.tables.declaration import Column, Option, Table

__all__ = ["TABLES", "Column", "Option", "Table"]

TABLES: Final[Mapping[str, Table]] = {
    module.TABLE.name: module.TABLE
    for module in (
        current_offsets,
        groups,
        members,
        assignments,
        offset_commits,
        pending_offsets,
        expirations,
        share_partitions,
        share_group_topics,
        transactions,
        open_transactions,
        log_ends,
    )
}
"""The tables by name."""
