"""Divides a log partition into ranges of offsets for several tasks.

The markers of transactions that are open at the end of a range are after it. So a task continues beyond its range until
it has found the markers of these producers, and ignores everything else there.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.sources import Context
from kafka_records_engine.sources.abilities import CanBeCut, has, tell_transactions
from kafka_records_engine.sources.broker_threads import leader_of
from kafka_records_tables.coordinator.transactions import OPEN, PENDING

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition

_WAITS: Final = pa.array([PENDING, OPEN])
_NEEDED: Final = frozenset({"producer_id", "transaction", "control"})


@dataclass(frozen=True, slots=True)
class LogRange:
    """The rows of a log partition from the offset `start` up to but not including `end`; None means the start or the
    end of the log.

    They are followed only by the markers of transactions that are open at `end`. If `looks_behind` is False, there are
    no such markers, as if the log ended at `end`.
    """

    log: LogPartition
    start: int | None
    end: int | None
    size: int
    looks_behind: bool = True

    @property
    def topic(self) -> str:
        """The topic."""
        return self.log.topic

    @property
    def partition(self) -> int:
        """The partition."""
        return self.log.partition

    @property
    def in_memory(self) -> bool:
        """Whether the complete log partition is in memory."""
        return self.log.in_memory

    @property
    def leader(self) -> Hashable:
        """The broker from which the range is read, if there is one."""
        return leader_of(self.log)

    @property
    def tells_transactions(self) -> bool:
        """Whether the complete log partition shows which records are transactional."""
        return tell_transactions([self.log])

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `protocol.LogPartition.batches`."""
        first = max((each for each in (start, self.start) if each is not None), default=None)
        behind = min((each for each in (end, self.end) if each is not None), default=None)
        waiting = _Waiting()
        has_transactions = set(columns) >= _NEEDED
        for batch in self.log.batches(context, columns, first, behind):
            if has_transactions and behind is not None:
                waiting.note(batch)
            yield batch
        if behind is None:
            return
        # The source reports a gap after the range, because markers may be there. This reader looks them up or does not
        # need them.
        if context.log.holes and context.log.holes[-1] == behind - 1:
            context.log.holes.pop()
        if self.looks_behind and waiting.producers:
            yield from self._markers(context, columns, behind, waiting)

    def _markers(
        self, context: Context, columns: Collection[str], behind: int, waiting: _Waiting
    ) -> Iterator[pa.RecordBatch]:
        # The task that reads the other range reports its findings. This task reports only gaps that may hide a marker.
        looking = Context(self.topic, self.partition)
        told = 0
        for batch in self.log.batches(looking, columns, behind, None):
            for hole in looking.log.holes[told:]:
                context.log.add_hole(hole)
            told = len(looking.log.holes)
            wanted = pc.is_in(batch.column("producer_id"), value_set=pa.array(list(waiting.producers), pa.int64()))
            ends = batch.filter(pc.and_(pc.is_valid(batch.column("control")), wanted))
            if ends.num_rows:
                yield ends
                waiting.note(ends)
                if not waiting.producers:
                    return
        for hole in looking.log.holes[told:]:
            context.log.add_hole(hole)


@dataclass(slots=True)
class _Waiting:
    """The producers with open transactions."""

    producers: set[int] = field(default_factory=set)

    def note(self, batch: pa.RecordBatch) -> None:
        """Process the next rows."""
        is_end = pc.is_valid(batch.column("control")).to_numpy(zero_copy_only=False)
        waits = pc.fill_null(pc.is_in(batch.column("transaction"), value_set=_WAITS), False)
        is_part = waits.to_numpy(zero_copy_only=False) & ~is_end
        if not is_part.any() and not (self.producers and is_end.any()):
            return
        rows = np.flatnonzero(is_part | is_end)
        producers = batch.column("producer_id").take(pa.array(rows)).to_pylist()
        # Only the last row of each producer counts.
        for producer, has_ended in dict(zip(producers, is_end[rows].tolist(), strict=True)).items():
            if has_ended:
                self.producers.discard(producer)
            else:
                self.producers.add(producer)


def parts_of(log: LogPartition, size: int) -> list[LogPartition]:
    """Divide a log partition into ranges of about `size` bytes each, if its source can find places to cut (`cuts`).
    Otherwise, it stays whole."""
    outer = log if isinstance(log, LogRange) else LogRange(log, None, None, log.size)
    whole = outer.log
    cuts = whole.cuts(size) if has(whole, CanBeCut) else ()
    inner = sorted({at for at in cuts if at > (outer.start or 0) and (outer.end is None or at < outer.end)})
    if not inner:
        return [log]
    ends = [*inner, outer.end]
    share = log.size // len(ends)
    return [LogRange(outer.log, start, end, share) for start, end in zip([outer.start, *inner], ends, strict=True)]
