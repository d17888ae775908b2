"""Processes that share one group.instance.id, so each process that joins fences the other."""

from __future__ import annotations

import json
from bisect import bisect_left
from itertools import pairwise
from typing import Any, Final

from kafka_records_tables.report.case_columns import equal, grouped, kept, numbers
from kafka_records_tables.report.facts.event_runs import goes_on, last_run
from kafka_records_tables.report.facts.group_facts import commit_spans
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.topics import OFFSETS

KIND: Final = "instance_id_twice"


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("timeline")
    rows = kept(rows, equal(rows, "event", "member_replaced"))
    least = context.limit(f"{KIND}.times")
    counts = grouped(rows, ["group_id"], [("log_offset", "count")])
    groups = kept(counts, numbers(counts, "log_offset_count") >= least)["group_id"].to_pylist()
    replaced: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in kept(rows, equal(rows, "group_id", *groups)).to_pylist() if groups else ():
        instance = json.loads(row["detail"] or "{}").get("instance_id")
        if instance and row["at_timestamp_ms"] is not None:
            replaced.setdefault((row["group_id"], instance), []).append(row)
    found = []
    for (group, instance), events in replaced.items():
        events.sort(key=lambda each: (each["at_timestamp_ms"], each["log_offset"]))
        first = last_run([each["at_timestamp_ms"] for each in events], context.limit(f"{KIND}.pause"))
        if len(events) - first >= least:
            found.append(_incident(context, group, instance, events[first:]))
    return found


def _commits(context: RuleContext, group: str, first_ms: int) -> list[int]:
    """When the group committed, from a given time on."""
    spans = commit_spans(context, (group,)).values()
    return sorted({each.from_ms for every in spans for each in every if each.from_ms and each.from_ms >= first_ms})


def _incident(context: RuleContext, group: str, instance: str, events: list[dict[str, Any]]) -> Incident:
    times = [each["at_timestamp_ms"] for each in events]
    since, is_going_on = times[0], goes_on(times, context.at_ms)
    every = (times[-1] - since) / max(len(times) - 1, 1)
    commits = _commits(context, group, since)
    worked = sum(bisect_left(commits, before) < bisect_left(commits, after) for before, after in pairwise(times))
    shows = tuple(
        Evidence(
            f"{instance}: member {each['member_id']} in the place of"
            f" {json.loads(each['detail'])['former_member_id']}",
            OFFSETS,
            each["log_partition"],
            each["log_offset"],
            each["at_timestamp_ms"],
        )
        for each in events
    )
    two = Verdict(
        f"Two processes have the same group.instance.id {shown(instance)}: the one that joins takes the place of the "
        "other one, which is fenced (FencedInstanceIdException), is restarted, and takes it back.",
        evidence_for=(
            *shows[:2],
            *(
                (Evidence(f"in {worked} of {len(times) - 1} turns the one that joined last committed"),)
                if worked
                else ()
            ),
        ),
    )
    alone = Verdict(
        f"One process with the group.instance.id {shown(instance)} fails and is restarted again and again.",
        evidence_for=() if worked else (Evidence("no commit between two joins"),),
        evidence_against=(Evidence("offsets move on in most turns"),) if 2 * worked > len(times) else (),
    )
    members = context.rows_of_group("members", group).to_pylist()
    own = next((each for each in members if each["member_id"] == events[-1]["member_id"]), None)
    who = Actor(
        f"was the first with the group.instance.id {instance}",
        group,
        None,
        None if own is None else own["client_id"],
        None if own is None else own["client_host"],
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if is_going_on else Level.LOW,
        title=RULE.title,
        problem=(
            f"In the group {shown(group)} the member with group.instance.id {shown(instance)} was replaced "
            f"{counted(len(events), 'time')} by another one with the same id since {moment(since)}, every "
            f"{length(every)}."
        ),
        impact="A member that is replaced is fenced and stops; records that it had read but not committed "
        "are read again.",
        consequence="work_repeated",
        group_ids=(group,),
        who=(who,),
        since_timestamp_ms=since,
        is_going_on=is_going_on,
        scale={"fenced": len(events)},
        evidence=shows[:MOST_EVIDENCE],
        evidence_count=len(events),
        rows=(Rows("timeline", of_group(group, "event=member_replaced")),),
        next=(
            NextStep(
                f"Look for {shown(instance)} in the configuration of all processes of the group, and give each process"
                " a group.instance.id of its own (the name of its pod or host)"
            ),
            context.describe_members(group),
            context.see("See each replacement", Rows("timeline", of_group(group, "event=member_replaced"))),
        ),
        measured={"replaced": len(events), "every_ms": round(every)},
        thresholds=context.limits_of(f"{KIND}.times", f"{KIND}.pause"),
    )
    return Incident(finding, len(events), {"one_id_twice": two, "restarts": alone})


RULE = incident_rule(
    kind=KIND,
    title="members with one group.instance.id take each other's place",
    about="""\
Static members that another one with the same group.instance.id replaced `times` times or more, without a `pause`. A
group of the consumer protocol rejects the second process, which leaves no record.""",
    tables=("timeline", "members"),
    levels={Level.HIGH: "it goes on", Level.LOW: "it has ended"},
    find=_find,
    listing=Rows("timeline", ("event=member_replaced",)),
    causes=(
        PossibleCause(
            "one_id_twice",
            "two processes have one group.instance.id",
            "for: commits between the replacements",
        ),
        PossibleCause("restarts", "one process is restarted again and again", "against: the same"),
    ),
    questions=(
        Question(
            "one_id_twice",
            "restarts",
            "Do two processes run with this group.instance.id? Count them where they run, also on one host: the brokers"
            " show client id and host only of the first one, even when another has taken its place",
        ),
    ),
    thresholds=(
        Threshold("times", "count", 5, "replacements in a row", "two rolling restarts are not a conflict"),
        Threshold(
            "pause",
            "duration",
            "2m",
            "time without a replacement after which a series ends",
            "supervisors wait up to this long before a restart",
        ),
    ),
    folds=(
        Folds("endless_rebalances"),
        Folds("too_slow"),
        Folds("members_unsettled"),
        Folds("two_committers"),
        Folds("offsets_rewound"),
    ),
)

RULES = (RULE,)
