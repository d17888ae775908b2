"""Writes one partition of the log: draws batches, frames them, writes them to segment files, and remembers the expected
answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tools.segments.batch_bytes import CONTROL_BIT, TRANSACTIONAL_BIT, Batches, Records, framed
from tools.segments.plan import OFFSETS_TOPIC, Plan
from tools.segments.pool import INT64, MARKERS, TRANSACTIONAL, Kind, Pool, Subjects, pool_of
from tools.segments.truth import Memory

FLAGS = NDArray[np.bool_]

_CHUNK: Final = 60_000
"""The number of records that are drawn and framed together: few enough for the caches of a processor."""

_LONGEST_TRANSACTION: Final = 8
"""The maximum number of batches between the batch of a transaction and its marker."""
_PRODUCERS: Final = 64
"""The number of producers: more than the transactions at any time, because a producer has one at a time."""
_FIRST_PRODUCER: Final = 1000
_FIRST_OPEN_PRODUCER: Final = 1_000_000_000
_MOST_EPOCHS: Final = 1 << 15
_STEPS_OF_OFFSETS: Final = 10
"""Committed offsets grow by this number per record of the log."""


class Place(NamedTuple):
    """The place of a batch."""

    file: str
    position: int
    size: int
    base_offset: int
    records: int
    is_control: bool


@dataclass
class Written:
    """The result for one partition."""

    files: list[Path] = field(default_factory=list)
    records: int = 0
    """The number of ordinary records. The partition ends at the offset `records + markers`."""
    markers: int = 0
    batches: int = 0
    bytes: int = 0
    places: list[Place] = field(default_factory=list)
    """The places of all batches, if damage was requested."""


def write_partition(plan: Plan, partition: int, subjects: Subjects, records: int, folder: Path) -> tuple[Written, Any]:
    """Write `records` records about `subjects` into `folder`; returns what was written and its `Memory`."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng([plan.seed, partition])
    memory = Memory(plan, partition, subjects)
    with _Files(folder, plan.segment_bytes, keeps_places=bool(plan.damage)) as files:
        if records:
            pool = pool_of(plan, subjects)
            memory.kinds = pool.kinds
            for drawn in _Draws(plan, pool, random).chunks(records):
                data, ends = framed(pool, drawn.batches, drawn.records, plan.codec)
                files.add(data, ends, drawn.batches)
                memory.add(pool, drawn)
    return files.written, memory


# -------------------------------------------------------------------------------------------------------------- drawing


class Drawn(NamedTuple):
    """Some batches with their records, and for every record whether it takes effect."""

    batches: Batches
    records: Records
    offset: INT64
    counts: FLAGS
    """False for records of transactions that were aborted or left open, and for markers."""


class _Draws:
    def __init__(self, plan: Plan, pool: Pool, random: np.random.Generator) -> None:
        self._plan = plan
        self._pool = pool
        self._random = random
        self._next_offset = 0
        self._transactions = 0
        wanted = {name: share for name, share in plan.shares.items() if share and name in pool.kinds}
        self._kinds = [pool.kinds[name] for name in wanted]
        total = sum(wanted.values())
        self._shares = [share / total for share in wanted.values()]

    def chunks(self, records: int) -> Iterator[Drawn]:
        while records:
            sizes = self._sizes(min(records, _CHUNK))
            records -= int(sizes.sum())
            yield self._chunk(sizes)

    def _sizes(self, records: int) -> INT64:
        """Sizes of batches that have this number of records together."""
        low, high = self._plan.records_per_batch
        sizes = self._random.integers(low, high + 1, records // low + 1)
        ends = np.cumsum(sizes)
        count = int(np.searchsorted(ends, records)) + 1
        sizes = sizes[:count]
        sizes[-1] -= ends[count - 1] - records
        return sizes

    def _chunk(self, sizes: INT64) -> Drawn:
        random, plan = self._random, self._plan
        order = _Order(plan, sizes, random)
        transaction = self._transactions + order.transaction
        self._transactions += order.transactions
        count = np.where(order.is_marker, 1, sizes[order.batch])
        base_offset = self._next_offset + np.cumsum(count) - count
        producer = np.where(
            order.is_open, _FIRST_OPEN_PRODUCER + transaction, _FIRST_PRODUCER + transaction % _PRODUCERS
        )
        batches = Batches(
            base_offset=base_offset,
            counts=count,
            attributes=CONTROL_BIT * order.is_marker.astype(np.int64) + TRANSACTIONAL_BIT * order.takes_part,
            producer_id=np.where(order.takes_part, producer, -1),
            producer_epoch=np.where(order.takes_part, transaction // _PRODUCERS % _MOST_EPOCHS, -1),
            # As coordinators write it: the group coordinator starts each batch with sequence 0.
            base_sequence=np.where(order.is_marker | (plan.topic != OFFSETS_TOPIC), -1, 0),
        )
        in_batch = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        offset = np.repeat(base_offset, count) + in_batch
        self._next_offset += len(offset)
        records = Records(
            template=self._templates(order, count),
            in_batch=in_batch,
            timestamp=plan.start_ms + offset,
            committed=_STEPS_OF_OFFSETS * offset + random.integers(0, _STEPS_OF_OFFSETS, len(offset)),
        )
        counts = ~order.is_marker & (~order.takes_part | order.is_committed)
        return Drawn(batches, records, offset, np.repeat(counts, count))

    def _templates(self, order: _Order, count: INT64) -> INT64:
        rows = int(count.sum())
        templates = np.empty(rows, np.int64)
        kinds = self._random.choice(len(self._kinds), rows, p=self._shares)
        for number, kind in enumerate(self._kinds):
            chosen = np.flatnonzero(kinds == number)
            templates[chosen] = self._drawn(kind, len(chosen))
        if order.transactions:
            inside = np.flatnonzero(np.repeat(order.takes_part & ~order.is_marker, count))
            templates[inside] = self._drawn(self._pool.kinds[TRANSACTIONAL], len(inside))
            markers = np.repeat(order.is_marker, count)
            templates[markers] = self._pool.kinds[MARKERS].first + order.is_committed[order.is_marker]
        return templates

    def _drawn(self, kind: Kind, rows: int) -> INT64:
        return kind.first + self._random.integers(0, kind.subjects * kind.variants, rows)


class _Order:
    """The batches of a chunk, and the markers of its transactions between them, in log order."""

    def __init__(self, plan: Plan, sizes: INT64, random: np.random.Generator) -> None:
        count = len(sizes)
        of_batch = random.random(count) < plan.transactions if plan.transactions else np.zeros(count, np.bool_)
        inside = np.flatnonzero(of_batch)
        self.transactions = len(inside)
        outcome = random.random(len(inside))
        is_open = outcome < plan.left_open
        is_aborted = ~is_open & (outcome < plan.left_open + plan.aborted)
        ended = np.flatnonzero(~is_open)
        # The marker comes after some of the following batches of this chunk.
        behind = np.minimum(inside[ended] + random.integers(0, _LONGEST_TRANSACTION, len(ended)), count - 1)
        order = np.argsort(np.concatenate([np.arange(count), behind + 0.5]), kind="stable")
        self.batch = np.concatenate([np.arange(count), inside[ended]])[order]
        """The index of the batch or, for a marker, of the batch whose transaction it ends."""
        self.is_marker = order >= count
        self.takes_part = of_batch[self.batch]
        self.transaction = (np.cumsum(of_batch) - 1)[self.batch]
        """The number of its transaction; meaningless outside a transaction."""
        self.is_open = self._flags(of_batch, is_open)
        self.is_committed = self._flags(of_batch, ~is_open & ~is_aborted)

    def _flags(self, of_batch: FLAGS, of_transaction: FLAGS) -> FLAGS:
        flags = np.zeros(len(of_batch), np.bool_)
        flags[of_batch] = of_transaction
        chosen: FLAGS = flags[self.batch]
        return chosen


# ---------------------------------------------------------------------------------------------------------------- files


class _Files:
    """Writes segment files, and begins a new one whenever the next batch would not fit."""

    def __init__(self, folder: Path, most: int, *, keeps_places: bool) -> None:
        self._folder = folder
        self._most = most
        self._keeps_places = keeps_places
        self._file: IO[bytes]
        self._size = 0
        self.written = Written()

    def __enter__(self) -> Self:
        self._open(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, data: bytes, ends: INT64, batches: Batches) -> None:
        is_control = (batches.attributes & CONTROL_BIT) != 0
        self.written.markers += int(is_control.sum())
        self.written.records += int(batches.counts[~is_control].sum())
        self.written.batches += len(ends)
        self.written.bytes += len(data)
        begun = done = 0
        while done < len(ends):
            upto = int(np.searchsorted(ends, begun + self._most - self._size, "right"))
            if upto <= done:
                if self._size:
                    self._file.close()
                    self._open(int(batches.base_offset[done]))
                    continue
                upto = done + 1  # the batch is larger than a segment, so it gets one for itself
            end = int(ends[upto - 1])
            if self._keeps_places:
                self._note(range(done, upto), ends, begun, batches, is_control)
            self._file.write(data[begun:end])
            self._size += end - begun
            begun, done = end, upto

    def _open(self, base_offset: int) -> None:
        path = self._folder / f"{base_offset:020}.log"
        self._file = path.open("xb")
        self._size = 0
        self.written.files.append(path)

    def _note(self, numbers: range, ends: INT64, begun: int, batches: Batches, is_control: FLAGS) -> None:
        for number in numbers:
            start = int(ends[number - 1]) if number else 0
            self.written.places.append(
                Place(
                    str(self.written.files[-1]),
                    self._size + start - begun,
                    int(ends[number]) - start,
                    int(batches.base_offset[number]),
                    int(batches.counts[number]),
                    bool(is_control[number]),
                )
            )
