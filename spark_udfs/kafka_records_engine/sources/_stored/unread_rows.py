"""Counts the records left to read in a stored log, and finds their times, from the rows of the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.reading.head_walk import ABORT, COMMIT, NO_MARKER, WalkedHeads
from kafka_records_engine.log.reading.tails import LogTail
from kafka_records_engine.log.reading.unread import UNKNOWN, Unread, UnreadAsked, records_to_read, unread_in

MOST_ROWS: Final = 1_000_000
"""The number of offsets at the end of a log to read. For earlier offsets, the result is UNKNOWN."""

COLUMNS: Final = ("offset", "timestamp_ms", "timestamp_type", "producer_id", "transaction", "control")


def unread_rows(asked: UnreadAsked, batches: Iterable[Any], first: int) -> Unread:
    """The records left to read after each requested offset, counted in rows with `COLUMNS` that start at the offset
    `first`."""
    rows = pa.Table.from_batches(batches) if (batches := list(batches)) else None
    if rows is None or rows["transaction"].null_count:
        unknown = np.full(len(asked.offsets), UNKNOWN, np.int64)
        return Unread(unknown, unknown.copy(), unknown.copy(), unknown.copy())
    heads = _heads(rows)
    found = unread_in(heads, asked.offsets, np.minimum(asked.offsets, first))
    for each in (found.unread, found.held_back, found.timestamp_ms, found.precision):
        each[asked.offsets < first] = UNKNOWN
    if asked.with_tail:
        chosen = np.flatnonzero(records_to_read(heads))
        times = np.maximum.accumulate(heads.max_timestamp[chosen])
        found.tail = LogTail(heads.last[chosen], times, first)
    return found


def _heads(rows: pa.Table) -> WalkedHeads:
    """Each row as a batch of one record."""
    offsets, times = (rows[name].to_numpy().astype(np.int64) for name in ("offset", "timestamp_ms"))
    control = rows["control"]
    commits, aborts = (_flags(pc.equal(control, word)) for word in ("commit", "abort"))
    return WalkedHeads(
        base=offsets,
        last=offsets,
        count=np.ones(len(offsets), np.int64),
        is_control=_flags(pc.is_valid(control)),
        is_transactional=_flags(pc.not_equal(rows["transaction"], "none")),
        marker=np.where(commits, COMMIT, np.where(aborts, ABORT, NO_MARKER)).astype(np.int64),
        producer=rows["producer_id"].to_numpy().astype(np.int64),
        first_timestamp=times,
        max_timestamp=times,
        is_append_time=_flags(pc.equal(rows["timestamp_type"], "log_append")),
        size=np.zeros(len(offsets), np.int64),
    )


def _flags(column: Any) -> Any:
    return pc.fill_null(column, False).to_numpy().astype(np.bool_)
