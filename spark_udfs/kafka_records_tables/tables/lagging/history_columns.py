"""Adds to lag what the history of commits shows, if it was read: rates, and times known from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.tables.column_types import instants
from kafka_records_tables.tables.lagging.matching import with_columns
from kafka_records_tables.tables.words.progress_words import BY_COMMITS

_KEY: Final = ["group_id", "topic", "partition", "log_partition"]
_RATES: Final = {"commit_rate": pa.float64(), "produce_rate": pa.float64(), "caught_up_in_ms": pa.int64()}
_BY_COMMITS_MS: Final = "by_commits_ms"


def with_progress(rows: pa.Table, progress: pa.Table | None) -> pa.Table:
    """The rows of lag with the rates of `progress` and its time of the first unread record; null without `progress`."""
    if progress is None or not progress.num_rows:
        for name, kind in {**_RATES, _BY_COMMITS_MS: pa.int64()}.items():
            rows = rows.append_column(name, pa.nulls(rows.num_rows, kind))
        return rows
    told = progress.select([*_KEY, *_RATES, "unread_timestamp_ms"]).rename_columns([*_KEY, *_RATES, _BY_COMMITS_MS])
    return with_columns(rows, told, _KEY)


def times_by_commits(rows: pa.Table, made: Mapping[str, Any]) -> dict[str, Any]:
    """Complete `unread_timestamp` and `known_by`: an unknown time becomes the time by which another group had consumed
    the first unread record (`log_times.Samples.next_at`)."""
    left, unread = rows["lag"].combine_chunks(), made["unread"]
    # If the batch headers of a log were read, they show whether records are left, so commits of other groups are not
    # needed.
    is_open = pc.and_(pc.fill_null(pc.greater(left, 0), False), pc.is_null(unread))
    by_commits = pc.if_else(is_open, rows[_BY_COMMITS_MS].combine_chunks(), pa.scalar(None, pa.int64()))
    is_used = pc.and_(pc.is_null(made["unread_timestamp_ms"]), pc.is_valid(by_commits))
    milliseconds = pc.coalesce(made["unread_timestamp_ms"], by_commits)
    return {
        "unread_timestamp": instants(milliseconds),
        "unread_timestamp_ms": milliseconds,
        "known_by": pc.if_else(is_used, BY_COMMITS, made["known_by"]),
    }
