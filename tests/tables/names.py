"""Which tables there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

from kafka_records_tables import TABLES

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
"""A table of each helper, and a view: where every table costs seconds, `make matrix` has the others."""


CAPTURED: Final = tuple(
    (capture, name)
    for capture in ("kafka-2.8", "kafka-4.3", "kafka-4.3-expiry")
    for name in OF_RECORDS
    if capture not in _NOT_IN.get(name, ())
)
"""Captured topics, each with the tables that have rows there."""


def mostly(cases: Iterable[tuple[str, ...]], is_usual: Callable[..., bool]) -> list[Any]:
    """All cases, to be parameters: the usual ones in `make test`, the others in `make matrix`."""
    return [pytest.param(*case, marks=() if is_usual(*case) else pytest.mark.matrix) for case in cases]


USUALLY: Final = mostly(((name,) for name in OF_RECORDS), lambda name: name in USUAL)
"""The tables that are made of records; all but the usual ones in `make matrix` only."""
