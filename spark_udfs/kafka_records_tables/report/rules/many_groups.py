"""Groups that are created for each run of a program and never used again."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.event_runs import goes_on
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Threshold, Verdict
from kafka_records_tables.report.rule_context import HOUR_MS, RuleContext, counted, length, listed, moment, shown
from kafka_records_tables.topics import OFFSETS

KIND: Final = "many_groups"
_MOST_NAMED: Final = 100
_ENDS: Final = re.compile(
    r"[-_.:]?[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}$"
    r"|[-_.:](?=[^-_.:]*[0-9])[0-9A-Za-z]+$|[-_.:][0-9a-fA-F]{6,}$|[-_.:][A-Za-z]{5,12}$|[0-9]+$"
)
"""The part in which the names of groups created for each run differ: a UUID, or a last component that may be random."""


def family_of(name: str) -> str:
    """The name without its last component, if that may be random."""
    while len(shorter := _ENDS.sub("", name)) < len(name) and shorter:
        name = shorter
        if not re.search(r"[-_.:][0-9]+$", name):
            break
    return name


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("groups")
    least = context.limit(f"{KIND}.groups")
    if rows.num_rows < least:
        return []
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows.select(["group_id", "epoch", "member_count", "log_partition", "log_offset"]).to_pylist():
        families.setdefault(family_of(row["group_id"]), []).append(row)
    found = []
    for name, groups in families.items():
        # If a second run used the group, its epoch is higher, because joining and leaving raise it by two.
        once = [each for each in groups if (each["epoch"] or 0) <= context.limit(f"{KIND}.epochs")]
        empty = [each for each in once if not each["member_count"]]
        if len(once) >= least and 10 * len(once) >= 9 * len(groups) and 10 * len(empty) >= 9 * len(once):
            incident = _incident(context, name, once)
            if incident is not None:
                found.append(incident)
    return found


def _incident(context: RuleContext, family: str, groups: list[dict[str, Any]]) -> Incident | None:
    names = [each["group_id"] for each in groups]
    events = context.table("timeline")
    events = kept(events, equal(events, "group_id", *names)).to_pylist()
    made: dict[str, dict[str, Any]] = {}
    clients: dict[str, str] = {}
    most: dict[str, int] = {}
    for each in events:
        group, at = each["group_id"], each["at_timestamp_ms"]
        if at is not None and (group not in made or at < made[group]["at_timestamp_ms"]):
            made[group] = each
        if each["event"] == "member_joined":
            most[group] = most.get(group, 0) + 1
            clients.setdefault(json.loads(each["detail"] or "{}").get("client_id", ""), group)
    first = sorted(made.values(), key=lambda each: each["at_timestamp_ms"])
    if 10 * sum(number <= 1 for number in most.values()) < 9 * len(most) or len(first) < len(groups) / 2:
        return None
    times = [each["at_timestamp_ms"] for each in first]
    lasts = max(times[-1] - times[0], 1)
    # Groups that were all created together belong to a deployment.
    early = sum(at <= times[0] + lasts / 2 for at in times)
    if lasts < context.limit(f"{KIND}.spread") or not len(times) / 10 <= early <= 9 * len(times) / 10:
        return None
    an_hour = round(len(times) * HOUR_MS / lasts)
    is_going_on = goes_on(times, context.at_ms)
    offsets = kept(context.table("current_offsets"), equal(context.table("current_offsets"), "group_id", *names))
    topics = tuple(sorted(offsets["topic"].unique().to_pylist()))
    who = sorted(filter(None, clients))
    level = Level.NOTE if an_hour < context.limit(f"{KIND}.an_hour") else Level.MODERATE if is_going_on else Level.LOW
    verdict = Verdict(
        f"Each run of a script or job uses a new group id: {shown(family)} followed by something random or a counter.",
        evidence_for=(
            Evidence(
                f"{len(groups)} groups with one prefix, each with at most one member that joined once, the last one "
                f"created at {moment(times[-1])}",
                OFFSETS,
                first[-1]["log_partition"],
                first[-1]["log_offset"],
                times[-1],
            ),
        ),
    )
    deletion = (word for name in names[:3] for word in option("--group", name))
    finding = ReportFinding(
        kind=KIND,
        level=level,
        title=RULE.title,
        problem=(
            f"{counted(len(groups), 'group')} have names that begin with {shown(family)}. Each had at most one "
            f"member, was used once, and has none now: about {an_hour} new ones an hour"
            f"{f', which read {listed(topics)}' if topics else ''}, in {length(lasts)}."
        ),
        impact=(
            "Coordinators keep each of them, and its offsets, for offsets.retention.minutes after its last member "
            "left, and load all of them after a restart. Each new group begins as auto.offset.reset says."
        ),
        consequence="waste",
        group_ids=tuple(names[:_MOST_NAMED]),
        topics=topics,
        who=tuple(Actor("joined such a group", clients[name], None, name) for name in who[:3]),
        since_timestamp_ms=times[0],
        is_going_on=is_going_on,
        scale={"groups": len(groups), "an_hour": an_hour},
        evidence=verdict.evidence_for,
        evidence_count=len(groups),
        rows=(Rows("groups", ("member_count=0",)),),
        next=(
            NextStep(
                "Change the script to use one group.id for all runs, or no group: a consumer that assigns itself "
                "partitions (assign)"
            ),
            context.ask_kafka(
                f"Then delete the remaining groups, here the first {min(len(names), 3)} of {len(names)}",
                "kafka-consumer-groups",
                "--delete",
                *deletion,
            ),
            context.see("List all groups without members", Rows("groups", ("member_count=0",))),
        ),
        measured={"groups": len(groups), "lasts_ms": lasts},
        thresholds=context.limits_of(*(f"{KIND}.{each.name}" for each in RULE.thresholds)),
    )
    return Incident(finding, len(groups), {"new_group_each_run": verdict})


RULE = incident_rule(
    kind=KIND,
    title="each run of a program creates a new group",
    about="""\
`groups` or more groups whose names differ only in a random end or a counter, created one after another over `spread`.
Nine in ten have an epoch of at most `epochs`, had at most one member and have none now.""",
    tables=("groups", "timeline", "current_offsets"),
    levels={
        Level.MODERATE: "it goes on",
        Level.LOW: "the last one was created a while ago",
        Level.NOTE: "there are fewer than `an_hour` new ones an hour",
    },
    find=_find,
    listing=Rows("groups", ("member_count=0",)),
    causes=(
        PossibleCause(
            "new_group_each_run", "each run uses a new group id", "for: many groups of one prefix, each used once"
        ),
    ),
    thresholds=(
        Threshold("groups", "count", 25, "groups of one prefix", "an application rarely has as many"),
        Threshold("epochs", "count", 4, "the epoch of a group that was used once", "joining and leaving raise it"),
        Threshold(
            "spread",
            "duration",
            "20s",
            "time over which they were created",
            "a deployment creates all of its groups at once",
        ),
        Threshold(
            "an_hour",
            "count",
            5,
            "new groups an hour that are worth a look",
            "people who look at a topic create few",
        ),
    ),
    folds=(Folds("group_id_random"), Folds("offsets_unneeded"), Folds("offsets_expiring"), Folds("group_emptied")),
)

RULES = (RULE,)
