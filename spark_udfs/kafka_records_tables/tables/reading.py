"""Raw rows on their way into a table: counted, cut at a moment, held against the offsets before them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_arrow.varints import FLAGS, INT16, INT64
from kafka_records_engine.findings import INCOMPLETE_HISTORY, Finding
from kafka_records_tables.tables.types import YEAR_1_MS, YEAR_9999_END_MS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.declaration import Table


def in_order(batches: Iterator[pa.RecordBatch], context: Context, table: Table) -> Iterator[pa.RecordBatch]:
    """The batches that a table looks at: up to the moment it is asked about, of the groups it is asked about.

    Counts records and markers, and notes from where on the answer is complete, where a cleaner has been and the answer
    depends on what it took away (`Table.is_history`, `Context.as_of_ms`).
    """
    gaps = _Gaps(context)
    cut = False
    for batch in batches:
        if not batch.num_rows:
            continue
        offsets = batch.column("offset").to_numpy()
        times = batch.column("timestamp_ms").to_numpy() if context.as_of_ms is not None else None
        if cut:
            gaps.behind(offsets, times)
            if gaps.is_known:
                break
            continue
        if times is not None:
            later = np.flatnonzero(times > context.as_of_ms)
            if later.size:
                cut = True
                first = int(later[0])
                gaps.before(offsets[:first], times[:first])
                gaps.behind(offsets[first:], times[first:])
                batch = batch.slice(0, first)
        if not cut:
            gaps.before(offsets, times)
        if batch.num_rows:
            markers = batch.num_rows - batch.column("control").null_count
            context.counts.records += batch.num_rows - markers
            context.counts.markers += markers
            yield _of_groups(batch, context)
        if cut and gaps.is_known:
            break
    gaps.tell(cut, table)


class _Gaps:
    """Where offsets are missing, and until when.

    A cleaner takes records away that were written over later, and only below a point it has reached: from there on
    nothing is missing. What it took away leaves a gap, so a log without gaps is whole.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._next = context.log_start
        self._gap = False
        self._latest_ms = YEAR_1_MS
        self._last = -1
        self._cut_at = -1

    def before(self, offsets: INT64, times: INT64 | None) -> None:
        """Rows that belong to the answer."""
        if not len(offsets):
            return
        if not self._gap:
            first = int(offsets[0])
            missing = int(offsets[-1]) - first + 1 != len(offsets)
            self._gap = missing or (first > 0 if self._next is None else first > self._next)
        self._next = int(offsets[-1]) + 1
        self._note(offsets, times)

    def behind(self, offsets: INT64, times: INT64 | None) -> None:
        """Rows behind the moment that was asked about."""
        if self._cut_at < 0:
            self._cut_at = int(offsets[0])
        if self._gap and not self.is_known:
            self._note(offsets, times)

    def _note(self, offsets: INT64, times: INT64 | None) -> None:
        self._last = int(offsets[-1])
        if times is None:
            return
        limit = self._context.cleaned_up_to
        if limit is not None:
            times = times[offsets < limit]
        if len(times):
            self._latest_ms = max(self._latest_ms, int(times.max()))

    @property
    def is_known(self) -> bool:
        """Whether what follows cannot change what is said of completeness."""
        limit = self._context.cleaned_up_to
        return not self._gap or (limit is not None and self._last >= limit - 1)

    def tell(self, was_cut: bool, table: Table) -> None:
        """The note, if there is something to note."""
        limit, context = self._context.cleaned_up_to, self._context
        if not self._gap or (was_cut and limit is not None and self._cut_at >= limit):
            return
        if was_cut:
            what = "records are missing that were written over later: a cleaner has been here"
            since = _text_of(self._latest_ms)
            consequence = f"rows may be missing; an answer as of {since} or later is complete"
        elif table.is_history:
            what = "offsets are missing: a cleaner has been here"
            consequence = f"what happened is complete from offset {limit} on, and told only in part before"
            if limit is None:
                consequence = "what happened is told in part, and nobody can tell from which offset on it is complete"
        else:
            return
        note = Finding("note", INCOMPLETE_HISTORY, what, consequence, context.topic, context.partition)
        context.find(note)


def _text_of(milliseconds: int) -> str:
    if not YEAR_1_MS <= milliseconds <= YEAR_9999_END_MS:
        return f"{milliseconds} ms since 1970"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _of_groups(batch: pa.RecordBatch, context: Context) -> pa.RecordBatch:
    """The rows about some groups, and the control rows, which are about a producer."""
    if context.groups is None:
        return batch
    keys = batch.column("key")
    kept = pc.is_valid(batch.column("control"))
    for group in context.groups:
        encoded = group.encode("utf-8", "surrogatepass")
        start = len(encoded).to_bytes(2, "big") + encoded
        kept = pc.or_(kept, pc.fill_null(pc.equal(pc.binary_slice(keys, 2, 2 + len(start)), pa.scalar(start)), False))
    return batch.filter(kept)


def record_types(keys: pa.Array) -> tuple[INT16, FLAGS]:
    """The int16 that each key starts with, and which keys have one."""
    offsets = np.frombuffer(keys.buffers()[1], np.int32, len(keys) + 1, keys.offset * 4)
    content = keys.buffers()[2]
    data = np.frombuffer(content, np.uint8) if content is not None and content.size else np.zeros(2, np.uint8)
    starts = offsets[:-1]
    long = np.diff(offsets) >= 2
    if keys.null_count:
        long &= keys.is_valid().to_numpy(zero_copy_only=False)
    if not long.all():
        starts = np.where(long, starts, 0)
    if len(data) < 2:
        return np.zeros(len(keys), np.int16), np.zeros(len(keys), np.bool_)
    types = (data[starts].astype(np.int16) << 8) | data[starts + 1]
    return types, long
