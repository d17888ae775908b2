"""The rows of `progress`, from two answers of coordinators about committed offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.moving.log_times import NONE, numbers
from kafka_records_tables.tables.moving.rates import caught_up_in_ms, rate
from kafka_records_tables.tables.moving.states import Logs, first_word, left_by_groups, report_hidden_topics
from kafka_records_tables.tables.words.progress_words import (
    BEYOND_END,
    BY_END,
    END_UNKNOWN,
    IDLE,
    LEFT,
    NO_LOG,
    OK,
    OPEN_TRANSACTION,
    REWOUND,
    STALLED_OR_STOPPED,
    TIME_UNKNOWN,
)

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.declaration import Table

_UNDECIDED: Final = (NO_LOG, END_UNKNOWN, BEYOND_END, TIME_UNKNOWN)
_POLLED: Final = ("offset", "offset_before", "end_before", "polled_timestamp_ms", "polled_before_ms")
_PLAIN: Final = ("group_id", "topic", "partition", "offset")


def rows(table: Table, parts: Mapping[str, Any], context: Context) -> Iterator[pa.RecordBatch]:
    """The rows of `progress`, as described in its rules."""
    commits = parts["commit_progress"]
    logs = Logs(commits, parts["log_ends"], context)
    report_hidden_topics(commits, logs, context)
    offset, before, end_before, moment, started = (numbers(commits[name]) for name in _POLLED)
    end, window = logs.end, moment - started
    has_end = end != NONE
    readable = np.where(logs.stable != NONE, np.minimum(logs.stable, end), end)
    # A new offset was committed between the polls.
    has_moved = offset != before
    is_rewound = (before != NONE) & (offset < before)
    is_beyond = (has_end & (offset > end)) | (offset < 0)
    is_unread = has_end & (readable > offset)
    was_unread = is_unread & (end_before != NONE) & (end_before > offset)
    # A single remaining offset may be a transaction marker.
    is_alone = is_unread & (readable - offset == 1)
    is_left = left_by_groups(commits, parts["assigned_partitions"])
    reason = first_word(
        {
            NO_LOG: (logs.row < 0) & ~is_rewound,
            END_UNKNOWN: ~has_end & ~is_rewound,
            BEYOND_END: is_beyond,
            LEFT: is_left & ~is_rewound,
            TIME_UNKNOWN: is_alone & ~has_moved,
            OPEN_TRANSACTION: ~is_unread & (end > offset) & ~has_moved,
        },
        commits.num_rows,
    )
    is_undecided = np.isin(np.array(reason.to_pylist(), object), _UNDECIDED)
    is_waiting, is_idle = is_unread & ~has_moved & ~is_left, ~is_unread & ~has_moved
    states = {
        REWOUND: is_rewound,
        STALLED_OR_STOPPED: is_waiting & was_unread,
        IDLE: is_idle | is_left,
        # Records written since the first poll have waited for less than the interval.
        OK: has_moved | is_waiting,
    }
    state = first_word({word: applies & ~is_undecided for word, applies in states.items()}, commits.num_rows)
    commit_rate = rate(offset - before, window, (before == NONE) | is_rewound)
    produce_rate = rate(end - end_before, window, ~has_end | (end_before == NONE))
    columns: dict[str, Any] = dict.fromkeys(table.names)
    columns |= {name: commits[name].combine_chunks() for name in _PLAIN}
    columns |= {
        "state": state,
        "reason": reason,
        "end_offset": pa.array(end, mask=~has_end),
        "commit_rate": commit_rate,
        "produce_rate": produce_rate,
        "caught_up_in_ms": caught_up_in_ms(np.where(has_end, end - offset, 0), commit_rate, produce_rate),
        "window_ms": pa.array(window),
        "fell_from": pa.array(before, mask=~is_rewound),
        "known_by": first_word({BY_END: has_end}, commits.num_rows),
        "moment_timestamp": instants(pa.array(moment)),
        "moment_timestamp_ms": pa.array(moment),
    }
    yield record_batch(table.schema, columns, commits.num_rows)
