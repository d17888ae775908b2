"""The order in which commits and tombstones took effect, by group, topic and partition."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.records.latest import codes_of_same

_DIGIT_BITS: Final = 16
_DIGIT: Final = (1 << _DIGIT_BITS) - 1

_MOST: Final = 2**62


def in_effect_by_number(
    codes: INT64, place: INT64, log_offset: INT64, *, only_last: bool = True
) -> tuple[INT64, INT64]:
    """The indexes of the rows that took effect, sorted by group, topic and partition, and within a partition in the
    order in which they took effect; and the number of the partition for each of them.

    `codes` has a non-negative number per row for its group, topic and partition. `place` is where a row took effect:
    its own `log_offset`, or the offset of a marker. If several commits took effect at one marker, only the last one
    counts; without `only_last`, all of them count. A commit never counts if a later commit took effect before it. A
    tombstone also removes the commits of open transactions (`OffsetMetadataManager.replayEndTransactionMarker`).
    """
    order = _by_number(codes, place, log_offset)
    is_moved = not np.array_equal(place, log_offset)
    codes, place = codes[order], place[order]
    counts = ends(codes) | ends(place) if only_last else np.ones(len(codes), np.bool_)
    if is_moved and len(codes):
        log_offset = log_offset[order]
        # Combine key and log position into one number, so that the running maximum never mixes keys.
        lowest = int(log_offset.min())
        width = int(log_offset.max()) - lowest + 1
        if (int(codes[-1]) + 1) * width < _MOST:
            reached = codes * width + (log_offset - lowest)
        else:
            _, ranks = np.unique(log_offset, return_inverse=True)
            reached = codes * len(ranks) + ranks
        counts &= reached >= np.maximum.accumulate(reached)
    if counts.all():
        return order, codes
    return order[counts], codes[counts]


def _by_number(codes: INT64, place: INT64, log_offset: INT64) -> INT64:
    """The indexes that sort by number, then place, then log offset."""
    is_later = place[1:] > place[:-1]
    if is_later.all() or (is_later | ((place[1:] == place[:-1]) & (log_offset[1:] >= log_offset[:-1]))).all():
        return stable_order(codes)
    order = np.lexsort((log_offset, place))
    return order[stable_order(codes[order])]


def stable_order(codes: INT64) -> INT64:
    """The indexes that sort non-negative numbers. The sort is stable."""
    # numpy sorts 16-bit numbers by radix, which is many times faster than for 64-bit numbers.
    order = np.argsort((codes & _DIGIT).astype(np.uint16), kind="stable")
    left = int(codes.max()) >> _DIGIT_BITS if len(codes) else 0
    shift = _DIGIT_BITS
    while left:
        digits = (codes >> shift & _DIGIT).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
        left >>= _DIGIT_BITS
        shift += _DIGIT_BITS
    return order


def numbers_of_keys(rows: pa.RecordBatch) -> INT64:
    """For each row, a number for its `group_id`, `topic` and `partition`. Each of the three may be null."""
    return codes_of_same([rows.column(name) for name in ("group_id", "topic", "partition")])


def begins(values: INT64) -> FLAGS:
    """Flags for elements that differ from the previous one."""
    found = np.ones(len(values), np.bool_)
    found[1:] = values[1:] != values[:-1]
    return found


def ends(values: INT64) -> FLAGS:
    """Flags for elements that differ from the next one."""
    found = np.ones(len(values), np.bool_)
    found[:-1] = values[1:] != values[:-1]
    return found


def running_maximum(codes: INT64, values: INT64) -> INT64:
    """For each element, the largest value so far among elements with the same code. The codes must be ascending."""
    if not len(values):
        return values
    lowest, highest = int(values.min()), int(values.max())
    width = highest - lowest + 1
    if (int(codes[-1]) + 1) * width < _MOST:
        # The values of a later code are shifted above all earlier values, so one pass handles all codes.
        shift = codes * width - lowest
        return np.maximum.accumulate(values + shift) - shift
    distinct, ranks = np.unique(values, return_inverse=True)
    found: INT64 = distinct[running_maximum(codes, ranks)]
    return found
