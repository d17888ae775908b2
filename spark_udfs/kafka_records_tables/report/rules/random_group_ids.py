"""Groups that an application creates on each start, because its group id has a random part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.beginnings import (
    Beginning,
    consequence_of,
    either_words,
    repeated_words,
    scale_of,
)
from kafka_records_tables.report.facts.event_runs import goes_on
from kafka_records_tables.report.facts.group_facts import MemberLife, first_joined, names_of
from kafka_records_tables.report.facts.random_names import RANDOM, pattern_of, stem_of
from kafka_records_tables.report.facts.successor_groups import Succession, successions
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    capital,
    counted,
    length,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.report.rules.reset_steps import reset_from_file
from kafka_records_tables.topics import OFFSETS

KIND: Final = "group_id_random"
_TOOLS: Final = ("console-consumer", "kafka-console", "kcat")
"""The prefixes of groups of tools for looking at records."""


def _find(context: RuleContext) -> list[Incident]:
    families: dict[str, list[Succession]] = {}
    for each in successions(context):
        pattern = pattern_of(each.new)
        if RANDOM in pattern and not pattern.startswith(_TOOLS):
            families.setdefault(pattern, []).append(each)
    found = []
    for pattern, of_family in families.items():
        groups = {name: None for each in of_family for name in (each.old, each.new) if pattern_of(name) == pattern}
        if len(groups) >= context.limit(f"{KIND}.groups"):
            found.append(_incident(context, pattern, tuple(groups), of_family))
    return found


def _incident(context: RuleContext, pattern: str, groups: tuple[str, ...], family: Sequence[Succession]) -> Incident:
    """The finding about groups that match one pattern, in order of creation."""
    lives = _lives(family)
    times = sorted(_started(lives[name]) for name in groups)
    fixed = family[0].old if family[0].old not in groups else None
    of_each = {each.new: [began.beginning for began in each.began] for each in family}
    begins = [began for each in of_each.values() for began in each]
    scale = scale_of(begins)
    is_going_on = goes_on(times, context.at_ms)
    away = sum(each.joined_ms - each.stopped_ms for each in family if each.old in groups)
    is_service = away <= context.limit(f"{KIND}.away") * max(times[-1] - times[0], 1)
    topics = tuple(sorted({topic for each in family for topic in each.topics}))
    every = (times[-1] - times[0]) / max(len(times) - 1, 1)
    clients = listed(names_of([life for name in groups for life in lives[name]]))
    last = family[-1]
    evidence = tuple(
        Evidence(
            f"{each.new} gets its first member, {length(each.joined_ms - each.stopped_ms)} after the last one of "
            f"{each.old} left",
            OFFSETS,
            first_joined(each.new_lives).log_partition,
            first_joined(each.new_lives).joined_at,
            each.joined_ms,
        )
        for each in family
    )
    before = (
        ""
        if fixed is None
        else f" Before them, {shown(fixed)} consumed the same {'topic' if len(topics) == 1 else 'topics'}, until "
        f"{moment(family[0].stopped_ms)}."
    )
    finding = ReportFinding(
        kind=KIND,
        level=_level(context, fixed is not None, is_service, is_going_on, times[-1]),
        title=RULE.title,
        problem=(
            f"{counted(len(groups), 'group')} with names like {shown(pattern)} consumed {listed(topics)} one after the "
            f"other since {moment(times[0])}, a new one about every {length(every)} ({clients}).{before} A new group "
            "has no offsets."
        ),
        impact=_impact(of_each, begins),
        consequence=consequence_of(scale),
        group_ids=(*((fixed,) if fixed is not None else ()), *groups),
        topics=topics,
        partitions=tuple(sorted({began.place[1] for began in last.began})) if len(topics) == 1 else (),
        who=tuple(
            Actor("joined such a group", name, life.member_id, life.client_id, life.host)
            for name in groups[-3:]
            for life in lives[name][:1]
        ),
        since_timestamp_ms=times[0],
        is_going_on=is_going_on,
        scale={**scale, "groups": len(groups)},
        evidence=evidence[:MOST_EVIDENCE],
        evidence_count=len(evidence),
        rows=(Rows("groups", ("member_count=0",)),),
        next=_steps(context, fixed, stem_of(pattern), groups, last),
        measured={"groups": len(groups), "every_ms": round(every)},
        thresholds=context.limits_of(*(f"{KIND}.{each.name}" for each in RULE.thresholds)),
    )
    return Incident(finding, len(groups), _verdicts(pattern, groups, fixed, is_service, evidence, every))


def _lives(family: Sequence[Succession]) -> Mapping[str, Sequence[MemberLife]]:
    of_old = {each.old: each.old_lives for each in family}
    return of_old | {each.new: each.new_lives for each in family}


def _started(lives: Sequence[MemberLife]) -> int:
    return first_joined(lives).joined_ms or 0


def _level(context: RuleContext, had_fixed: bool, is_service: bool, is_going_on: bool, last_ms: int) -> Level:
    if not had_fixed and not is_service:
        return Level.NOTE
    if last_ms < context.at_ms - context.limit(f"{KIND}.lately"):
        return Level.LOW
    return Level.HIGH if had_fixed and is_going_on else Level.MODERATE


def _impact(of_each: Mapping[str, Sequence[Beginning]], begins: Sequence[Beginning]) -> str:
    sure = [each for each in begins if not each.is_unsure]
    unsure = [each for each in begins if each.is_unsure]
    at_start = sum(any(each.again and not each.is_unsure for each in of_group) for of_group in of_each.values())
    parts = []
    if (again := repeated_words(sure)) is not None:
        parts.append(f"{counted(at_start, 'group')} of {len(of_each)} began at the start, and {again} were read again")
    if unsure:
        others = "Where the first commits are at the ends of the logs, " if parts else ""
        parts.append(f"{others}{either_words('a group', 'its', unsure)}")
    parts.append("coordinators keep each group and its offsets for offsets.retention.minutes")
    return ". ".join(map(capital, parts)) + "."


def _verdicts(
    pattern: str,
    groups: Sequence[str],
    fixed: str | None,
    is_service: bool,
    evidence: tuple[Evidence, ...],
    every_ms: float,
) -> dict[str, Verdict]:
    before = (
        () if fixed is None else (Evidence(f"{fixed} did the same before, and stopped when the first one started"),)
    )
    at_once = (Evidence(f"a new one starts as soon as the one before is gone, every {length(every_ms)}"),)
    return {
        "random_part": Verdict(
            f"The group id of the application has a part that changes at each start ({shown(pattern)}), so that each "
            "restart begins without offsets.",
            evidence_for=(
                Evidence(f"{counted(len(groups), 'group')} whose names differ only in it", *_place_of(evidence[-1])),
                *before,
                *(at_once if is_service else ()),
            ),
        ),
        "reads_all_on_purpose": Verdict(
            "Each start is meant to read the topic again, as for a cache, a report or a test, and does not need its "
            "group afterwards.",
            evidence_for=() if is_service else (Evidence("there are pauses between the groups, as between runs"),),
            evidence_against=before,
        ),
    }


def _place_of(evidence: Evidence) -> tuple[str | None, int | None, int | None, int | None]:
    return evidence.topic, evidence.partition, evidence.offset, evidence.timestamp_ms


def _steps(
    context: RuleContext, fixed: str | None, stem: str, groups: Sequence[str], last: Succession
) -> tuple[NextStep, ...]:
    own = f"its group id {shown(fixed)} again" if fixed is not None else f"a fixed group id, such as {shown(stem)}"
    ends = _ends(context, groups[-1])
    deletion = (word for each in groups[:3] for word in option("--group", each))
    return (
        NextStep(
            f"Give the application {own if fixed or stem else 'a fixed group id'}, without a part that changes at each "
            "start"
        ),
        reset_from_file(
            context,
            fixed or stem or groups[-1],
            f"Before it starts with that, have it begin where {shown(groups[-1])} ended:",
            ends,
        ),
        NextStep("Find out why the application restarts so often, if these are not planned restarts"),
        context.ask_kafka(
            f"Then delete the groups that are left, here the first {min(len(groups), 3)} of {len(groups)}",
            "kafka-consumer-groups",
            "--delete",
            *deletion,
        ),
        context.see("List what the last of them committed", Rows("history", of_group(last.new))),
    )


def _ends(context: RuleContext, group: str) -> list[tuple[tuple[str, int], int]]:
    """A group's offsets, by topic and partition."""
    rows = context.rows_of_group("current_offsets", group).to_pylist()
    return sorted(((row["topic"], row["partition"]), row["offset"]) for row in rows)


RULE = incident_rule(
    kind=KIND,
    title="each start of an application creates a new group",
    about="""\
`groups` or more groups whose names differ only in a random part (a UUID, a time, a long number). They have the same
topics and similar client ids, and each began at most 30 minutes after the one before was empty. Groups that exist at
the same time and console consumers are left out.""",
    tables=("groups", "timeline", "current_offsets"),
    levels={
        Level.HIGH: "it goes on, and a group with a fixed name did the same before",
        Level.MODERATE: "it is over, or no such group is known",
        Level.LOW: "the last one was created longer than `lately` ago",
        Level.NOTE: "no such group is known, and there were pauses, as between jobs",
    },
    find=_find,
    listing=Rows("groups"),
    causes=(
        PossibleCause(
            "random_part",
            "the group id has a part that changes at each start",
            "for: a group with a fixed name before",
        ),
        PossibleCause(
            "reads_all_on_purpose",
            "each start is meant to read the topic again",
            "for: pauses between the groups",
        ),
    ),
    questions=(
        Question(
            "random_part",
            "reads_all_on_purpose",
            "Should the application continue where it stopped when it is restarted?",
        ),
    ),
    thresholds=(
        Threshold("groups", "count", 3, "groups of one pattern", "two may be a coincidence"),
        Threshold(
            "away",
            "share",
            0.2,
            "the largest share of the time without members",
            "a service restarts at once, and jobs have pauses between them",
        ),
        Threshold("lately", "duration", "7d", "incidents within this time matter", "offsets are kept for as long"),
    ),
    folds=(Folds("group_id_changed"), Folds("offsets_unneeded"), Folds("offsets_expiring"), Folds("group_emptied")),
)

RULES = (RULE,)
