"""Computes how many offsets per second a group commits and its log receives, and when the group will catch up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.tables.moving.log_times import NONE, Samples

_SECOND = 1000


def commit_rate(rows: INT64, ms: INT64, after: INT64, offset: INT64, start: int, now: int, part: int) -> pa.Array:
    """The number of offsets per second by which each commit has advanced since `start`. `rows`, `ms` and `after`
    describe changes of offsets: the commit, the time, and the new offset. Null if the offset at `start` is unknown or
    was higher."""
    base = np.full(len(offset), NONE, np.int64)
    base_ms = np.full(len(offset), NONE, np.int64)
    before = np.flatnonzero(ms <= start)  # commits are in the order in which they took effect
    base[rows[before]], base_ms[rows[before]] = after[before], ms[before]
    # The last change in each part of the window is known. So if the last known change before the start is more than one
    # part older, nothing changed in the part before the start.
    began = np.maximum(base_ms, start - part)
    return rate(offset - np.where(base == NONE, offset, base), now - began, base == NONE)


def produce_rate(samples: Samples, log: INT64, end: INT64, exact_from: INT64, start: int, now: int) -> pa.Array:
    """The number of offsets per second that each log has received since `start`; null if its end at that time is
    unknown."""
    then, when = samples.last_before(log, np.full(len(log), start, np.int64))
    is_unknown = (then == NONE) | (end == NONE) | (exact_from == NONE)
    # From `exact_from`, every batch is known, so no records were written between the last earlier batch and the start.
    began = np.where(then > exact_from, np.maximum(when, start), when)
    return rate(np.where(is_unknown, 0, end - then), now - began, is_unknown)


def caught_up_in_ms(left: INT64, committed: pa.Array, produced: pa.Array) -> pa.Array:
    """How long each group takes to read the unread records at these rates; null if it never catches up."""
    commits, produces = (each.fill_null(np.nan).to_numpy(zero_copy_only=False) for each in (committed, produced))
    faster = commits - produces
    is_catching_up = faster > 0
    needed = np.where(is_catching_up, left * _SECOND / np.where(is_catching_up, faster, 1), 0)
    return pa.array(needed.astype(np.int64), mask=~is_catching_up | (left <= 0))


def rate(count: INT64, ms: INT64, is_unknown: INT64 | FLAGS) -> pa.Array:
    """A rate in offsets per second; null if a count is unknown or negative, or no time has passed."""
    is_null = is_unknown | (ms <= 0) | (count < 0)
    return pa.array(count * _SECOND / np.where(is_null, 1, ms), pa.float64(), mask=is_null)
