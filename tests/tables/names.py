"""The names of tables."""

from __future__ import annotations

from typing import Final

from kafka_records_tables import TABLES
from tests.variants import mostly

COORDINATED: Final = tuple(name for name, table in TABLES.items() if table.topic != "__cluster_metadata")
"""The tables that captured topics of coordinators have rows for: `test_cluster_metadata.py` has the others."""

OF_RECORDS: Final = tuple(name for name in COORDINATED if TABLES[name].records)
"""The names of the tables that are made of records of coordinators."""

_NOT_IN: Final = {
    "transactions": ("kafka-4.3-expiry",),
    "pending_offsets": ("kafka-4.3-expiry",),
    "regressions": ("kafka-2.8", "kafka-4.3-expiry"),
    "share_partitions": ("kafka-2.8", "kafka-4.3-expiry"),
    "share_group_topics": ("kafka-2.8", "kafka-4.3-expiry"),
    "share_disappearances": ("kafka-2.8", "kafka-4.3-expiry"),
}

USUAL: Final = ("current_offsets", "groups", "open_transactions", "log_ends")
"""A table of each helper, and a view. If every table takes seconds, only `make matrix` has the others."""


CAPTURED: Final = tuple(
    (capture, name)
    for capture in ("kafka-2.8", "kafka-4.3", "kafka-4.3-expiry")
    for name in OF_RECORDS
    if capture not in _NOT_IN.get(name, ())
)
"""Captured topics, each with the tables that have rows there."""


USUALLY: Final = mostly(((name,) for name in OF_RECORDS), lambda name: name in USUAL)
"""The tables that are made from records. All but the usual ones are only in `make matrix`."""
