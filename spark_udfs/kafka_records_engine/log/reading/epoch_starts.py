"""Finds when the leaders of a log changed: the offset at which each leader epoch begins, and the records around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_records_engine.log.files.opened import OpenLog
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.format.checkpoints import read_epochs
from kafka_records_engine.log.reading.head_walk import walk
from kafka_records_engine.log.reading.log_end import end_of

_MOST: Final = 8
"""The number of epochs whose batches are read: the last ones, in addition to the first."""


@dataclass(frozen=True, slots=True)
class EpochStart:
    """The beginning of a leader epoch in a log."""

    epoch: int
    offset: int
    """The offset of the first record that the leader appended or would append."""
    before_ms: int | None
    """The latest time in the batch before this offset; None if there is no earlier batch."""
    at_ms: int | None
    """The time of the first record in the batch at that offset; None if there is none, or if a cleaner removed it."""


def epoch_starts(opened: OpenLog, folder: Place) -> list[EpochStart]:
    """The leader epochs of a log in order; only the first one and the last ones if there are many. Raises OSError."""
    epochs = read_epochs(folder)
    last = opened.segments[-1] if opened.segments else None
    found = None if last is None else end_of(last, folder)
    if found is None:
        return []
    chosen = [*epochs[:1], *epochs[1:][-_MOST:]]
    return [EpochStart(epoch, offset, *_around(opened, folder, offset, found.offset)) for epoch, offset in chosen]


def _around(opened: OpenLog, folder: Place, offset: int, end: int) -> tuple[int | None, int | None]:
    """The times of the batch that ends before an offset and of the batch that begins there."""
    before = walk(opened, folder, offset - 1, offset, most=1) if offset else None
    at = walk(opened, folder, offset, end, most=1) if offset < end else None
    before_ms = int(before.max_timestamp[-1]) if before is not None and len(before) else -1
    is_there = at is not None and len(at) and int(at.base[0]) == offset
    at_ms = int(at.first_timestamp[0]) if at is not None and is_there else -1
    return None if before_ms < 0 else before_ms, None if at_ms < 0 else at_ms
