"""Members of one group whose client ids name different environments, such as production and staging."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.client_names import together, words_of
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    MemberLife,
    Place,
    commit_spans,
    first_joined,
    member_lives,
    names_of,
    places_of,
)
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    RuleContext,
    counted,
    listed,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.reset_steps import reset_from_file
from kafka_records_tables.topics import OFFSETS

KIND: Final = "mixed_environments"
_SAME_NAMES: Final = (
    "prod production prd live",
    "staging stage stg",
    "test testing tst",
    "qa",
    "uat",
    "preprod preproduction",
    "dev devel development",
    "local",
    "sandbox",
    "demo",
    "int integration",
)
_ENVIRONMENTS: Final = {word: words.split()[0] for words in _SAME_NAMES for word in words.split()}
_TOKEN: Final = re.compile(r"[a-z]+")
_ANY: Final = f'"client_id": "([^"]*[^a-z"])?(pre[^a-z])?({"|".join(_ENVIRONMENTS)})[^a-z]'


Taken = dict[Place, tuple[int, int]]
"""Partitions with the offset at which a member took over, and its last commit."""


def environment_of(client_id: str | None) -> str | None:
    """The environment that a client id names as a whole word; None if it names none or several."""
    words = _TOKEN.findall(re.sub(r"\bpre[-_.]prod", "preprod", (client_id or "").lower()))
    found = {_ENVIRONMENTS[each] for each in words if each in _ENVIRONMENTS}
    return found.pop() if len(found) == 1 else None


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("timeline")
    joins = kept(rows, equal(rows, "event", "member_joined"))
    joins = kept(joins, pc.match_substring_regex(joins["detail"], _ANY, ignore_case=True))
    names = sorted(joins["group_id"].unique().to_pylist())[:MOST_GROUPS]
    found: list[Incident] = []
    for group, lives in member_lives(context, names).items() if names else ():
        of_each: dict[str, list[MemberLife]] = {}
        for life in lives:
            environment = environment_of(life.client_id)
            if environment is not None and life.places:
                of_each.setdefault(environment, []).append(life)
        for other in list(of_each)[1:]:
            # Start with the environment of the member that joined first.
            first = next(iter(of_each))
            incident = _incident(context, group, first, of_each[first], other, of_each[other])
            found += [incident] if incident is not None else []
    return found


def _incident(
    context: RuleContext, group: str, first: str, own: list[MemberLife], other: str, joined: list[MemberLife]
) -> Incident | None:
    spans = together(own, joined, context.at_ms)
    if sum(end - start for start, end in spans) < context.limit(f"{KIND}.together"):
        return None
    since, until = spans[0][0], spans[-1][1]
    # In a rollout that renames clients, the earlier members leave.
    stayed = [each for each in own if each.was_there(since)]
    stay = all(each.left_at is None or (each.left_ms or until) >= until for each in stayed)
    alike = any(words_of(one.client_id) & words_of(each.client_id) for one in own for each in joined)
    goes_on = until >= context.at_ms
    level = Level.MODERATE if stay and alike and goes_on else Level.NOTE
    taken = _taken(context, group, joined)
    missed = sum(end - start for start, end in taken.values())
    whose, theirs = listed(names_of(own)), listed(names_of(joined))
    come = first_joined(joined)
    proof = Evidence(f"{come.name} joins", OFFSETS, come.log_partition, come.joined_at, come.joined_ms)
    where = places_shown(taken) if taken else "partitions"
    finding = ReportFinding(
        kind=KIND,
        level=level,
        title=RULE.title,
        problem=(
            f"{theirs} ({other}) joined {shown(group)}, the group of {whose} ({first}), and took {where}. It committed "
            f"{counted(missed, 'record')} there{'' if goes_on else f', until {moment(until)}'}, which the members of "
            f"{first} did not get."
        ),
        impact="The lag does not show this: these records are committed, but were processed in the other environment.",
        group_ids=(group,),
        topics=tuple(sorted({topic for topic, _ in taken})),
        partitions=tuple(sorted(n for _, n in taken)) if len({topic for topic, _ in taken}) == 1 else (),
        who=tuple(Actor(f"joined as {other}", group, each.member_id, each.client_id, each.host) for each in joined[:4]),
        since_timestamp_ms=come.joined_ms,
        is_going_on=goes_on,
        scale={"records_of_other_environment": missed, "partitions": len(taken)},
        evidence=(proof,),
        evidence_count=1,
        rows=(Rows("timeline", of_group(group)), Rows("members", of_group(group))),
        next=(
            NextStep(
                f"Find out whose process {theirs} is (client id, host {come.host or 'unknown'}), stop it, and give it "
                "a group id or a cluster of its own"
            ),
            *_again(context, group, first, taken),
            context.describe_members(group),
        ),
        measured={"records": missed, "partitions": len(taken)},
        thresholds=context.limits_of(f"{KIND}.together"),
    )
    named = Evidence(f"client ids name {first} and {other}")
    verdicts = {
        "other_environment": Verdict(
            f"A process of {other} uses the bootstrap servers and the group id of {first}.",
            evidence_for=(named, *((Evidence(f"each member of {first} that was there stayed"),) if stay else ())),
        ),
        "planned_canary": Verdict(
            f"{theirs} reads a part of the records on purpose (a canary or a blue-green deployment), with a client id "
            "that names another environment.",
            evidence_against=(named,),
        ),
    }
    return Incident(finding, missed, verdicts)


def _again(context: RuleContext, group: str, environment: str, taken: Taken) -> tuple[NextStep, ...]:
    """The step of rereading what the other environment took."""
    if not taken:
        return ()
    step = reset_from_file(
        context,
        group,
        f"Then have {environment} read these records: stop the group, and",
        [(place, start) for place, (start, _) in sorted(taken.items())],
    )
    return (step,)


def _taken(context: RuleContext, group: str, lives: Sequence[MemberLife]) -> Taken:
    """The partitions of members, with the offset at which the first member took over, and their last commit. A
    partition is theirs once the rebalance is complete, because until then others may commit it."""
    rows = context.table("timeline")
    rows = kept(
        rows,
        equal(rows, "group_id", group),
        equal(rows, "event", "assignment_changed", "rebalance_completed", "member_left"),
    )
    ids, waits, spans = {each.member_id for each in lives}, set[Place](), dict[Place, list[list[int]]]()
    for row in rows.to_pylist():
        at_ms = row["at_timestamp_ms"] or 0
        if row["event"] == "rebalance_completed" and row["group_kind"] == "consumer":
            for place in waits:
                spans.setdefault(place, []).append([at_ms, context.at_ms + 1])
            waits = set()
        detail = json.loads(row["detail"]) if row["detail"] else {}
        gained, lost = places_of(detail.get("gained", {})), set(places_of(detail.get("lost", {})))
        if row["member_id"] in ids:
            for place in spans if row["event"] == "member_left" else lost & spans.keys():
                spans[place][-1][1] = min(spans[place][-1][1], at_ms)
            waits -= lost
            if row["group_kind"] == "consumer":
                waits |= set(gained)
            else:
                for place in gained:
                    spans.setdefault(place, []).append([at_ms, context.at_ms + 1])
    found: Taken = {}
    for (_, topic, number), commits in commit_spans(context, (group,)).items():
        for start, end in spans.get((topic, number), ()):
            before = [each.offset for each in commits if (each.from_ms or 0) < start]
            theirs = [each.offset for each in commits if start <= (each.from_ms or 0) <= end]
            if theirs:
                first = found[topic, number][0] if (topic, number) in found else (before or theirs)[-1 if before else 0]
                found[topic, number] = first, max(theirs)
    return found


RULE = incident_rule(
    kind=KIND,
    title="members of different environments are in one group",
    about="""\
Members that were in one group for `together`, and whose client ids name different environments, such as prod, staging,
test or dev. Client ids with words such as canary, blue or green name none.""",
    tables=("timeline", "members"),
    levels={
        Level.MODERATE: "it goes on, the client ids have another word in common, and the members before all stayed",
        Level.NOTE: "otherwise",
    },
    find=_find,
    listing=Rows("members"),
    causes=(
        PossibleCause(
            "other_environment",
            "a process of another environment was configured with the servers and the group id of this one",
            "for: all members before it stayed",
        ),
        PossibleCause("planned_canary", "a planned canary or blue-green deployment", "against: the same"),
    ),
    thresholds=(
        Threshold("together", "duration", "30s", "how long both must have been there", "a rebalance takes less"),
    ),
)

RULES = (RULE,)
