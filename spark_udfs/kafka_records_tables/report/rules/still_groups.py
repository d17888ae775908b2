"""Groups that have stopped reading, measured by their own history."""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept, numbers
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, commit_spans
from kafka_records_tables.report.facts.moved_groups import without_old_copies
from kafka_records_tables.report.facts.usual_values import UsualGap, usual_gap
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.topics import OFFSETS

KIND: Final = "group_stands_still"
_TIMES: Final = 2
"""How many times the longest interval of its own history makes a stop of a group."""


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("progress")
    rows = kept(rows, equal(rows, "state", "stopped"))
    stopped: dict[str, list[dict[str, Any]]] = {}
    for row in [*rows.to_pylist(), *_stopped_on_brokers(context)]:
        stopped.setdefault(row["group_id"], []).append(row)
    groups = without_old_copies(context, context.table("groups"))
    counts = {each["group_id"]: each["member_count"] for each in groups.to_pylist()}
    # A stopped application has no members that could read its backlog.
    suspects = [
        group
        for group, places in stopped.items()
        if counts.get(group) and all(each["reason"] is None for each in places)
    ]
    found = []
    for group, usual in _usual_gaps(context, suspects).items():
        places = stopped[group]
        limit = context.limit(f"{KIND}.after")
        if usual is not None:
            # The longest intervals include nights without records. For files, `progress` has the longest wait.
            own = usual.high_ms if context.is_stored else usual.most_ms
            limit = max(_TIMES * own, context.limit("report.group_settles_within"))
        if max(each["wait_ms"] or 0 for each in places) >= limit:
            found.append(_incident(context, group, places, limit, usual))
    return found


def _usual_gaps(context: RuleContext, groups: list[str]) -> dict[str, UsualGap | None]:
    """How long groups usually take from one commit of a new offset to the next, in any of their partitions; None for
    those of which the log has too few."""
    times: dict[str, set[int]] = {each: set() for each in groups}
    for (group, *_), spans in commit_spans(context, tuple(groups[:MOST_GROUPS])).items():
        times[group].update(each.from_ms for each in spans if each.from_ms is not None)
    return {group: usual_gap(of_group) for group, of_group in times.items()}


def _stopped_on_brokers(context: RuleContext) -> list[dict[str, Any]]:
    """Rows as `progress` has them for files, of partitions of running brokers that have records to read and no commit
    for longer than usual: the times of their first unread records are asked for, because `progress` lacks them."""
    if context.is_stored or context.second_look is None:
        return []
    groups = without_old_copies(context, context.table("groups"))
    alive = kept(groups, pc.greater(groups["member_count"], 0))["group_id"].to_pylist()
    lag = context.table("lag")
    is_old = numbers(lag, "commit_timestamp_ms", 2**62) <= context.at_ms - context.limit(f"{KIND}.after")
    lag = kept(lag, pc.greater(lag["lag"], 0), pc.is_null(lag["problem"]), equal(lag, "group_id", *alive), is_old)
    suspects = tuple(lag["group_id"].unique().to_pylist())[:MOST_GROUPS]
    if not suspects:
        return []
    spans = commit_spans(context, suspects)
    still = set(zip(*(lag[name].to_pylist() for name in ("group_id", "topic", "partition")), strict=True))
    found = []
    for row in context.look("lag", suspects, times=True).to_pylist():
        key = row["group_id"], row["topic"], row["partition"]
        of_place = spans.get(key, [])
        if key not in still or row["unread_timestamp_ms"] is None or not of_place:
            continue
        since = max(row["unread_timestamp_ms"], of_place[-1].from_ms or 0)
        usual = usual_gap([each.from_ms for each in of_place])
        if usual is not None and context.at_ms - since > _TIMES * usual.most_ms:
            more = {"since_timestamp_ms": since, "wait_ms": context.at_ms - since, "longest_wait_ms": usual.most_ms}
            found.append({**row, **more, "reason": None})
    return found


def _incident(
    context: RuleContext, group: str, places: list[dict[str, Any]], limit: int, gaps: UsualGap | None
) -> Incident:
    rows = context.table("lag")
    lags = {(each["topic"], each["partition"]): each for each in kept(rows, equal(rows, "group_id", group)).to_pylist()}
    mine = [lags.get((each["topic"], each["partition"])) or {} for each in places]
    waiting = sum(each.get("lag") or 0 for each in mine)
    since = min((each["since_timestamp_ms"] or context.at_ms for each in places), default=context.at_ms)
    last = max((each["commit_timestamp_ms"] or 0 for each in places), default=0)
    wait = max(each["wait_ms"] or 0 for each in places)
    known = [each["longest_wait_ms"] for each in places if each["longest_wait_ms"] is not None]
    usual = max(known, default=None)
    before = "" if usual is None else f", and never waited for longer than {length(usual)} before"
    mine_now = kept(context.table("members"), equal(context.table("members"), "group_id", group))
    members = without_old_copies(context, mine_now).to_pylist()
    clients = list(dict.fromkeys(each["client_id"] or each["member_id"] for each in members))
    owners = list(dict.fromkeys(each["client_id"] for each in mine if each.get("client_id"))) or clients
    still = {(each["topic"], each["partition"]) for each in places}
    moving = [
        each
        for place, each in lags.items()
        if place not in still and each.get("client_id") in owners and (each["commit_timestamp_ms"] or 0) > since
    ]
    where = places_shown(still)
    # Whoever reads other partitions does not hang as a whole.
    left_out = bool(moving) and {each["client_id"] for each in moving} >= set(owners)
    skips = Verdict(
        f"The application of {listed(owners)} leaves out {where}: it has paused it and does not resume it, or the "
        "thread that processes its records hangs or tries one again and again.",
        evidence_for=tuple(
            Evidence(
                f"{shown(each['client_id'])} has committed {each['topic']}-{each['partition']} since, at "
                f"{moment(each['commit_timestamp_ms'])}",
                OFFSETS,
                each["log_partition"],
                None,
                each["commit_timestamp_ms"],
            )
            for each in moving[:3]
        ),
        is_certain=left_out,
        refuted_by=None if moving else Evidence(f"no other partition of {listed(owners)} goes on"),
        steps=tuple(
            context.ask_kafka(
                f"Look at the record at offset {each['offset']} of {each['topic']}-{each['partition']}, where it stays",
                "kafka-console-consumer",
                *option("--topic", each["topic"]),
                "--partition",
                str(each["partition"]),
                "--offset",
                str(each["offset"]),
                "--max-messages",
                "1",
            )
            for each in mine[:1]
            if moving and each.get("offset") is not None
        ),
    )
    verdict = Verdict(
        f"The application of {listed(owners)} hangs, or fails on the records it has read without leaving: it is still "
        "a member, so its heartbeats go on.",
        refuted_by=Evidence(f"{listed(owners)} commits other partitions meanwhile") if left_out else None,
        evidence_for=(
            Evidence(f"nothing was committed after {moment(last)}", OFFSETS, places[0]["log_partition"], None, last),
            Evidence(
                f"a stop is longer than {length(limit)} for this group: "
                + (
                    f"{_TIMES} times what {'95 % of' if context.is_stored else 'all'} {gaps.count} intervals between "
                    f"its commits of new offsets took at most (half of them: {length(gaps.median_ms)}), and at least "
                    f"{length(context.limit('report.group_settles_within'))}"
                    if gaps is not None
                    else "the threshold, because the log has too few of its commits to know what is usual"
                )
            ),
        ),
    )
    progress = context.table("progress")
    rest = kept(progress, equal(progress, "group_id", group), equal(progress, "state", "ok")).num_rows
    others = f" {counted(rest, 'other partition')} {'goes' if rest == 1 else 'go'} on." if rest else ""
    what = f"commits nothing of {where}" if rest else "is a member but commits nothing"
    topics = tuple(sorted({each["topic"] for each in places}))
    numbers = tuple(sorted({each["partition"] for each in places}))
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH,
        title="a group no longer reads some partitions" if rest else RULE.title,
        problem=(
            f"The group {shown(group)} has {counted(len(members), 'member')} ({listed(clients)}) and makes no "
            f"progress in {where}: records wait for "
            f"{length(wait)}{before}. The last commit was at {moment(last)}.{others}"
        ),
        impact=f"{counted(waiting, 'record')} wait, and more come.",
        consequence="work_stopped",
        group_ids=(group,),
        topics=topics,
        partitions=numbers if len(topics) == 1 else (),
        who=tuple(
            Actor(what, group, each["member_id"], each["client_id"], each["client_host"])
            for each in members
            if (each["client_id"] or each["member_id"]) in owners
        )[:5],
        since_timestamp_ms=since,
        is_going_on=True,
        scale={"records_waiting": waiting, "partitions": len(places)},
        evidence=verdict.evidence_for[:1],
        evidence_count=len(places),
        rows=(Rows("progress", of_group(group)), Rows("lag", of_group(group))),
        next=(
            NextStep(
                f"Take a thread dump of {listed(owners)} (jstack) and look into its log, then restart it"
                + (": it reads the partition again then, unless it fails on a record" if left_out else "")
            ),
            context.see("List which partitions do not move, and when they stopped", Rows("progress", of_group(group))),
            context.describe_members(group),
        ),
        measured={"wait_ms": wait, "limit_ms": limit} | ({} if usual is None else {"usual_ms": usual}),
        thresholds=context.limits_of(f"{KIND}.after"),
    )
    return Incident(finding, waiting, {"application_hangs": verdict, "partition_left_out": skips})


RULE = incident_rule(
    kind=KIND,
    title="a group has members but reads nothing",
    about="""\
Groups with members whose partitions are `stopped` in `progress`: nothing is committed, and records wait for too long.
Too long is twice what 95 % of the intervals between the group's commits of new offsets took at most (for running
brokers, twice the longest), and at least `report.group_settles_within`; if the log has fewer than ten such intervals,
`after`. Running brokers are asked for the times of unread records of suspected groups.""",
    tables=("progress", "lag", "members", "groups"),
    levels={Level.HIGH: "always"},
    find=_find,
    listing=Rows("progress", ("state=stopped",)),
    causes=(
        PossibleCause(
            "application_hangs",
            "the application hangs",
            "for: it is a member but commits nothing; refuted if it commits its other partitions",
        ),
        PossibleCause(
            "partition_left_out",
            "it has paused a partition, or fails in it alone",
            "certain if it commits its other partitions; refuted if none of them goes on",
        ),
    ),
    thresholds=(
        Threshold(
            "after",
            "duration",
            "30s",
            "how long records have waited, for groups whose own history is too short",
            "shorter stops happen in any deployment",
        ),
    ),
)

RULES = (RULE,)
