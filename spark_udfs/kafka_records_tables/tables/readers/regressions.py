"""Reads `regressions`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafka_records_tables.tables.group_rows.regression_rows import Regressions
from kafka_records_tables.tables.regressions import TABLE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(Regressions):
    def __init__(self, context: Context) -> None:
        super().__init__(context, TABLE.schema)


def named_later(batches: Iterator[Any], context: Context) -> set[int]:
    """The places of the table's records to which rows about later records may refer."""
    found = Reader(context)
    for batch in batches:
        for _ in found.take(batch):
            pass
    for _ in found.finish():
        pass
    return found.named_later()
