"""Finds the unread records after committed offsets for the table `progress`, with the same results as in `lag`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kafka_records_engine.log.reading.unread import UNKNOWN
from kafka_records_engine.numpy_types import INT64
from kafka_records_tables.tables.lagging.unread_columns import asked_of_logs
from kafka_records_tables.tables.moving.log_times import NONE, numbers

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


@dataclass(frozen=True, slots=True, eq=False)
class LeftInLogs:
    """The unread records after each commit; NONE if unknown. The last three fields are samples of logs (`LogTail`),
    each with the place of a commit for its log."""

    unread: INT64
    held_back: INT64
    first_ms: INT64
    exact_from: INT64
    """From this offset, the samples of the log include every batch."""
    log_of_sample: INT64
    offset_of_sample: INT64
    time_of_sample: INT64


def left_in_logs(commits: pa.Table, end: INT64, start: INT64, context: Context) -> LeftInLogs:
    """The unread records after commits, according to topic files; empty if the source has no files."""
    offset = numbers(commits["offset"])
    unread, held, first, exact = (np.full(commits.num_rows, NONE, np.int64) for _ in range(4))
    samples: list[tuple[INT64, INT64, INT64]] = []
    # Even if the offset is beyond the end, the log is needed for the group's earlier commits.
    offsets = np.minimum(np.maximum(offset, start), end)
    which = np.flatnonzero(end != NONE)
    for asked, rows, places in asked_of_logs(commits, offsets, end, which, context, with_tail=True):
        for column, values in ((unread, asked.unread), (held, asked.held_back), (first, asked.timestamp_ms)):
            column[rows] = np.where(values[places] == UNKNOWN, NONE, values[places])
        if asked.tail is not None:
            exact[rows] = asked.tail.exact_from
            count = len(asked.tail.offsets)
            samples.append((np.full(count, rows[0], np.int64), asked.tail.offsets, asked.tail.times_ms))
    none = np.zeros(0, np.int64)
    log, offsets_of, times = (
        (np.concatenate([none, *each]) for each in zip(*samples, strict=True)) if samples else (none,) * 3
    )
    return LeftInLogs(unread, held, first, exact, log, offsets_of, times)
