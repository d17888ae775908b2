"""Reads `expirations`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import LATER_RECORDS, UNJUDGED_RULES, Finding
from kafka_records_tables.tables.expirations import _NAMES, KIP_211, TABLE
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.removal.expiry_rows import ExpiryRows
from kafka_records_tables.tables.removal.held_offsets import HeldCollector

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class Reader(TableReader):
    tells_open = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._at: int | None = context.question.options["at"]
        self._latest_ms = self._at or 0
        self._held = HeldCollector(context, _NAMES)

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        if self._at is not None:
            self._latest_ms = max(self._latest_ms, pc.max(batch.column("timestamp_ms")).as_py() or self._latest_ms)
        self._held.take(batch)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        context, asked = self._context, self._context.question.options
        if self._at is not None and self._latest_ms > self._at:
            context.report(_later_records(context))
        found = self._held.held()
        is_kip_211 = asked["rules"] == KIP_211
        if is_kip_211:
            context.report(_unjudged(context))
        made = ExpiryRows(TABLE.schema, found, context, asked["retention"], is_kip_211=is_kip_211)
        return made.batches(self._at, asked["within"])


def _later_records(context: Context) -> Finding:
    what = "it has records that are later than the moment of the option at"
    consequence = (
        "the clean-up is assumed to have found the offsets at the end of the log; pass the same moment as --as-of to "
        "get the offsets of that time"
    )
    return Finding("note", LATER_RECORDS, what, consequence, context.topic, context.partition)


def _unjudged(context: Context) -> Finding:
    what = "these are the rules of KIP-211, which no broker follows exactly"
    consequence = "they were not compared with a broker, unlike the rules kafka-4.3"
    return Finding("note", UNJUDGED_RULES, what, consequence, context.topic, context.partition)
