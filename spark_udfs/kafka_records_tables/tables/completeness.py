"""Determines whether a cleaner has removed records from a log, and from which offset or time an answer is complete.

Below the point that it has reached, a cleaner removes records that later ones replace, and old tombstones and markers.
Each removed record leaves a gap in the offsets, so a log without gaps is complete. An answer about the end of the log
is the same with and without these records. An answer as of an earlier time, or about the past, may need them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import INCOMPLETE_HISTORY, Finding
from kafka_records_engine.numpy_types import INT64
from kafka_records_tables.tables.column_types import YEAR_1_MS, YEAR_9999_END_MS
from kafka_records_tables.topics import SHARE_STATE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.declaration import Table

_BEFORE_ALL: Final = -(2**63)


class Completeness:
    """Watches the offsets and timestamps of a log partition in order, and reports what is missing.

    No file shows when a removed record was written, so timestamps are assumed to rise with offsets, as a coordinator's
    clock does. If a source does not know how far a cleaner has come (`Context.cleaned_up_to`), it is assumed not to
    have reached the last row.

    A coordinator may delete the beginning of its log because of any later record. So for such a log, the log start
    counts as a gap, and only an answer as of the last record is known to be complete.
    """

    def __init__(self, context: Context, table: Table) -> None:
        self._context = context
        self._table = table
        # The share coordinator deletes the beginning of its log once later records replace it, so earlier states are
        # lost (ShareCoordinatorService.setupRecordPruning).
        self._is_pruned = table.topic == SHARE_STATE
        self._next = self._last = -1
        self._is_cut = False
        self._whole_from: int | None = None
        """The offset after the last gap before the end of the answer; None if there is none."""
        self._since_ms = _BEFORE_ALL
        """The timestamp of the last record that a cleaner may have reached."""
        self._is_beyond = False
        """Whether all records that a cleaner may have reached have been seen."""
        self._in_transaction: set[int] = set()
        """Producers of records that a cleaner may have reached, with transactions without a marker so far."""
        self._ended: set[int] = set()
        """Producers with a marker that no cleaner has reached."""

    def before(self, batch: pa.RecordBatch, times: INT64 | None) -> None:
        """Add rows that belong to the answer."""
        if batch.num_rows:
            offsets = batch.column("offset").to_numpy()
            self._look_for_gaps(offsets)
            if times is not None:
                self._note_times(batch, offsets, times)

    def behind(self, batch: pa.RecordBatch, times: INT64) -> None:
        """Add rows after the requested time. The first of them ends the answer."""
        offsets = batch.column("offset").to_numpy()
        if not self._is_cut:
            self._is_cut = True
            self._look_for_gaps(offsets[:1])
        self._note_times(batch, offsets, times)

    def _begin(self) -> None:
        """Start with the first rows, because a source reports its log start only then."""
        if self._next < 0:
            self._next = 0 if self._is_pruned else self._context.log.start or 0
            self._last = self._next - 1

    def _look_for_gaps(self, offsets: INT64) -> None:
        self._begin()
        first, last = int(offsets[0]), int(offsets[-1])
        if last - first + 1 != len(offsets):
            self._whole_from = int(offsets[np.flatnonzero(np.diff(offsets) != 1)[-1] + 1])
        elif first > self._next:
            self._whole_from = first
        self._next = last + 1
        self._context.log.whole_from = self._whole_from

    def _note_times(self, batch: pa.RecordBatch, offsets: INT64, times: INT64) -> None:
        limit, count = self._limit, len(offsets)
        if limit is not None:
            self._note_transactions(batch, offsets, times, limit)
            if self._table.reader.tells_open:
                self._note_first_ends(batch, offsets, times, limit)
        if self._is_beyond:
            return
        if limit is not None:
            count = int(np.searchsorted(offsets, limit))
            is_next_seen = count < len(offsets)
            is_last_there = (int(offsets[count - 1]) if count else self._last) >= limit - 1
            self._is_beyond = is_next_seen or is_last_there
            # A record missing just below the limit was written before the next record.
            count += is_next_seen and not is_last_there
        if count:
            self._since_ms = max(self._since_ms, int(times[:count].max()))
        self._last = int(offsets[-1])

    def _note_transactions(self, batch: pa.RecordBatch, offsets: INT64, times: INT64, limit: int) -> None:
        """Note open transactions. A cleaner knows all markers, and may remove an older value because of a marker that
        it has not reached."""
        if not {"producer_id", "transaction"} <= set(batch.schema.names):
            return
        is_marker = batch.column("control").is_valid().to_numpy(zero_copy_only=False)
        is_part = pc.fill_null(pc.not_equal(batch.column("transaction"), "none"), False).to_numpy(zero_copy_only=False)
        is_part = is_part & ~is_marker & (offsets < limit)
        if not is_part.any() and not (self._in_transaction and is_marker.any()):
            return
        rows = np.flatnonzero(is_part | is_marker)
        producers = batch.column("producer_id").take(pa.array(rows)).to_pylist()
        for row, producer in zip(rows.tolist(), producers, strict=True):
            if not is_marker[row]:
                self._in_transaction.add(producer)
            elif producer in self._in_transaction:
                self._in_transaction.discard(producer)
                self._since_ms = max(self._since_ms, int(times[row]))

    def _note_first_ends(self, batch: pa.RecordBatch, offsets: INT64, times: INT64, limit: int) -> None:
        """Note the first marker of each producer that a cleaner has not reached: the transaction that it ends may have
        lost all its records, but the records of later transactions still exist."""
        is_marker = batch.column("control").is_valid().to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(is_marker & (offsets >= limit))
        producers = batch.column("producer_id").take(pa.array(rows)).to_pylist()
        for row, producer in zip(rows.tolist(), producers, strict=True):
            if producer not in self._ended:
                self._ended.add(producer)
                self._since_ms = max(self._since_ms, int(times[row]))

    @property
    def is_known(self) -> bool:
        """Whether no later row can change the note about an answer that has ended."""
        if self._whole_from is None:
            return True
        return self._is_beyond and not self._in_transaction and not self._table.reader.tells_open

    @property
    def _limit(self) -> int | None:
        """The offset up to which records may have been removed; None if unknown. Sources report it late."""
        return None if self._is_pruned else self._context.log.cleaned_up_to

    def report(self) -> None:
        """Report a note if something is missing."""
        self._begin()
        context, limit = self._context, self._limit
        if limit is None:
            self._is_beyond = True
        elif not self._is_cut and self._next < limit:
            self._whole_from = limit
        if self._whole_from is None:
            return
        removed = "the coordinator removed them" if self._is_pruned else "compaction removed them"
        what = f"records at some offsets are missing: {removed}, or a file is missing"
        if context.log.holes:
            what = f"records at some offsets are missing: they could not be read, or {removed}"
        complete_from = None
        if self._table.is_history:
            complete_from = self._whole_from
            consequence = f"the history is complete from offset {self._whole_from} on, and has gaps before"
        elif context.question.as_of_ms is None or (self._is_beyond and context.question.as_of_ms >= self._since_ms):
            return
        elif self._is_beyond:
            since = time_text(self._since_ms)
            consequence = f"rows may be missing or not as they were then; as of {since} or later the answer is complete"
        else:
            consequence = "rows may be missing or not as they were then; only the answer of the whole log is complete"
        note = Finding("note", INCOMPLETE_HISTORY, what, consequence, context.topic, context.partition)
        context.report(replace(note, complete_from=complete_from))


def time_text(milliseconds: int) -> str:
    """A time as text, if it is in the years 1 to 9999."""
    if not YEAR_1_MS <= milliseconds <= YEAR_9999_END_MS:
        return f"{milliseconds} ms since 1970"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
