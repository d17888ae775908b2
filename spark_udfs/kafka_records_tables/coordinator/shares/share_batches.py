"""Combines the batches of a share partition's state as a share coordinator does (`PersisterStateBatchCombiner`,
KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final, NamedTuple

UNDECIDED: Final = -1
"""The start offset of a share partition whose start is not decided yet."""


class StateBatch(NamedTuple):
    """Consecutive offsets with one delivery state. Batches are sorted by these fields, in this order."""

    first_offset: int
    last_offset: int
    """The last offset (inclusive), which is never below `first_offset`."""
    delivery_count: int
    delivery_state: int
    """If two batches overlap, the higher pair of delivery count and delivery state counts."""


def combined(so_far: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """The batches after new batches were added. No two of them overlap, and none begins below `start_offset`.

    Neighbours with the same state become one batch if the coordinator joins them: it goes through the batches from the
    lowest one up, and does not return to one that it has passed. So the boundaries of batches depend on the order in
    which batches were added; the state of an offset does not.
    """
    left = sorted({*so_far, *new})
    if start_offset != UNDECIDED and left and left[0].first_offset < start_offset:
        left = sorted(set(_from(start_offset, left)))
    if len(left) < 2:
        return left
    place, last = 0, len(left) - 1
    while place < last and not _is_met(left[place], left[place + 1]):
        place += 1
    if place == last:
        return left
    # A sorted list is a heap.
    passed, left = left[:place], left[place:]
    batch = heappop(left)
    while left:
        if _is_met(batch, left[0]):
            for piece in _without_overlap(batch, heappop(left)):
                heappush(left, piece)
        else:
            passed.append(batch)
        batch = heappop(left)
    passed.append(batch)
    return passed


def _from(start_offset: int, batches: list[StateBatch]) -> list[StateBatch]:
    """The batches without the offsets below the start offset."""
    return [
        batch if batch[0] >= start_offset else StateBatch(start_offset, *batch[1:])
        for batch in batches
        if batch[1] >= start_offset
    ]


def _is_met(batch: StateBatch, following: StateBatch) -> bool:
    """Whether the following batch overlaps the batch, or continues it with the same state."""
    first, end = following[0], batch[1] + 1
    return first < end or (first == end and following[2:] == batch[2:])


def _without_overlap(batch: StateBatch, following: StateBatch) -> list[StateBatch]:
    """Two overlapping batches as one to three that do not overlap. `following` sorts after `batch`."""
    first, end, said = batch.first_offset, batch.last_offset, batch[2:]
    begin, last, other = following.first_offset, following.last_offset, following[2:]
    if said == other:
        return [StateBatch(first, max(end, last), *said)]
    if other < said:
        return [batch] if last <= end else [batch, StateBatch(end + 1, last, *other)]
    pieces = [following]
    if first < begin:
        pieces.append(StateBatch(first, begin - 1, *said))
    if last < end:
        pieces.append(StateBatch(last + 1, end, *said))
    return pieces
