"""Counts the records of a log after given offsets, from batch headers, and finds when the first of them was written.

Transaction markers and records of aborted transactions do not count. Records from the first open transaction on are
held back, because a consumer with `read_committed` has to wait for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kafka_records_engine.log.files.opened import OpenLog
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.reading.head_walk import ABORT, NO_MARKER, WalkedHeads, walk
from kafka_records_engine.log.reading.tails import LogTail, batch_times, exact_tail, first_in_bytes, tail_of
from kafka_records_engine.numpy_types import FLAGS, INT64

MOST_BYTES: Final = 64 * 1024 * 1024
"""The number of bytes at the end of a log in which all batch headers are read. For earlier offsets, only the first
batch is read."""

LOOK_BACK: Final = 1024 * 1024
"""The number of bytes at the end of a log to search for open transactions that begin before the requested offset."""

UNKNOWN: Final = -1

RECORD: Final = 0
"""The `precision` of a time that belongs to the record itself."""
BATCH: Final = 1
"""The `precision` of a time that belongs to the batch: the time of its first record or, if the header does not contain
it, the latest time."""


@dataclass(frozen=True, slots=True, eq=False)
class UnreadAsked:
    """A request to count the records of a log after each of the given offsets, which are ascending and distinct. `end`
    is the end of the log."""

    topic: str
    partition: int
    offsets: INT64
    end: int
    with_tail: bool = False
    """Whether the answer includes the batches at the end of the log."""


@dataclass(slots=True)
class Unread:
    """The answer to UnreadAsked: one element for each offset, in the same order; UNKNOWN for an unknown value."""

    unread: INT64
    """The number of records left to read before the first open transaction."""
    held_back: INT64
    """The number of records from the first open transaction on."""
    timestamp_ms: INT64
    """The time of the first record to read, in milliseconds since 1970; UNKNOWN also if there is no such record."""
    precision: INT64
    """RECORD or BATCH; UNKNOWN if there is no time."""
    trouble: str | None = None
    place: tuple[str, int] | None = None
    tail: LogTail | None = None
    """The tail of the log, if it was requested and nothing is broken."""


def unread_from(
    opened: OpenLog,
    folder: Place | None,
    offsets: INT64,
    end: int,
    most: int | None = MOST_BYTES,
    *,
    with_tail: bool = False,
) -> Unread:
    """Count the records from each of `offsets` (ascending) up to `end`."""
    first = first_in_bytes(opened, folder, most) if most is not None else 0
    split = int(np.searchsorted(offsets, first))
    near = _counted(opened, folder, offsets[split:], end, with_tail=with_tail)
    if not split:
        return near
    far = [_looked_up(opened, folder, int(offset), end, near) for offset in offsets[:split]]
    unknown = np.full(split, UNKNOWN, np.int64)
    return Unread(
        np.r_[unknown, near.unread],
        np.r_[unknown, near.held_back],
        np.r_[np.array([each[0] for each in far], np.int64), near.timestamp_ms],
        np.r_[np.array([each[1] for each in far], np.int64), near.precision],
        near.trouble,
        near.place,
        near.tail,
    )


def _counted(opened: OpenLog, folder: Place | None, offsets: INT64, end: int, *, with_tail: bool) -> Unread:
    none = np.zeros(0, np.int64)
    if not len(offsets) and not with_tail:
        return Unread(none, none, none, none)
    # Skip the search if nothing is left to read.
    tail = first_in_bytes(opened, folder, LOOK_BACK) if len(offsets) and offsets[0] < end else end
    known_from = np.minimum(offsets, tail)
    begin = int(known_from[0]) if len(offsets) else end
    exact_from = exact_tail(opened, folder) if with_tail else end
    heads = walk(opened, folder, min(begin, exact_from), end)
    found = unread_in(heads, offsets, known_from)
    if heads.trouble is not None:
        found.unread, found.held_back = np.full_like(found.unread, UNKNOWN), np.full_like(found.held_back, UNKNOWN)
        if heads.is_transactional.any():  # a marker may be in the unreadable part
            found.timestamp_ms, found.precision = (np.full_like(found.precision, UNKNOWN) for _ in range(2))
    if with_tail and heads.trouble is None:
        found.tail = tail_of(opened, folder, heads, records_to_read(heads), exact_from)
    return found


def unread_in(heads: WalkedHeads, offsets: INT64, known_from: INT64) -> Unread:
    """Count the records left to read after each of `offsets` (ascending), according to `heads`. For each offset, open
    transactions that begin at or after `known_from` hold records back."""
    is_open, is_aborted = _transactions(heads)
    is_data = ~heads.is_control & ~is_aborted
    at = np.searchsorted(heads.last, offsets)
    opens = np.append(np.flatnonzero(is_open), len(heads))
    left = _sums(heads, is_data, offsets, at)
    held_at: INT64 | None = None
    held = np.zeros_like(left)
    if len(opens) > 1:
        # Each offset gets the same result as it would on its own.
        held_at = opens[np.searchsorted(opens[:-1], np.searchsorted(heads.last, known_from))]
        held = np.where(held_at <= at, left, _sums(heads, is_data, offsets, np.maximum(held_at, at)))
    stamps, precision = _times(heads, is_data, offsets, at, held_at)
    return Unread(left - held, held, stamps, precision, heads.trouble, heads.place)


def records_to_read(heads: WalkedHeads) -> FLAGS:
    """Flags for batches with records that a consumer receives: not aborted, before the first open transaction, and not
    empty."""
    is_open, is_aborted = _transactions(heads)
    opens = np.append(np.flatnonzero(is_open), len(heads))
    is_before = np.arange(len(heads)) < opens[0]
    found: FLAGS = is_before & ~heads.is_control & ~is_aborted & (heads.count != 0)
    return found


def _looked_up(opened: OpenLog, folder: Place | None, offset: int, end: int, found: Unread) -> tuple[int, int]:
    """The time of the first batch of records at or after an offset, and its precision. Errors are noted in `found`."""
    at = offset
    while at < end:
        heads = walk(opened, folder, at, end, most=1)
        if heads.trouble is not None and found.trouble is None:
            found.trouble, found.place, found.tail = heads.trouble, heads.place, None
        if not len(heads):
            break
        stamps, precision = _times(heads, ~heads.is_control, np.array([offset]), np.zeros(1, np.int64))
        if stamps[0] != UNKNOWN:
            return int(stamps[0]), int(precision[0])
        at = int(heads.last[-1]) + 1
    return UNKNOWN, UNKNOWN


def _transactions(heads: WalkedHeads) -> tuple[FLAGS, FLAGS]:
    """Flags for the batches in open transactions, and for those in aborted ones. The producer's next marker decides
    (`ProducerStateManager`)."""
    is_open, is_aborted = np.zeros(len(heads), np.bool_), np.zeros(len(heads), np.bool_)
    ended: dict[int, int] = {}
    which = np.flatnonzero(heads.is_transactional)[::-1]
    markers, producers = heads.marker[which].tolist(), heads.producer[which].tolist()
    for number, marker, producer in zip(which.tolist(), markers, producers, strict=True):
        if heads.is_control[number]:
            ended[producer] = marker
        else:
            outcome = ended.get(producer)
            is_open[number] = outcome is None or outcome == NO_MARKER
            is_aborted[number] = outcome == ABORT
    return is_open, is_aborted


def _sums(heads: WalkedHeads, counts: FLAGS, offsets: INT64, at: INT64) -> INT64:
    """How many records are left from each offset, in batches for which `counts` is True; `at` is the batch of each
    offset."""
    if not len(heads):
        return np.zeros(len(offsets), np.int64)
    each = np.where(counts, heads.count, 0)
    left = np.zeros(len(heads) + 1, np.int64)
    left[:-1] = np.cumsum(each[::-1])[::-1]
    inside = np.minimum(at, len(heads) - 1)
    # A cleaned batch may contain fewer records than offsets, and its header does not say which offsets are missing.
    is_inside = (at < len(heads)) & (heads.base[inside] < offsets)
    passed = np.maximum(each[inside] - (heads.last[inside] - offsets + 1), 0)
    return left[at] - np.where(is_inside, passed, 0)


def _times(
    heads: WalkedHeads, counts: FLAGS, offsets: INT64, at: INT64, until: INT64 | None = None
) -> tuple[INT64, INT64]:
    """The time of the first counted record at or after each offset, and its precision. Only batches before `until`
    count, if given."""
    unknown = np.full(len(offsets), UNKNOWN, np.int64)
    numbers = np.flatnonzero(counts)
    following = np.searchsorted(numbers, at)
    has = following < len(numbers)
    if not has.any():
        return unknown, unknown.copy()
    batch = numbers[np.minimum(following, len(numbers) - 1)]
    if until is not None:
        has &= batch < until
    is_first = (offsets <= heads.base[batch]) | (heads.count[batch] == 1)
    first = heads.first_timestamp[batch]
    stamps = batch_times(heads)[batch]
    is_exact = heads.is_append_time[batch] | (is_first & (first >= 0))
    stamps = np.where(has & (stamps >= 0), stamps, UNKNOWN)
    return stamps, np.where(stamps == UNKNOWN, UNKNOWN, np.where(is_exact, RECORD, BATCH))
