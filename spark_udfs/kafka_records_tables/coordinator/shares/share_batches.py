"""Combines the batches of a share partition's state as a share coordinator does (`PersisterStateBatchCombiner`,
KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final, NamedTuple

import numpy as np

from kafka_records_engine.numpy_types import FLAGS, INT64

UNDECIDED: Final = -1
"""The start offset of a share partition before its start is decided."""


class StateBatch(NamedTuple):
    """A range of offsets with one delivery state. Batches are sorted by these fields, in this order."""

    first_offset: int
    last_offset: int
    """The last offset (inclusive), at least `first_offset`."""
    delivery_count: int
    delivery_state: int
    """If two batches overlap, the higher pair of delivery count and delivery state counts."""


def combined(so_far: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """The batches after adding the new ones. None overlap, and none begins below `start_offset`.

    Neighbours with the same state become one batch only if the coordinator joins them: it goes through the batches in
    ascending order and never returns to an earlier one. So the boundaries of batches depend on the order in which they
    were added; the state of an offset does not.
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
    """The batches without offsets below the start offset."""
    return [
        batch if batch[0] >= start_offset else StateBatch(start_offset, *batch[1:])
        for batch in batches
        if batch[1] >= start_offset
    ]


def _is_met(batch: StateBatch, following: StateBatch) -> bool:
    """Whether the next batch overlaps this one, or continues it with the same state."""
    first, end = following[0], batch[1] + 1
    return first < end or (first == end and following[2:] == batch[2:])


def _without_overlap(batch: StateBatch, following: StateBatch) -> list[StateBatch]:
    """Two overlapping batches as one to three batches that do not overlap. `following` sorts after `batch`."""
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


# ------------------------------------------------------------------------------------ for many share partitions at once

_MOST_PIECES: Final = 16
"""The average number of pieces per batch up to which batches are combined at once. Above it, the batches of a share
partition are added record by record."""
_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def combined_at_once(places: INT64, batches: INT64, starts: INT64) -> tuple[INT64, INT64, FLAGS]:
    """Does what `combined` does, for many share partitions at once.

    `batches` has a row per field of `StateBatch`, and a column per batch. `places` has the share partition of each
    batch, as an index of `starts`, the start offsets, which must never have decreased. Returns the places and the
    combined batches, and a flag for each share partition that must be handled one record at a time, because its
    boundaries may depend on the order of its batches or because it has too many pieces. Flagged share partitions have
    no batches in the result.

    The boundaries of batches divide all offsets into pieces. Each piece has the highest state of the batches that cover
    it. The order can matter only between two pieces with the same highest state, if one of them also had a lower state.
    """
    first, last, count, state = batches
    states = count * 256 + state  # sorts like the pair, because a state is an int8
    lowest, span = int(first.min()), int(last.max()) - int(first.min()) + 2
    if last.max() == _HIGHEST or span * len(starts) > _HIGHEST:
        return places[:0], batches[:, :0], np.ones(len(starts), np.bool_)
    edges = np.concatenate([first - lowest, last - lowest + 1]) + np.tile(places * span, 2)
    edges, at = np.unique(edges, return_inverse=True)
    begin, end = at[: len(first)], at[len(first) :]
    widths = end - begin
    is_open = np.bincount(places, widths - _MOST_PIECES, len(starts)) > 0
    widths[is_open[places]] = 0
    pieces = np.repeat(begin - np.cumsum(widths) + widths, widths) + np.arange(widths.sum())
    highest, least = np.full(len(edges), _LOWEST), np.full(len(edges), _HIGHEST)
    np.maximum.at(highest, pieces, np.repeat(states, widths))
    np.minimum.at(least, pieces, np.repeat(states, widths))
    of_place, offsets = np.divmod(edges, span)
    cuts = np.clip(np.where(starts == UNDECIDED, lowest, starts), lowest, lowest + span - 1) - lowest
    stops = np.append(offsets[1:], 0)
    is_left = (highest != _LOWEST) & (stops > cuts[of_place])
    goes_on = np.zeros(len(edges) + 1, np.bool_)
    goes_on[1:-1] = is_left[1:] & is_left[:-1] & (highest[1:] == highest[:-1])
    is_mixed = highest != least
    is_open[of_place[goes_on[:-1] & (is_mixed | np.roll(is_mixed, 1))]] = True
    is_left &= ~is_open[of_place]
    begin, end = np.flatnonzero(is_left & ~goes_on[:-1]), np.flatnonzero(is_left & ~goes_on[1:])
    found, at = highest[begin], of_place[begin]
    count = (found + 128) >> 8
    first = np.maximum(offsets[begin], cuts[at]) + lowest
    return at, np.stack([first, stops[end] - 1 + lowest, count, found - count * 256]), is_open
