"""Offsets of active or recently active groups that expire soon."""

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
    true_where,
    with_columns,
)
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold
from kafka_records_tables.report.rule_context import (
    MINUTE_MS,
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.report.rules.broken_logs import unloaded_partitions
from kafka_records_tables.report.rules.group_spans import last_commits, settled, spans, to_consume
from kafka_records_tables.topics import OFFSETS


def _due(context: RuleContext, within_ms: int) -> pa.Table:
    """The offsets that expire within a given time and were not abandoned on purpose."""
    rows = context.table("expirations")
    expires = rows["expires_timestamp_ms"]
    return kept(
        rows,
        equal(rows, "kind", "offset"),
        pc.less_equal(expires, context.at_ms + within_ms),
        pc.greater(expires, context.at_ms - context.limit("offsets_expiring.overdue_after")),
        equal(rows, "rule", "commit_timestamp", "state_timestamp"),
    )


def _cases(context: RuleContext) -> pa.Table:
    due = _due(context, context.limit("offsets_expiring.within"))
    members = looked_up(due["group_id"], context.table("groups"), "group_id", "member_count")
    # In a group with members, only offsets for topics that it does not subscribe to expire.
    due = kept(due, pc.equal(pc.fill_null(members, 0), 0), settled(context, due))
    cases = grouped(
        due,
        ["group_id"],
        [
            ("group_kind", "first"),
            ("topic", "list"),
            ("partition", "list"),
            ("rule", "first"),
            ("expires_timestamp_ms", "min"),
            ("expires_timestamp_ms", "max"),
            ("log_partition", "list"),
            ("log_offset", "list"),
        ],
    )
    newest = context.once(last_commits)
    first, last = context.once(spans)
    ids = cases["group_id"]
    cases = with_columns(
        cases,
        committed_ms=looked_up(ids, newest, "group_id", "last"),
        first_ms=looked_up(ids, first, "group_id", "first"),
        last_ms=looked_up(ids, last, "group_id", "last"),
        is_lower_bound=looked_up(ids, last, "group_id", "is_lower_bound"),
    )
    left = numbers(cases, "expires_timestamp_ms_min") - context.at_ms
    works = numbers(cases, "committed_ms", -(2**62)) > context.at_ms - context.limit("offsets_expiring.alive_within")
    # In groups of other kinds, only members and administrators commit.
    works &= true_where(equal(cases, "group_kind_first", "simple"))
    lived = numbers(cases, "last_ms") - numbers(cases, "first_ms")
    epochs = with_columns(cases, epoch=looked_up(ids, context.table("groups"), "group_id", "epoch"))
    was_used = (lived >= context.limit("offsets_expiring.in_use_for")) | (
        numbers(epochs, "epoch") >= context.limit("offsets_expiring.in_use_epoch")
    )
    is_unclear = true_where(cases["is_lower_bound"]) & ~was_used
    soon = left <= context.limit("offsets_expiring.high_within")
    very_soon = left <= context.limit("offsets_expiring.critical_within")
    levels = level_by(
        (works & very_soon, Level.CRITICAL),
        ((works | was_used) & soon, Level.HIGH),
        (works | was_used, Level.MODERATE),
        (is_unclear & soon, Level.MODERATE),
        (is_unclear, Level.LOW),
        default=Level.NOTE,
    )
    cases = with_columns(epochs, works=works, was_used=was_used, lived_ms=np.maximum(lived, 0))
    return ranked(cases, levels, -left)


def _tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    group, soonest = case["group_id"], case["expires_timestamp_ms_min"]
    topics = tuple(sorted(set(case["topic_list"])))
    offsets = len(case["partition_list"])
    left = soonest - context.at_ms
    # An empty group loses its offsets one retention period after it became empty
    # (ClassicGroup.offsetExpirationCondition).
    emptied = soonest - context.request.retention_ms if case["rule_first"] == "state_timestamp" else None
    committed = case["last_ms"] if case["committed_ms"] is None else case["committed_ms"]
    state = (
        f"it still commits for other partitions, last at {moment(case['committed_ms'])}"
        if case["works"]
        else (
            ("it has no members" if emptied is None else f"it has had no members since {moment(emptied)}")
            if case["group_kind_first"] != "simple"
            else "nobody has committed for it lately"
        )
    )
    first, last = soonest, case["expires_timestamp_ms_max"]
    when = f"in {length(left)} ({moment(soonest)})" if left > 0 else "at the next clean-up"
    if context.is_of_the_past and soonest <= context.request.made_timestamp_ms:
        when = f"at {moment(soonest)}, before this report was made"
    if last - first >= MINUTE_MS:
        when = f"from {when} to {moment(last)}" if left > 0 else f"{when}, up to {moment(last)}"
    elif offsets > 1:
        when = f"all {when}"
    until = (f"expires_timestamp_ms>={first}", f"expires_timestamp_ms<={last}")
    rows = Rows("expirations", of_group(group, "kind=offset", "rule!=expire_timestamp", *until))
    is_sure = case["works"] or case["was_used"] or not case["is_lower_bound"]
    waiting = to_consume(context, group, topics)
    behind = f" It has {waiting} now." if waiting else ""
    lived = f"It was in use for {length(case['lived_ms'])} before, as far as the log shows. "
    return ReportFinding(
        kind="offsets_expiring",
        level=Level(case["level"]),
        title=RULE.title,
        problem=(
            f"{counted(offsets, 'committed offset')} of the group {shown(group)} ({listed(topics)}) "
            f"{'expires' if offsets == 1 else 'expire,'} {when}: {state}. {lived if case['lived_ms'] else ''}If its "
            "consumers come back after that, they start where auto.offset.reset says: at the end, and miss the "
            f"records in between, or at the beginning, and read all of them again.{behind}"
        ),
        group_ids=(group,),
        topics=topics,
        partitions=tuple(sorted(case["partition_list"])) if len(topics) == 1 else (),
        since_timestamp_ms=committed if emptied is None else emptied,
        until_timestamp_ms=soonest,
        confidence="high" if is_sure else "medium",
        why_not_sure=(
            None if is_sure else "a cleaner has removed the records that would show how long the group was in use"
        ),
        evidence=tuple(
            Evidence(f"the commit for {topic}-{partition} that expires", OFFSETS, log_partition, log_offset)
            for topic, partition, log_partition, log_offset in list(
                zip(
                    case["topic_list"],
                    case["partition_list"],
                    case["log_partition_list"],
                    case["log_offset_list"],
                    strict=True,
                )
            )[:MOST_EVIDENCE]
        ),
        evidence_count=offsets,
        rows=(rows,),
        next=(
            context.describe_group(group, "Ask the brokers whether the group has members by now"),
            context.see("List which offsets expire when, and by which rule", rows),
            context.ask_kafka(
                "Commit the same offsets again, which restarts their retention: save what this prints, and run it "
                "with --execute in place of --dry-run while the group has no members",
                "kafka-consumer-groups",
                "--reset-offsets",
                *option("--group", group),
                "--all-topics",
                "--to-current",
                "--dry-run",
            ),
        ),
        measured={
            "expires_in_ms": left,
            "offsets": offsets,
            **({"in_use_ms": case["lived_ms"]} if case["lived_ms"] else {}),
            **({"epoch": case["epoch"]} if case["epoch"] is not None else {}),
        },
        thresholds=context.limits_of(
            "offsets_expiring.within",
            "offsets_expiring.high_within",
            "offsets_expiring.critical_within",
            "offsets_expiring.alive_within",
            "offsets_expiring.in_use_for",
            "offsets_expiring.in_use_epoch",
        ),
    )


def _listing(context: RuleContext) -> Rows:
    first = context.at_ms - context.limit("offsets_expiring.overdue_after")
    last = context.at_ms + context.limit("offsets_expiring.within")
    until = (f"expires_timestamp_ms>{first}", f"expires_timestamp_ms<={last}")
    return Rows("expirations", ("kind=offset", "rule!=expire_timestamp", *until))


RULE = ReportRule(
    kind="offsets_expiring",
    title="offsets of a group that was in use expire soon",
    about="""\
Committed offsets of groups without members that a clean-up deletes within `within`: the group loses its place. So does
a simple group that is at work (`alive_within`). Left out are those of `offsets_unneeded`, and those with an expiry time
of their own.

How long it was in use follows from its records and its epoch (`in_use_epoch`), if a cleaner has left them.""",
    tables=("expirations", "groups", "activity", "current_offsets", "timeline", "lag", "log_ends", "assignments"),
    levels={
        Level.CRITICAL: "it is at work, and an offset expires within `critical_within`",
        Level.HIGH: "it is at work or was in use, and one expires within `high_within`",
        Level.MODERATE: (
            "the same within `within`; or within `high_within` if the log does not show how long it was in use"
        ),
        Level.LOW: "within `within` if the log does not show it",
        Level.NOTE: "it was in use for less than `in_use_for`",
    },
    cases=_cases,
    tell=_tell,
    listing=_listing,
    thresholds=(
        Threshold("within", "duration", "72h", "how far ahead to look for expiry", "a long weekend"),
        Threshold("high_within", "duration", "24h", "expiry that should be handled today", "one working day", "within"),
        Threshold(
            "critical_within",
            "duration",
            "2h",
            "expiry that cannot wait, because the group is at work",
            "time to find its owner and to commit its offsets again",
            "high_within",
        ),
        Threshold(
            "alive_within",
            "duration",
            "24h",
            "a group without members that has committed this recently is at work",
            "jobs that assign themselves partitions run at least once a day",
        ),
        Threshold(
            "in_use_for",
            "duration",
            "24h",
            "time from the first to the last record of a group that was in use",
            "tools and tests come and go within a day",
        ),
        Threshold(
            "in_use_epoch",
            "count",
            8,
            "the epoch (generation) of a group that was in use",
            "a tool joins once; three members that are redeployed twice reach this epoch",
        ),
        Threshold(
            "overdue_after",
            "duration",
            "1h",
            "offsets overdue for longer than this show that brokers keep offsets longer than the retention that was "
            "passed",
            "brokers clean up every ten minutes, and six clean-ups in a row do not fail",
        ),
    ),
)


# -- the retention -----------------------------------------------------------------------------------------------------


def _overdue_cases(context: RuleContext) -> pa.Table:
    rows = context.table("expirations")
    overdue = kept(
        rows,
        equal(rows, "kind", "offset"),
        pc.less_equal(rows["expires_timestamp_ms"], context.at_ms - context.limit("offsets_expiring.overdue_after")),
        equal(rows, "rule", "commit_timestamp", "state_timestamp"),
        pc.invert(equal(rows, "log_partition", *unloaded_partitions(context))),
    )
    count = overdue.num_rows
    earliest = pc.min(overdue["expires_timestamp_ms"]).as_py()
    case = pa.table({"offsets": [count], "earliest_ms": pa.array([earliest], pa.int64())})
    return ranked(case.slice(0, min(count, 1)), [int(Level.NOTE)] * min(count, 1), [float(count)] * min(count, 1))


def _tell_overdue(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    late = context.at_ms - case["earliest_ms"]
    at_least = context.request.retention_ms + late
    rows = _overdue_rows(context)
    return ReportFinding(
        kind="retention_differs",
        level=Level(case["level"]),
        title=OVERDUE.title,
        problem=(
            f"{counted(case['offsets'], 'committed offset')} should have expired up to {length(late)} ago with a "
            f"retention of {length(context.request.retention_ms)}, and are still in the log. So the brokers keep "
            f"offsets for at least {length(at_least)}, or do not clean up. The report says nothing about the expiry "
            "of these offsets."
        ),
        since_timestamp_ms=case["earliest_ms"],
        confidence="medium",
        why_not_sure="a classic group in a rebalance looks empty in the log, and a broker does not expire its offsets",
        rows=(rows,),
        next=(
            context.ask_kafka(
                "Ask a broker for offsets.retention.minutes, and pass it as --retention",
                "kafka-configs",
                "--entity-type",
                "brokers",
                "--all",
                "--describe",
            ),
            context.see("See these offsets", rows),
        ),
        measured={"offsets": case["offsets"], "overdue_ms": late},
        thresholds=context.limits_of("offsets_expiring.overdue_after"),
    )


def _overdue_rows(context: RuleContext) -> Rows:
    last = context.at_ms - context.limit("offsets_expiring.overdue_after")
    others = (f"log_partition!={number}" for number in unloaded_partitions(context))
    return Rows("expirations", ("kind=offset", "rule!=expire_timestamp", f"expires_timestamp_ms<={last}", *others))


OVERDUE = ReportRule(
    kind="retention_differs",
    title="brokers keep offsets longer than the retention that was passed",
    about="""\
Offsets that the retention of this report (`--retention`, 7 days by default) should have deleted: the brokers' is
longer, and everything computed with that of the report is wrong.""",
    tables=("expirations", "checks"),
    levels={Level.NOTE: "always"},
    cases=_overdue_cases,
    tell=_tell_overdue,
    listing=_overdue_rows,
)

RULES = (RULE, OVERDUE)
