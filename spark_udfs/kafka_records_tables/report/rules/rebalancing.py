"""Groups that keep rebalancing, and members that never settle."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

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
from kafka_records_tables.report.facts.deleted_topics import deleted_topics
from kafka_records_tables.report.facts.group_work import work_of
from kafka_records_tables.report.facts.known_logs import ends_of_logs
from kafka_records_tables.report.facts.short_stays import short_stays
from kafka_records_tables.report.facts.usual_values import usual_most
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, ReportRule, Threshold
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.report.rules.dropped_clients import dropped_since, enough_rebalances
from kafka_records_tables.report.rules.frozen_members import departures_of, who_left
from kafka_records_tables.report.rules.group_spans import SETTLES
from kafka_records_tables.report.rules.rebalance_causes import CAUSES, QUESTIONS, stays_words, whole_report
from kafka_records_tables.report.rules.scaled_groups import scaling_of
from kafka_records_tables.report.rules.usual_scaling import falls_behind, rebalances, usual_of_scaling
from kafka_records_tables.topics import OFFSETS

_LEAST: Final = "endless_rebalances.least"
_QUIET: Final = 3
"""A series has ended after this many times the longest time between two of its rebalances."""


def _runs(context: RuleContext) -> pa.Table:
    """The last series of rebalances of each group, without the rebalances of its start. If a client repeatedly times
    out, the series begins with its first removal (`dropped_ms`)."""
    rows = _last_series(context)
    drops = dropped_since(context, rows)
    first = [drops.get(each) for each in rows["group_id"].to_pylist()]
    rows = with_columns(rows, dropped_ms=pa.array(first, pa.int64()))
    is_after = numbers(rows, "at_timestamp_ms") >= numbers(rows, "dropped_ms", 0)
    return rows.filter(pa.array(_is_of_trouble(context, rows) & is_after))


def _last_series(context: RuleContext) -> pa.Table:
    """Epoch changes in the last run of each group, without a pause between them. Changes with no members before or
    after, as in jobs, are left out unless members suddenly leave more often than before."""
    rows = rebalances(context)
    rows = kept(rows, pc.is_valid(rows["at_timestamp_ms"]))
    rows = rows.sort_by([("group_id", "ascending"), ("log_partition", "ascending"), ("log_offset", "ascending")])
    if not rows.num_rows:
        return rows
    # The first member to join and the last one to leave do not make other members wait.
    members = numbers(rows, "member_count")
    codes = pc.rank(rows["group_id"], tiebreaker="min").to_numpy()
    is_new = np.append(True, codes[1:] != codes[:-1])
    is_idle = (members == 0) | np.append(True, is_new[1:] | (members[:-1] == 0))
    group = np.cumsum(is_new) - 1
    stays = pc.is_in(rows["group_id"], pa.array([*context.once(short_stays)], pa.string())).to_numpy()
    is_job = (2 * np.bincount(group, is_idle) >= np.bincount(group))[group] & ~stays
    rows = rows.filter(pa.array(~is_job | ~is_idle))
    if not rows.num_rows:
        return rows
    codes = pc.rank(rows["group_id"], tiebreaker="min").to_numpy()
    times = numbers(rows, "at_timestamp_ms")
    begins = np.ones(rows.num_rows, bool)
    pause = context.limit("endless_rebalances.pause")
    begins[1:] = (codes[1:] != codes[:-1]) | (times[1:] - times[:-1] > pause)
    run = np.cumsum(begins) - 1
    is_last_of_group = np.append(codes[1:] != codes[:-1], True)
    last_runs = run[is_last_of_group]
    return rows.filter(np.isin(run, last_runs))


def _is_of_trouble(context: RuleContext, rows: pa.Table) -> Any:
    """Flags the rebalances of a run that do not belong to the group's start. A starting group also rebalances, is then
    quiet, and may get into trouble later.

    A start is at most a quarter of the run, and the pause after it is twice as long as any between later rebalances. It
    counts as a start only if the other rebalances are enough for a finding.
    """
    codes = pc.rank(rows["group_id"], tiebreaker="min").to_numpy()
    times, members = numbers(rows, "at_timestamp_ms"), numbers(rows, "member_count")
    holds = np.ones(rows.num_rows, bool)
    if not rows.num_rows:
        return holds
    begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    for begin, end in zip(begins, np.append(begins[1:], rows.num_rows), strict=True):
        enough = int(enough_rebalances(context, members[begin:end].max()))
        least = int(context.limit(_LEAST))
        if least < end - begin <= enough:
            group = rows["group_id"][begin].as_py()
            enough = least if _is_scaled_and_behind(context, group, int(times[begin])) else enough
        if end - begin <= enough:
            continue
        gaps = np.diff(times[begin:end])
        later = np.maximum.accumulate(gaps[::-1])[::-1]
        most = min((end - begin) // 4, end - begin - enough)
        quiet = np.flatnonzero(gaps[:most] > 2 * later[1 : most + 1])
        if len(quiet):
            holds[begin : begin + quiet[-1] + 1] = False
    return holds


def _cases(context: RuleContext) -> pa.Table:
    cases = grouped(
        _runs(context),
        ["group_id"],
        [
            ("group_kind", "last"),
            ("at_timestamp_ms", "min"),
            ("at_timestamp_ms", "max"),
            ("log_offset", "count"),
            ("member_count", "max"),
            ("log_partition", "last"),
            ("log_offset", "list"),
            ("at_timestamp_ms", "list"),
            ("dropped_ms", "count"),
        ],
    )
    count = numbers(cases, "log_offset_count")
    is_dropping = numbers(cases, "dropped_ms_count") > 0
    is_many = count >= enough_rebalances(context, numbers(cases, "member_count_max"))
    enough = is_many | is_dropping | _is_scaled(context, cases, ~is_many & (count >= context.limit(_LEAST)))
    cases = kept(with_columns(cases, goes_on=_goes_on(context, cases)), enough)
    lasts = numbers(cases, "at_timestamp_ms_max") - numbers(cases, "at_timestamp_ms_min")
    goes_on = np.asarray(cases["goes_on"].to_numpy(), bool)
    is_new = numbers(cases, "at_timestamp_ms_max") >= context.at_ms - context.limit("endless_rebalances.lately")
    groups = cases["group_id"].to_pylist()
    usual = usual_of_scaling(context, groups)
    is_usual = np.array([each in usual for each in groups], bool)
    is_unsure = np.array([each in context.once(short_stays) for each in groups], bool)
    levels = level_by(
        (is_usual, Level.NOTE),
        (goes_on & is_unsure, Level.MODERATE),
        (goes_on, Level.HIGH),
        (is_new, Level.LOW),
        default=Level.NOTE,
    )
    times = cases["at_timestamp_ms_list"].to_pylist()
    deleted = [
        sorted({each.topic for each in deleted_topics(context, group, sorted(of_group))})
        for group, of_group in zip(groups, times, strict=True)
    ]
    cases = with_columns(
        cases,
        usual=pa.array([usual.get(each) for each in groups], pa.string()),
        topic_list=pa.array(deleted, pa.list_(pa.string())),
    )
    return ranked(cases, levels, numbers(cases, "log_offset_count") + lasts / 1e15)


def _is_scaled(context: RuleContext, cases: pa.Table, is_asked: Any) -> Any:
    """Flags groups that are scaled up and down again and again and fall behind: fewer rebalances are enough for them.
    An autoscaler whose group keeps up does no harm."""
    groups, since = cases["group_id"].to_pylist(), cases["at_timestamp_ms_min"].to_pylist()
    told = zip(groups, since, is_asked, strict=True)
    return np.array([bool(asked) and _is_scaled_and_behind(context, group, at) for group, at, asked in told], bool)


def _is_scaled_and_behind(context: RuleContext, group: str, since_ms: int) -> bool:
    return scaling_of(context, group, since_ms) is not None and bool(falls_behind(context, [group]))


def scaled_since(context: RuleContext) -> dict[str, int]:
    """The groups of findings above a note that are scaled up and down again and again, each with the time of its first
    rebalance."""
    cases = context.once(_cases)
    cases = kept(cases, pc.greater(cases["level"], int(Level.NOTE)))
    since = zip(cases["group_id"].to_pylist(), cases["at_timestamp_ms_min"].to_pylist(), strict=True)
    return {group: at_ms for group, at_ms in since if scaling_of(context, group, at_ms) is not None}


def _goes_on(context: RuleContext, cases: pa.Table) -> Any:
    """Flags series that are still going on: the time since the last rebalance is at most `pause`, and not much longer
    than the longest time between two rebalances."""
    times = [sorted(each) for each in cases["at_timestamp_ms_list"].to_pylist()]
    longest = [max((after - before for before, after in pairwise(each)), default=2**40) for each in times]
    usual = np.maximum(_QUIET * np.array(longest, np.int64), int(context.limit("report.group_settles_within")))
    quiet = context.at_ms - numbers(cases, "at_timestamp_ms_max")
    return quiet <= np.minimum(usual, context.limit("endless_rebalances.pause"))


def _why_members_left(context: RuleContext, group: str) -> tuple[NextStep, ...]:
    """A step for groups whose members have their own records. Members of classic groups leave no tombstones."""
    if "classic" in context.rows_of_group("groups", group)["group_kind"].to_pylist():
        return ()
    what = "Find out why members left: a session or a rebalance timed out, or they left by themselves"
    return (context.see(what, Rows("disappearances", of_group(group))),)


_SHORT_STAYS: Final = "members of a group leave soon after they join, again and again"


def _tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    group, count = case["group_id"], case["log_offset_count"]
    first, last = case["at_timestamp_ms_min"], case["at_timestamp_ms_max"]
    rows = Rows("timeline", of_group(group, "event=epoch", f"at_timestamp_ms>={first}"))
    offsets = case["log_offset_list"]
    work = work_of(context, group, first)
    stays = context.once(short_stays).get(group, [])
    unsure = ends_of_logs(each.place for each in stays)
    return ReportFinding(
        kind="endless_rebalances",
        level=Level(case["level"]),
        title=(
            f"a group {'rebalances' if case['goes_on'] else 'rebalanced'} as often as it always did"
            if case["usual"]
            else (
                _SHORT_STAYS
                if stays and case["goes_on"]
                else RULE.title if case["goes_on"] else "a group rebalanced again and again"
            )
        ),
        problem=(
            f"The group {shown(group)} went through {counted(count, 'rebalance')} in {length(last - first)}, one every "
            f"{length((last - first) / max(count - 1, 1))}, with at most "
            f"{counted(case['member_count_max'] or 0, 'member')} at a time. "
            + ("It goes on." if case["goes_on"] else f"The last one was at {moment(last)}.")
            + work.words
            + (case["usual"] or "")
            + (stays_words(stays[0]) if stays else "")
        ),
        impact="In each rebalance consumers stop; records that they had not committed by then are consumed again.",
        consequence="none" if case["usual"] else "work_stopped",
        who=who_left(departures_of(context, case), group),
        is_going_on=case["goes_on"],
        scale={"rebalances": count} | ({"records_waiting": work.waiting} if work.waiting else {}),
        symptom_confidence="medium" if stays else "high",
        why_not_sure=f"the source lacks {unsure}, so there may be nothing to read" if stays else None,
        group_ids=(group,),
        topics=work.topics,
        since_timestamp_ms=first,
        evidence=tuple(
            Evidence(f"the {which} of these rebalances", OFFSETS, case["log_partition_last"], offset, at)
            for which, offset, at in (("first", offsets[0], first), ("last", offsets[-1], last))
        ),
        evidence_count=count,
        rows=(rows,),
        next=(
            *whole_report(context, group, stays),
            context.see("List who joins and leaves, and how long they stay", Rows("timeline", of_group(group))),
            *_why_members_left(context, group),
            context.see("List the timeouts of its members and the clients they run", Rows("members", of_group(group))),
            context.describe_group(group),
        ),
        measured={
            "rebalances": count,
            "lasts_ms": last - first,
            "members": case["member_count_max"] or 0,
        },
        thresholds=context.limits_of(
            "endless_rebalances.pause",
            _LEAST,
            "endless_rebalances.per_member",
            "endless_rebalances.drops",
        ),
    )


RULE = ReportRule(
    kind="endless_rebalances",
    title="a group rebalances without end",
    about="""\
A series of epochs (generations in classic groups) without a `pause`, longer than members that join or leave once would
cause. Fewer are enough if the same client times out and comes back again and again, or if a group that falls behind is
scaled up and down again and again. Rolling restarts and jobs are not a finding; a group that often scales, and keeps
up, is a note. Without the ends of the logs, [crash_loop](#crash_loop) cannot be found: then members that suddenly leave
far more often, while an offset does not move, are a finding here. Counts are lower bounds.""",
    tables=(
        "timeline",
        "groups",
        "members",
        "assignments",
        "current_offsets",
        "log_ends",
        "group_lag",
        "progress",
        "lag",
        "checks",
    ),
    levels={
        Level.HIGH: "it goes on",
        Level.MODERATE: "it goes on, and there may be nothing to read",
        Level.LOW: "it has ended, within `lately`",
        Level.NOTE: "it ended earlier, or is usual for the group",
    },
    cases=lambda context: context.once(_cases),
    tell=_tell,
    listing=lambda _: Rows("timeline", ("event=epoch",)),
    thresholds=(
        Threshold(
            "pause",
            "duration",
            "10m",
            "time without a rebalance after which a series ends",
            "two rebalance timeouts of most clients (max.poll.interval.ms is five minutes)",
        ),
        Threshold("least", "count", 10, "rebalances of a series", "fewer happen in any deployment"),
        Threshold(
            "per_member",
            "count",
            6,
            "rebalances of a series for each member",
            "a rolling restart takes two for each, and one that fails and is repeated takes four",
        ),
        Threshold(
            "drops",
            "count",
            4,
            "times that one client times out and comes back while other members stay, which is a finding by itself",
            "a client that is restarted by hand leaves the group, and does not time out",
        ),
        Threshold(
            "lately", "duration", "24h", "series that ended this recently are not just notes", "since the last shift"
        ),
    ),
    causes=CAUSES,
    questions=QUESTIONS,
    folds=(Folds("too_slow", if_later=True),),
)


# -- members that never settle -----------------------------------------------------------------------------------------

_WAITS_FOR: Final = {
    "Assigning": "no assignment has been made for that epoch",
    "Reconciling": "members have not given up, or not taken over, what they were assigned",
    "NotReady": "topics that it needs are not as its topology requires",
}
"""What a rebalancing group waits for, by its state."""


def _usual_lengths(events: pa.Table, groups: list[str]) -> dict[str, int]:
    """The time that 95 % of a group's earlier rebalances did not exceed, in milliseconds, for groups with enough of
    them in the log."""
    rows = kept(
        events,
        equal(events, "group_id", *groups),
        equal(events, "event", "rebalance_completed"),
        pc.is_valid(events["duration_ms"]),
    )
    lengths: dict[str, list[int]] = {}
    for row in rows.select(["group_id", "duration_ms"]).to_pylist():
        lengths.setdefault(row["group_id"], []).append(row["duration_ms"])
    usual = {group: usual_most(each) for group, each in lengths.items()}
    return {group: each for group, each in usual.items() if each is not None}


def _unsettled_cases(context: RuleContext) -> pa.Table:
    groups = context.table("groups")
    groups = kept(groups, equal(groups, "state", *_WAITS_FOR))
    events = context.table("timeline")
    changed = grouped(
        kept(events, equal(events, "event", "epoch", "rebalance_started")), ["group_id"], [("at_timestamp_ms", "max")]
    )
    since = looked_up(groups["group_id"], changed, "group_id", "at_timestamp_ms_max")
    groups = kept(with_columns(groups, since_ms=since), pc.is_valid(since))
    groups = kept(groups, numbers(groups, "since_ms") <= context.at_ms - context.limit(SETTLES))
    lasts = context.at_ms - numbers(groups, "since_ms")
    usual = _usual_lengths(events, groups["group_id"].to_pylist())
    own = np.array([usual.get(each, 0) for each in groups["group_id"].to_pylist()], np.int64)
    began = _first_since_stable(groups, events)
    groups = with_columns(groups, lasts_ms=lasts, began_ms=began, usual_ms=own)
    levels = level_by(
        (lasts >= np.maximum(context.limit("members_unsettled.high_after"), 2 * own), Level.HIGH),
        (lasts >= np.maximum(context.limit("members_unsettled.moderate_after"), 2 * own), Level.MODERATE),
        default=Level.NOTE,
    )
    return ranked(groups, levels, lasts)


def _first_since_stable(groups: pa.Table, events: pa.Table) -> Any:
    """The time of each group's first epoch change since its last rebalance ended. Members that joined later changed the
    epoch again, when the group was already unsettled."""
    own = kept(events, pc.is_in(events["group_id"], groups["group_id"].combine_chunks()))
    ended = grouped(kept(own, equal(own, "event", "rebalance_completed")), ["group_id"], [("at_timestamp_ms", "max")])
    changed = kept(own, equal(own, "event", "epoch", "rebalance_started"))
    stable = looked_up(changed["group_id"], ended, "group_id", "at_timestamp_ms_max")
    changed = with_columns(changed, stable_ms=pc.fill_null(stable, np.iinfo(np.int64).min))
    changed = kept(changed, pc.greater(changed["at_timestamp_ms"], changed["stable_ms"]))
    first = grouped(changed, ["group_id"], [("at_timestamp_ms", "min")])
    began = looked_up(groups["group_id"], first, "group_id", "at_timestamp_ms_min")
    return pc.coalesce(began, groups["since_ms"].combine_chunks())


def _tell_unsettled(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    group = case["group_id"]
    members = context.rows_of_group("members", group)
    behind = kept(
        members,
        pc.or_kleene(
            pc.invert(equal(members, "state", "Stable")), pc.less(members["member_epoch"], case["epoch"] or 0)
        ),
    ).select(["member_id", "client_id", "member_epoch", "state", "log_partition", "log_offset"])
    late = behind.to_pylist()
    clients = list(dict.fromkeys(each["client_id"] or each["member_id"] for each in late))
    who = f" Not there yet: {counted(len(late), 'member')} of {members.num_rows} ({listed(clients)})." if late else ""
    own = case["usual_ms"]
    usual = f" 95 % of its earlier rebalances were over within {length(own)}." if own else ""
    rows = Rows("members", of_group(group))
    return ReportFinding(
        kind="members_unsettled",
        level=Level(case["level"]),
        title=UNSETTLED.title if case["level"] > Level.NOTE else "a rebalance is under way",
        problem=(
            f"The group {shown(group)} has been {case['state']} for {length(case['lasts_ms'])}, since its epoch "
            f"became {case['epoch']}: {_WAITS_FOR[case['state']]}.{who}{usual}"
        ),
        impact="Until it is Stable, some partitions may have no consumer.",
        consequence="work_stopped",
        is_going_on=True,
        group_ids=(group,),
        since_timestamp_ms=case["began_ms"],
        evidence=tuple(
            Evidence(
                f"{each['client_id'] or each['member_id']} is {each['state']} at epoch {each['member_epoch']}",
                OFFSETS,
                each["log_partition"],
                each["log_offset"],
            )
            for each in late[:MOST_EVIDENCE]
        ),
        evidence_count=len(late),
        rows=(Rows("groups", of_group(group)), rows),
        next=(
            context.see("List its members, their states and their rebalance timeouts", rows),
            context.see("List what each member has, must give up and will get", Rows("assignments", of_group(group))),
            context.describe_members(group),
        ),
        measured={"lasts_ms": case["lasts_ms"], "members_behind": len(late)},
        thresholds=context.limits_of(SETTLES, "members_unsettled.moderate_after", "members_unsettled.high_after"),
    )


UNSETTLED = ReportRule(
    kind="members_unsettled",
    title="members of a group never settle",
    about="""\
Consumer and streams groups that are Assigning, Reconciling or NotReady since their epoch changed,
`report.group_settles_within` ago or earlier. If earlier rebalances of the group took longer, twice their usual longest
time counts in place of `moderate_after` and `high_after`. Classic groups do not record this.""",
    tables=("groups", "timeline", "members"),
    levels={
        Level.HIGH: "for `high_after`",
        Level.MODERATE: "for `moderate_after`",
        Level.NOTE: "for a shorter time, as in a rebalance of slow members",
    },
    cases=_unsettled_cases,
    tell=_tell_unsettled,
    listing=lambda _: Rows("groups", ("state!=Stable", "state!=Empty")),
    thresholds=(
        Threshold(
            "moderate_after",
            "duration",
            "10m",
            "a rebalance that should be over",
            "two rebalance timeouts of most clients (max.poll.interval.ms is five minutes)",
            "high_after",
        ),
        Threshold("high_after", "duration", "1h", "a rebalance that does not end by itself", "twelve such timeouts"),
    ),
)

RULES = (RULE, UNSETTLED)
