"""A member that does not give up partitions while others wait for them."""

from __future__ import annotations

from typing import Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.known_logs import without_end
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Threshold, Verdict
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

KIND: Final = "partitions_not_given_up"


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("assignments")
    rows = kept(rows, equal(rows, "role", "pending_revocation"))
    held: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        held.setdefault((row["group_id"], row["member_id"]), []).append(row)
    found = (_incident(context, *key, some) for key, some in held.items())
    return [each for each in found if each is not None]


def _incident(context: RuleContext, group: str, member_id: str, held: list[dict[str, Any]]) -> Incident | None:
    places = {(each["topic"], each["partition"]) for each in held}
    asked_ms = min((each["log_timestamp_ms"] for each in held if each["log_timestamp_ms"] is not None), default=None)
    members = {each["member_id"]: each for each in context.rows_of_group("members", group).to_pylist()}
    holder = members.get(member_id)
    own = context.rows_of_group("assignments", group)
    owned = {
        (each["topic"], each["partition"])
        for each in own.to_pylist()
        if each["member_id"] == member_id and each["role"] in ("current", "pending_revocation")
    }
    waits = {
        each["member_id"]
        for each in own.to_pylist()
        if each["role"] == "target"
        and (each["topic"], each["partition"]) in places
        and each["member_id"] != member_id
        and each["member_id"] in members
    }
    commits, lags = (
        [each for each in context.rows_of_group(name, group).to_pylist() if (each["topic"], each["partition"]) in owned]
        for name in ("current_offsets", "lag")
    )
    moved = max((each["commit_timestamp_ms"] or 0 for each in commits), default=0)
    if holder is None or not waits or asked_ms is None or context.at_ms - asked_ms < context.limit(f"{KIND}.after"):
        return None
    if moved > asked_ms:
        # The member is still working, and will give up the partitions once it has processed what it fetched.
        return None
    waiting = sum(each["lag"] or 0 for each in lags)
    is_known = not owned.intersection(without_end(context, [group]))
    least = "" if is_known else "At least "
    records = f"{least}{counted(waiting, 'record')}" if is_known or waiting else "An unknown number of records"
    name, others = holder["client_id"] or member_id, [members[each] for each in sorted(waits)]
    since = min((each["epoch_timestamp_ms"] or asked_ms for each in others), default=asked_ms)
    since = min(since, asked_ms)
    timeout = holder["rebalance_timeout_ms"]
    fenced = ""
    if timeout is not None and timeout >= 0:
        ends = asked_ms + timeout
        fenced = (
            f" The coordinator removes it when its rebalance timeout of {length(timeout)} ends, at {moment(ends)}."
            if ends > context.at_ms
            else f" Its rebalance timeout of {length(timeout)} ended at {moment(ends)}, and no record removes it."
        )
    silent = f"has committed nothing since {moment(moved)}" if moved else "has committed nothing"
    verdict = Verdict(
        f"The application of {shown(name)} hangs: it {silent}, and its heartbeats go on, because it is still a member.",
        evidence_for=(
            Evidence(
                f"{name} has to give up {counted(len(places), 'partition')}, and has not",
                OFFSETS,
                held[0]["log_partition"],
                held[0]["log_offset"],
                asked_ms,
            ),
        ),
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH,
        title=RULE.title,
        problem=(
            f"In the group {shown(group)} the member {shown(name)} (member id {member_id}, host"
            f" {holder['client_host']}) does"
            f" not give up {places_shown(sorted(places))}. {counted(len(waits), 'member')}"
            f" ({listed(sorted(each['client_id'] or each['member_id'] for each in others))}) have waited for it for "
            f"{length(context.at_ms - asked_ms)} by now, and it {silent}.{fenced}"
        ),
        impact=(f"{records} of {counted(len(owned), 'partition')} wait: no other member reads its partitions."),
        consequence="work_stopped",
        group_ids=(group,),
        topics=tuple(sorted({topic for topic, _ in places})),
        partitions=(
            tuple(sorted({partition for _, partition in places})) if len({each for each, _ in places}) == 1 else ()
        ),
        who=(
            Actor("does not give up its partitions", group, member_id, holder["client_id"], holder["client_host"]),
            *(
                Actor("waits for them", group, each["member_id"], each["client_id"], each["client_host"])
                for each in others
            ),
        ),
        since_timestamp_ms=since,
        until_timestamp_ms=None,
        is_going_on=True,
        scale={"records_waiting": waiting, "partitions": len(owned), "members_waiting": len(waits)},
        evidence=verdict.evidence_for,
        evidence_count=len(held),
        rows=(Rows("assignments", of_group(group)), Rows("members", of_group(group))),
        next=(
            NextStep(
                f"Take a stack dump of {shown(name)} on {holder['client_host']} (jstack for Java), to find out where "
                "it hangs, then restart it: the others get its partitions as soon as it has left"
            ),
            context.see("List what each member has, must give up and will get", Rows("assignments", of_group(group))),
            context.describe_members(group),
        ),
        measured={"lasts_ms": context.at_ms - asked_ms, "waiting": waiting},
        thresholds=context.limits_of(f"{KIND}.after"),
    )
    return Incident(finding, waiting, {"application_hangs": verdict})


RULE = incident_rule(
    kind=KIND,
    title="a member does not give up partitions that others wait for",
    about="""\
Members of consumer groups (KIP-848) that should have given up partitions `after` ago, and have committed nothing since:
the application hangs while heartbeats continue. Classic groups do not record this.""",
    tables=("assignments", "members", "current_offsets", "lag"),
    levels={Level.HIGH: "always"},
    find=_find,
    listing=Rows("assignments", ("role=pending_revocation",)),
    causes=(
        PossibleCause("application_hangs", "the application hangs", "for: it commits nothing, and is still a member"),
    ),
    thresholds=(
        Threshold(
            "after",
            "duration",
            "20s",
            "how long a member has to give up partitions",
            "giving them up takes a poll and a heartbeat, which is sent every 5 s",
        ),
    ),
    folds=(Folds("members_unsettled"), Folds("too_slow"), Folds("endless_rebalances"), Folds("group_stands_still")),
)

RULES = (RULE,)
