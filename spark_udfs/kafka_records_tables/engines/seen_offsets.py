"""Tracks which offsets were in the pieces of a log partition. A cleaner has removed those missing in between.

This does not apply to sources that do not report transactions. Spark's own Kafka source, for example, omits control
records, and aborted records under `read_committed`, so its gaps do not show that a cleaner removed records.

A cleaner removes a tombstone `delete.retention.ms` after it has removed what the tombstone deleted, and likewise a
marker after the records of its transaction (`LogCleaner`, `CleanedTransactionMetadata`). If a reader has read a value,
or a record of an open transaction, and continues only after that time, it can no longer find out what happened to the
record. If it continues earlier, it misses nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

SEEN: Final = pa.schema([("first", pa.int64()), ("last", pa.int64()), ("written_ms", pa.int64())])
"""Offsets `first` to `last`, none of which are known to be missing, and when the last record was written (UNTOLD_MS if
unknown)."""

UNTOLD_MS: Final = -1

IS_TOLD: Final = "is_told"
"""The column that says whether the source of a raw row reports its transaction or producer, or has control rows."""

_START: Final = 0


def seen_of(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The offsets of raw rows of one log partition, as SEEN. The rows have `offset`, `timestamp_ms` and IS_TOLD, in any
    order. Before a row without IS_TOLD, nothing counts as missing."""
    order = np.argsort(rows.column("offset").to_numpy(), kind="stable")
    offsets = rows.column("offset").to_numpy()[order]
    times = rows.column("timestamp_ms").fill_null(UNTOLD_MS).to_numpy()[order]
    cuts = np.flatnonzero(np.diff(offsets) > 1)
    begins, ends = np.append(0, cuts + 1), np.append(cuts, len(offsets) - 1)
    is_told = rows.column(IS_TOLD).to_numpy(zero_copy_only=False)[order]
    # If a part starts at the beginning of the log, there is no gap before it.
    first = np.where(is_told[begins], offsets[begins], _START)
    return pa.RecordBatch.from_arrays([pa.array(each) for each in (first, offsets[ends], times[ends])], SEEN.names)


def first_lost(seen: pa.Table, read_to: int, written_ms: int, before_ms: int) -> int | None:
    """The first missing offset after a record that was written before `before_ms`; None if there is none.

    The log was read up to `read_to`; the record before that was written at `written_ms`.
    """
    ordered = seen.sort_by("last")
    first, last, written = (ordered.column(name).to_numpy() for name in SEEN.names)
    is_new = last >= read_to
    first, last, written = first[is_new], last[is_new], written[is_new]
    ends, times = np.append(read_to - 1, last[:-1]), np.append(written_ms, written[:-1])
    # The same rows may appear twice: a part may lie inside another one. It ends before the outer part, and must not
    # hide a gap.
    lowest = np.minimum.accumulate(first[::-1])[::-1]
    lost = np.flatnonzero((lowest > ends + 1) & (times < before_ms))
    return int(ends[lost[0]]) + 1 if lost.size else None


def last_seen(seen: pa.Table) -> tuple[int, int]:
    """The last offset and the time of its record. There must be at least one offset."""
    last = int(np.argmax(seen.column("last").to_numpy()))
    return seen.column("last")[last].as_py(), seen.column("written_ms")[last].as_py()
