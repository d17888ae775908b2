"""Reads `open_producers`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import UNREAD_LOG, Finding
from kafka_records_tables.tables.open_producers import TABLE
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.topics import OFFSETS, TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_UNTOLD: Final = ["topic", "partition", "high_watermark", "last_stable_offset", "open_producers"]
_NEVER: Final = 1 << 63


class Reader(TableReader):
    """Keeps the logs with open transactions, because only after the last log is it known whether the topic of
    transactions exists."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._has_entries = False
        self._rows: list[dict[str, Any]] = []
        self._moments: list[int] = []

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        newest = pc.max(batch.column("high_watermark_timestamp_ms")).as_py()
        self._moments += [] if newest is None else [newest]
        self._has_entries |= TRANSACTIONS in batch.column("topic").to_pylist()
        for log in batch.select(_UNTOLD).to_pylist():
            if log["open_producers"] is None and (log["high_watermark"] or 0) > (
                _NEVER if log["last_stable_offset"] is None else log["last_stable_offset"]
            ):
                what = (
                    f"a transaction is open from offset {log['last_stable_offset']} on, but no leader reports its "
                    f"producer"
                )
                impact = f"it has no row: grant READ on topic {log['topic']} if that right is missing"
                self._context.report(Finding("note", UNREAD_LOG, what, impact, log["topic"], log["partition"]))
        is_open = [bool(each) for each in batch.column("open_producers").to_pylist()]
        for log in batch.filter(pa.array(is_open, pa.bool_())).to_pylist():
            self._rows += _rows_of(log)
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        rows = [row | {"has_entries": self._has_entries} for row in self._rows]
        moments = [*self._moments, *(row["last_timestamp_ms"] for row in rows if row["last_timestamp_ms"] is not None)]
        if moments:
            rows.append({"moment_ms": max(moments)})
        yield from pa.Table.from_pylist(rows, TABLE.schema).to_batches()


def _rows_of(log: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The open transactions of a log."""
    stable = log["last_stable_offset"]
    if stable is None:
        stable = min(each["first_offset"] for each in log["open_producers"])
    end = log["high_watermark"] if log["log_end_offset"] is None else log["log_end_offset"]
    for each in log["open_producers"]:
        is_first = each["first_offset"] <= stable
        yield {
            **each,
            "topic": log["topic"],
            "partition": log["partition"],
            "last_stable_offset": stable,
            "held_back": None if end is None else max(end - each["first_offset"], 0) if is_first else 0,
            "holds_cleaner": _holds_cleaner(log, each["first_offset"]),
        }


def _holds_cleaner(log: Mapping[str, Any], first_offset: int) -> bool | None:
    """Whether a transaction keeps a cleaner from cleaning records before the newest file of a compacted log; None if no
    file shows it."""
    sizes = log["sizes"]
    if not sizes or sizes[-1]["offset"] is None:
        return None
    is_compacted = log["topic"] in (OFFSETS, TRANSACTIONS) or log["cleaner_offset"] is not None
    return is_compacted and first_offset < int(sizes[-1]["offset"])
