"""Reads the sizes of the last batches of a log from their headers."""

from __future__ import annotations

from typing import Final

import numpy as np

from kafka_records_engine.log.files.opened import OpenLog
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.reading.head_walk import walk
from kafka_records_engine.log.reading.log_end import end_of
from kafka_records_engine.log.reading.tails import batch_times, first_in_bytes
from kafka_records_engine.numpy_types import INT64

MOST_BYTES: Final = 16 * 1024 * 1024
"""The number of bytes at the end of a log in which batches are read."""


def batch_sizes(opened: OpenLog, folder: Place) -> dict[str, INT64]:
    """Offset, time, number of records and bytes of each of the last batches, without markers. If a cleaner removed
    records, a batch has fewer bytes than its producer sent. Raises OSError."""
    end = end_of(opened.segments[-1], folder) if opened.segments else None
    first = max(first_in_bytes(opened, folder, MOST_BYTES), opened.log_start)
    heads = walk(opened, folder, first, first if end is None else end.offset)
    chosen = np.flatnonzero(~heads.is_control)
    return {
        "offset": heads.base[chosen],
        "timestamp_ms": batch_times(heads)[chosen],
        "records": heads.count[chosen],
        "bytes": heads.size[chosen],
    }
