"""Groups whose commits flood the offsets topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_records_tables.report.report_parts import Level, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.sight import Sight


def _cases(sight: Sight) -> pa.Table:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.report.case_columns import grouped, kept, level_by, numbers, ranked, with_columns

    rows = sight.table("activity")
    rows = kept(
        rows, pc.greater_equal(rows["window_start_timestamp_ms"], sight.at_ms - sight.limit("commits_flooding.lately"))
    )
    byte_number = numbers(rows, "key_bytes") + numbers(rows, "value_bytes")
    commits = numbers(rows, "commits")
    # Of each window the mean distance of its commits, weighed by how many there are.
    distance = numbers(rows, "commit_interval_ms", 0) * commits
    timed = commits * np.asarray(rows["commit_interval_ms"].is_valid().to_numpy(), np.int64)
    rows = with_columns(rows, bytes=byte_number, distance=distance, timed=timed, busy=commits)
    windows = grouped(rows, ["group_id", "window_start_timestamp_ms"], [("busy", "sum"), ("repeated_commits", "sum")])
    busiest = grouped(windows, ["group_id"], [("busy_sum", "max")])
    cases = grouped(
        rows,
        ["group_id"],
        [
            ("bytes", "sum"),
            ("commits", "sum"),
            ("repeated_commits", "sum"),
            ("distance", "sum"),
            ("timed", "sum"),
            ("topic", "distinct"),
            ("window_start_timestamp_ms", "min"),
        ],
    )
    total = max(int(pc.sum(cases["bytes_sum"]).as_py() or 0), 1)
    interval = numbers(cases, "distance_sum") / np.maximum(numbers(cases, "timed_sum"), 1)
    cases = with_columns(
        cases,
        share=numbers(cases, "bytes_sum") / total,
        interval_ms=interval,
        busiest=pa.array(numbers(busiest, "busy_sum_max")),
    )
    share = np.asarray(cases["share"].to_numpy())
    floods = (
        (numbers(cases, "busiest") >= sight.limit("commits_flooding.least_commits"))
        & (numbers(cases, "timed_sum") > 0)
        & (interval <= sight.limit("commits_flooding.interval_ms"))
        & (share >= sight.limit("commits_flooding.share"))
    )
    high = (interval <= sight.limit("commits_flooding.high_interval_ms")) & (
        share >= sight.limit("commits_flooding.high_share")
    )
    cases = with_columns(cases, is_high=high).filter(pa.array(floods))
    is_high = np.asarray(cases["is_high"].to_numpy(zero_copy_only=False), bool)
    return ranked(cases, level_by((is_high, Level.HIGH), default=Level.MODERATE), numbers(cases, "bytes_sum"))


def _tell(sight: Sight, case: dict[str, Any]) -> ReportFinding:
    from kafka_records_tables.report.sight import counted, length, of_group, shown

    group = case["group_id"]
    topics = tuple(sorted(topic for topic in case["topic_distinct"] if topic is not None))
    since = case["window_start_timestamp_ms_min"]
    rows = Rows("activity", of_group(group, f"window_start_timestamp_ms>={since}"))
    repeated = case["repeated_commits_sum"] / max(case["commits_sum"], 1)
    again = (
        f" {repeated:.0%} of them repeat the offset that was there."
        if repeated >= sight.limit("commits_flooding.share")
        else ""
    )
    return ReportFinding(
        kind="commits_flooding",
        level=Level(case["level"]),
        title=RULE.title,
        what=(
            f"The group {shown(group)} wrote {case['share']:.0%} of the bytes in the offsets topic since "
            f"{_moment(since)}: {counted(case['commits_sum'], 'commit')}, of each partition one every "
            f"{length(case['interval_ms'])}, up to {case['busiest']} in an hour.{again} Its coordinator writes, "
            "replicates and cleans for nobody's use: once every few seconds is enough."
        ),
        group_ids=(group,),
        topics=topics,
        since_timestamp_ms=since,
        rows=(rows,),
        next=(
            sight.see("See its commits by hour and topic", rows),
            sight.see("See which clients commit", Rows("members", of_group(group))),
            sight.describe_group(
                group, "Find its application, and have it commit by time (auto.commit.interval.ms) and not by record"
            ),
        ),
        measured={
            "share_of_bytes": round(case["share"], 4),
            "commit_interval_ms": round(case["interval_ms"]),
            "commits": case["commits_sum"],
            "repeated_commits": case["repeated_commits_sum"],
        },
        thresholds=sight.limits_of(*(f"commits_flooding.{each.name}" for each in RULE.thresholds)),
    )


def _moment(ms: int) -> str:
    from kafka_records_tables.report.sight import moment

    return moment(ms)


RULE = ReportRule(
    kind="commits_flooding",
    title="the commits of a group flood the offsets topic",
    about="""\
Groups that commit each partition more often than every `interval_ms`, at least `least_commits` times in an hour,
and whose records are `share` of all bytes within `lately`: mostly consumers that commit behind every record. Many
partitions that commit every few seconds are no flood. A cleaner takes superseded commits away, so counts are lower
bounds, and what was compacted is not seen.""",
    tables=("activity",),
    levels={
        Level.HIGH: "more often than every `high_interval_ms`, and `high_share` of all bytes",
        Level.MODERATE: "otherwise",
    },
    cases=_cases,
    tell=_tell,
    listing=lambda _: Rows("activity"),
    thresholds=(
        Threshold("lately", "duration", "24h", "how far back commits count", "a day has its busy hours in it"),
        Threshold(
            "interval_ms",
            "count",
            1000,
            "the mean milliseconds between two commits of a partition",
            "five times the usual rate (auto.commit.interval.ms is five seconds)",
        ),
        Threshold("high_interval_ms", "count", 200, "the same for the higher level", "25 times the usual rate"),
        Threshold("least_commits", "count", 3600, "commits in the busiest hour", "one a second is nothing to a broker"),
        Threshold("share", "share", 0.25, "the part of all bytes", "one group of many has no reason for a quarter"),
        Threshold("high_share", "share", 0.5, "the same for the higher level", "more than all others together"),
    ),
)

RULES = (RULE,)
