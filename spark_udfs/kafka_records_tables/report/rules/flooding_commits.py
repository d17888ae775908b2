"""Groups whose commits flood the offsets topic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import (
    equal,
    grouped,
    kept,
    level_by,
    looked_up,
    numbers,
    ranked,
    with_columns,
)
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold
from kafka_records_tables.report.rule_context import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    RuleContext,
    counted,
    length,
    moment,
    of_group,
    shown,
)


def _busy_windows(context: RuleContext, rows: pa.Table) -> pa.Table:
    """The windows in which a group commits too often. Quieter windows do not make up for them."""
    commits = numbers(rows, "commits")
    # The mean interval between commits, weighted by the number of commits.
    timed = commits * np.asarray(rows["commit_interval_ms"].is_valid().to_numpy(), np.int64)
    rows = with_columns(rows, distance=numbers(rows, "commit_interval_ms", 0) * commits, timed=timed)
    sums = [(name, "sum") for name in ("commits", "repeated_commits", "bytes", "distance", "timed")]
    windows = grouped(rows, ["group_id", "window_start_timestamp_ms"], sums)
    interval = numbers(windows, "distance_sum") / np.maximum(numbers(windows, "timed_sum"), 1)
    commits_of_all, size = numbers(windows, "commits_sum"), numbers(windows, "bytes_sum")
    is_frequent = (
        (commits_of_all >= context.limit("commits_flooding.least_commits"))
        & (numbers(windows, "timed_sum") > 0)
        & (interval <= context.limit("commits_flooding.interval_ms"))
    )
    is_large = (size >= context.limit("commits_flooding.least_bytes")) & (
        size >= commits_of_all * context.limit("commits_flooding.commit_bytes")
    )
    windows = with_columns(windows, is_large=is_large)
    return windows.filter(pa.array(is_frequent | is_large))


def _cases(context: RuleContext) -> pa.Table:
    rows = context.table("activity")
    rows = kept(
        rows,
        pc.greater_equal(rows["window_start_timestamp_ms"], context.at_ms - context.limit("commits_flooding.lately")),
    )
    rows = with_columns(rows, bytes=numbers(rows, "key_bytes") + numbers(rows, "value_bytes"))
    of_windows = grouped(rows, ["window_start_timestamp_ms"], [("bytes", "sum")])
    windows = _busy_windows(context, rows)
    all_bytes = looked_up(windows["window_start_timestamp_ms"], of_windows, "window_start_timestamp_ms", "bytes_sum")
    windows = with_columns(windows, all_bytes=all_bytes, span=_spans_ms(context, windows))
    sums = [(f"{name}_sum", "sum") for name in ("commits", "repeated_commits", "bytes", "distance", "timed")]
    times = [("window_start_timestamp_ms", "min"), ("window_start_timestamp_ms", "max")]
    more = [("is_large", "any"), ("all_bytes", "sum"), ("span", "sum"), ("commits_sum", "count"), *times]
    cases = grouped(windows, ["group_id"], [*sums, *more])
    names = grouped(rows, ["group_id"], [("topic", "distinct")])
    topics = looked_up(cases["group_id"], names, "group_id", "topic_distinct")
    share = numbers(cases, "bytes_sum_sum") / np.maximum(numbers(cases, "all_bytes_sum"), 1)
    interval = numbers(cases, "distance_sum_sum") / np.maximum(numbers(cases, "timed_sum_sum"), 1)
    span = numbers(cases, "span_sum")
    rate = numbers(cases, "commits_sum_sum") * SECOND_MS / span
    daily = numbers(cases, "bytes_sum_sum") * DAY_MS / span
    cases = with_columns(cases, topic_list=topics, share=share, interval_ms=interval, rate=rate, daily_bytes=daily)
    is_high, is_moderate = (
        (rate >= context.limit(f"commits_flooding.{level}_rate"))
        | (daily >= context.limit(f"commits_flooding.{level}_bytes"))
        for level in ("high", "moderate")
    )
    levels = level_by((is_high, Level.HIGH), (is_moderate, Level.MODERATE), default=Level.NOTE)
    is_much = share >= context.limit("commits_flooding.share")
    cases = cases.filter(pa.array(is_much))
    return ranked(cases, levels[is_much], numbers(cases, "bytes_sum_sum"))


def _spans_ms(context: RuleContext, windows: pa.Table) -> Any:
    """How long each group could commit in each of its windows: from the start of the window or the group to the end of
    the window or the log. At least a minute, because a few busy seconds are not a rate."""
    began = numbers(windows, "window_start_timestamp_ms")
    events = context.table("timeline")
    created = grouped(kept(events, equal(events, "event", "created")), ["group_id"], [("at_timestamp_ms", "min")])
    first = looked_up(windows["group_id"], created, "group_id", "at_timestamp_ms_min")
    since = np.maximum(numbers(with_columns(windows, first=first), "first"), began)
    return np.maximum(np.minimum(began + HOUR_MS, context.at_ms) - since, MINUTE_MS)


def _tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    group = case["group_id"]
    topics = tuple(sorted(topic for topic in case["topic_list"] if topic is not None))
    since = case["window_start_timestamp_ms_min"]
    rows = Rows("activity", of_group(group, f"window_start_timestamp_ms>={since}"))
    commits = max(case["commits_sum_sum"], 1)
    size = round(case["bytes_sum_sum"] / commits)
    repeated = case["repeated_commits_sum_sum"] / commits
    again = (
        f" {repeated:.0%} of them repeat the offset that was already committed."
        if repeated >= context.limit("commits_flooding.share")
        else ""
    )
    return ReportFinding(
        kind="commits_flooding",
        level=Level(case["level"]),
        title=_OFTEN if case["level"] == Level.NOTE else RULE.title,
        problem=(
            f"The group {shown(group)} wrote {case['share']:.0%} of the bytes of the offsets topic in "
            f"{_hours(case['commits_sum_count'], since)}: {counted(case['commits_sum_sum'], 'commit')}, one every "
            f"{length(case['interval_ms'])} for each partition, {_number(case['rate'])} per second in all"
            f"{f', of {size} bytes each: nearly all of that is metadata' if case['is_large_any'] else ''}.{again}"
            f" Brokers write, replicate and clean all of them: {_gigabytes(case['daily_bytes'])} a day at this rate."
            f"{_NO_LOAD if case['level'] == Level.NOTE else ''} A commit every few seconds, with a few bytes of "
            "metadata, is enough."
        ),
        group_ids=(group,),
        topics=topics,
        since_timestamp_ms=max(since, _created_ms(context, group) or since),
        since_note=_how_exact(context, case),
        rows=(rows,),
        next=(
            context.see("List its commits by hour and topic", rows),
            context.see("List which clients commit", Rows("members", of_group(group))),
            context.describe_group(group, "Ask the brokers for the clients and hosts of its members"),
            *([NextStep(_LESS_METADATA)] if case["is_large_any"] else []),
            NextStep(
                "Change its application to commit by time (auto.commit.interval.ms) or after a batch, not after every "
                "record or every empty poll"
            ),
        ),
        measured={
            "share_of_bytes": round(case["share"], 4),
            "commit_interval_ms": round(case["interval_ms"]),
            "commits": case["commits_sum_sum"],
            "commits_a_second": round(case["rate"], 1),
            "bytes_a_day": round(case["daily_bytes"]),
            "commit_bytes": size,
            "repeated_commits": case["repeated_commits_sum_sum"],
        },
        thresholds=context.limits_of(*(f"commits_flooding.{each.name}" for each in RULE.thresholds)),
    )


_OFTEN = "a group commits more often than it needs to"
_NO_LOAD = " That is no load for brokers."


def _number(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size / 1e6, 1):.0f} MB"


_LESS_METADATA = (
    "Look at the metadata of its commits (table current_offsets), and change the application to keep such state "
    "elsewhere"
)


def _created_ms(context: RuleContext, group: str) -> int | None:
    """The time of the first record of a group: in its first hour, it could not commit before that."""
    events = context.rows_of_group("timeline", group)
    own = kept(events, equal(events, "event", "created"))
    first: int | None = pc.min(own["at_timestamp_ms"]).as_py()
    return first


def _how_exact(context: RuleContext, case: dict[str, Any]) -> str:
    """A sentence about accuracy: `activity` counts by hour, and earlier hours were not examined."""
    began = "the first hour with so many commits; they may have begun in the hour before"
    if case["window_start_timestamp_ms_min"] - HOUR_MS < context.at_ms - context.limit("commits_flooding.lately"):
        return "or earlier: only the last hours were examined"
    last = case["window_start_timestamp_ms_max"]
    return began if last > context.at_ms - 2 * HOUR_MS else f"{began}; the last such hour began at {moment(last)}"


def _hours(number: int, first_ms: int) -> str:
    if number == 1:
        return f"the hour that began at {moment(first_ms)}"
    return f"{number} hours, the first of which began at {moment(first_ms)}"


RULE = ReportRule(
    kind="commits_flooding",
    title="the commits of a group flood the offsets topic",
    about="""\
Groups whose records are `share` of all bytes in some hours within `lately`. They commit each partition more often than
every `interval_ms`, and at least `least_commits` times, or write `least_bytes` in commits of `commit_bytes` each. The
level comes from commits per second and bytes a day. A compacted flood is not found.""",
    tables=("activity", "timeline"),
    levels={
        Level.HIGH: "`high_rate` or `high_bytes`",
        Level.MODERATE: "`moderate_rate` or `moderate_bytes`",
        Level.NOTE: "less, which brokers do not notice",
    },
    cases=_cases,
    tell=_tell,
    listing=lambda _: Rows("activity"),
    thresholds=(
        Threshold("lately", "duration", "24h", "how far back commits are counted", "a day includes the busy hours"),
        Threshold(
            "interval_ms",
            "count",
            1000,
            "the mean milliseconds between two commits of a partition",
            "five times the usual rate (auto.commit.interval.ms is five seconds)",
        ),
        Threshold(
            "least_commits",
            "count",
            3600,
            "commits in the busiest hour",
            "one commit a second is not a noticeable load for a broker",
        ),
        Threshold(
            "least_bytes",
            "count",
            10_000_000,
            "bytes in the busiest hour of a group whose commits are large",
            "100 000 usual commits have as many bytes",
        ),
        Threshold(
            "commit_bytes",
            "count",
            1000,
            "mean bytes of commits that are large",
            "a usual one has a hundred; brokers allow 4096 bytes of metadata (offset.metadata.max.bytes)",
        ),
        Threshold(
            "share", "share", 0.25, "the part of all bytes", "one group among many has no reason to write a quarter"
        ),
        Threshold(
            "moderate_rate",
            "count",
            100,
            "commits of the group per second",
            "a hundred usual commits per second are a gigabyte a day, which cleaners have to read and rewrite",
            "high_rate",
        ),
        Threshold(
            "high_rate",
            "count",
            500,
            "the same for the higher level",
            "each waits for a write to all replicas, in one log whose coordinator serves many other groups",
        ),
        Threshold(
            "moderate_bytes",
            "count",
            1_000_000_000,
            "bytes a day at that rate",
            "ten segments a day (offsets.topic.segment.bytes is 100 MB), which the cleaner goes over",
            "high_bytes",
        ),
        Threshold(
            "high_bytes",
            "count",
            5_000_000_000,
            "the same for the higher level",
            "if the cleaner stops for a day, a coordinator reads as much before it serves its groups again",
        ),
    ),
)

RULES = (RULE,)
