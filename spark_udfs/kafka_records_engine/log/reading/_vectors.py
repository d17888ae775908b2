"""Parses the records of many magic 2 batches at once: every step is one numpy expression over all of them.

A batch that contains anything unusual, including record headers, is rejected as a whole; `batches` then reads it record
by record and reports what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kafka_records_engine.log.format.varints import read_varlongs
from kafka_records_engine.log.reading._scanning import PAD
from kafka_records_engine.numpy_types import FLAGS, INT64

SMALLEST_RECORD: Final = 7
"""The size in bytes of a record with null key and value. A batch cannot contain more records than fit at this size."""

_FEW: Final = 64
"""For fewer batches than this, a Python loop from record to record is faster than vector steps."""

_INT32: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Parsed:
    """Vectors with an element per record. `refused` has the indexes of the batches that must be read record by
    record."""

    refused: INT64
    batch: INT64
    timestamp_delta: INT64
    offset_delta: INT64
    key_at: INT64
    key_size: INT64
    value_at: INT64
    value_size: INT64


def parse(arena: bytes, starts: INT64, ends: INT64, counts: INT64) -> Parsed:
    """Parse the records of several batches. `starts` and `ends` are the range of each batch's record bytes in `arena`;
    `counts` are the numbers of records."""
    data = np.frombuffer(arena, np.uint8)
    refused = np.zeros(len(starts), np.bool_)
    at = _record_starts(arena, data, starts, ends, counts, refused)
    batch = np.repeat(np.arange(len(starts)), counts)
    kept = ~refused[batch] if refused.any() else None
    if kept is not None:
        at, batch = at[kept], batch[kept]
    return _fields(data, at, batch, refused)


def parse_some(arena: bytes, starts: list[int]) -> Parsed:
    """Parse some records of one batch, which start at `starts` and fill `arena` up to its padding."""
    at = np.array(starts, np.int64)
    return _fields(np.frombuffer(arena, np.uint8), at, np.zeros(len(at), np.int64), np.zeros(1, np.bool_))


def cut(data: bytes, at: int, end: int, most: int, most_bytes: int) -> tuple[list[int], int] | None:
    """The starts of the next records, and the end of the last one: between 1 and `most` records with at most about
    `most_bytes` bytes. None if they do not fit before `end`."""
    places: list[int] = []
    stop = at + most_bytes
    while len(places) < most and at < stop:
        try:
            filled = _hop(data, at, end, min(most - len(places), _FEW))
        except IndexError:
            return None
        if filled is None:
            return None
        places += filled[0]
        at = filled[1]
    return places, at


def _fields(data: NDArray[np.uint8], at: INT64, batch: INT64, refused: FLAGS) -> Parsed:
    cap = len(data) - PAD + 1
    """Positions are limited to this value; those of valid records are lower."""
    bad = np.zeros(len(at), np.bool_)

    def number(position: INT64, longest: int = 5) -> tuple[INT64, INT64]:
        values, behind, endless = read_varlongs(data, np.minimum(position, cap))
        if endless is not None:
            np.logical_or(bad, endless, out=bad)
        if longest == 5 and (behind - position > 1).any():
            np.logical_or(bad, (behind - position > 5) | (values >= _INT32) | (values < -_INT32), out=bad)
            values = np.clip(values, -_INT32, _INT32)
        return values, behind

    size, position = number(at)
    stop = position + size
    timestamp_delta, position = number(position + 1, 10)
    offset_delta, position = number(position)
    key_size, key_at = number(position)
    value_size, value_at = number(key_at + np.maximum(key_size, 0))
    headers, position = number(value_at + np.maximum(value_size, 0))
    np.logical_or(bad, (headers != 0) | (position != stop) | (offset_delta < 0), out=bad)
    vectors = [batch, timestamp_delta, offset_delta, key_at, key_size, value_at, value_size]
    if bad.any():
        refused[batch[bad]] = True
        kept = ~refused[batch]
        vectors = [vector[kept] for vector in vectors]
    return Parsed(np.flatnonzero(refused), *vectors)


def _record_starts(
    arena: bytes, data: NDArray[np.uint8], starts: INT64, ends: INT64, counts: INT64, refused: FLAGS
) -> INT64:
    """The start of every record. Batches that their records do not fill exactly are marked in `refused`."""
    first = np.concatenate(([0], np.cumsum(counts)))
    found = np.zeros(int(first[-1]), np.int64)
    position = starts.copy()
    active = np.flatnonzero(counts > 0)
    level = 0
    while active.size >= _FEW:
        here = position[active]
        found[first[active] + level] = here
        sizes, behind, endless = read_varlongs(data, here)
        behind += sizes
        wrong = (sizes < 0) | (sizes > _INT32) | (behind > ends[active])
        if endless is not None:
            wrong |= endless
        if wrong.any():
            refused[active[wrong]] = True
            active, behind = active[~wrong], behind[~wrong]
        position[active] = behind
        level += 1
        # Stop at the end of the batch; otherwise a record would be read from the bytes of the next batch.
        more = counts[active] > level
        short = more & (behind >= ends[active])
        if short.any():
            refused[active[short]] = True
        active = active[more & ~short]
    for batch in active.tolist():
        filled = _hop(arena, int(position[batch]), int(ends[batch]), int(counts[batch]) - level)
        if filled is None:
            refused[batch] = True
        else:
            places, position[batch] = filled
            found[int(first[batch]) + level : int(first[batch + 1])] = places
    refused |= position != ends
    return found


def _hop(arena: bytes, at: int, end: int, count: int) -> tuple[list[int], int] | None:
    """The starts of `count` records from `at` on, and the end of the last one; None if they do not fit."""
    places: list[int] = []
    append = places.append
    for _ in range(count):
        if at >= end:
            return None
        append(at)
        size = arena[at]
        at += 1
        if size & 0x80:
            size &= 0x7F
            shift = 7
            while True:
                byte = arena[at]
                at += 1
                size |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
                if shift > 28 or at > end:
                    return None
        if size & 1:  # an odd zigzag number is a negative size
            return None
        at += size >> 1
        if at > end:
            return None
    return places, at
