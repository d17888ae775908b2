"""Determines which records a group has to read while something prevents it from reading."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import kept
from kafka_records_tables.report.facts.known_logs import known_ends
from kafka_records_tables.report.rule_context import RuleContext, counted, listed, moment, places_shown


class Work(NamedTuple):
    """The records that a group has to read while it rebalances."""

    topics: tuple[str, ...]
    words: str
    """A sentence about these records; empty if nothing is known."""
    waiting: int
    """The number of records to read, as far as known."""


def work_of(context: RuleContext, group: str, since_ms: int) -> Work:
    """The topics that a group reads, how many partitions have had no commit since a given time, and how many records
    are waiting."""
    rows = context.rows_of_group("current_offsets", group)
    topics = tuple(sorted(rows["topic"].unique().to_pylist()))
    if not topics:
        return _work_without_commits(context, group)
    still = kept(rows, pc.less(rows["commit_timestamp_ms"], since_ms)).num_rows
    lags = context.rows_of_group("group_lag", group)
    lag, least = pc.sum(lags["lag"]).as_py(), "at least " if pc.sum(lags["unknown"]).as_py() else ""
    behind = "" if lag is None else f", and it has {least}{counted(lag, 'record')} to consume"
    share = f"{still} of {counted(rows.num_rows, 'partition')} have no" if still else "all partitions have a"
    words = f" It consumes {listed(topics)}: {share} commit since {moment(since_ms)}{behind}."
    return Work(topics, words, lag or 0)


def _work_without_commits(context: RuleContext, group: str) -> Work:
    """Like `work_of`, for a group without offsets, whose members reread their assigned partitions again and again."""
    assigned = context.rows_of_group("assignments", group)
    places = sorted(set(zip(assigned["topic"].to_pylist(), assigned["partition"].to_pylist(), strict=True)))
    ends = known_ends(context)
    starts = context.table("log_ends").select(["topic", "partition", "log_start_offset"]).to_pylist()
    start = {(each["topic"], each["partition"]): each["log_start_offset"] or 0 for each in starts}
    known = [each for each in places if each in ends]
    if not known:
        return Work((), "", 0)
    waiting = sum(ends[each] - start[each] for each in known)
    have = "log has" if len(known) == 1 else "logs have"
    words = f" It has no offsets for {places_shown(known)}, whose {have} {counted(waiting, 'record')}."
    return Work(tuple(sorted({topic for topic, _ in known})), words, waiting)
