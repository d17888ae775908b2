"""Groups that stopped and were continued by a new group without their offsets: an application changed its group id."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.command_lines import instant, option
from kafka_records_tables.report.facts.beginnings import (
    consequence_of,
    either_words,
    repeated_words,
    scale_of,
    skipped_words,
)
from kafka_records_tables.report.facts.group_facts import first_joined, log_ends, names_of
from kafka_records_tables.report.facts.random_names import RANDOM, pattern_of
from kafka_records_tables.report.facts.successor_groups import Succession, successions
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    RuleContext,
    capital,
    counted,
    length,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.report.rules.reset_steps import MOST_LINES, reset_from_file
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.beginnings import Beginning

KIND: Final = "group_id_changed"
_NUMBER: Final = re.compile(r"\d+")


def _find(context: RuleContext) -> list[Incident]:
    every = [each for each in successions(context) if not _is_made_up(each)]
    # Jobs that each have their own group come and go one after the other.
    old, new = {each.old for each in every}, {each.new for each in every}
    found = [_incident(context, each, each.old in new or each.new in old) for each in every]
    return [each for each in found if each is not None]


def _is_made_up(succession: Succession) -> bool:
    """Whether both names look like those of groups that are used once (`group_id_random`)."""
    pattern = pattern_of(succession.new)
    return RANDOM in pattern and pattern == pattern_of(succession.old)


def _incident(context: RuleContext, succession: Succession, is_one_of_several: bool) -> Incident | None:
    begins = [each.beginning for each in succession.began]
    if not any(each.is_unsure or each.again or each.skipped for each in begins):
        return None
    old, new = succession.old, succession.new
    whose, theirs = listed(names_of(succession.old_lives)), listed(names_of(succession.new_lives))
    group = "share group" if succession.is_share else "group"
    topics, scale = succession.topics, scale_of(begins)
    before = max(each.before.from_ms or 0 for each in succession.began)
    first = first_joined(succession.new_lives)
    last = succession.began[0].before
    evidence = (
        Evidence(
            f"the first member of {new} joins, {length(succession.joined_ms - before)} after the last commit of {old}",
            OFFSETS,
            first.log_partition,
            first.joined_at,
            first.joined_ms,
        ),
        Evidence(
            f"{old} commits {last.offset} of {_place(succession.began[0].place)}, and nothing after it",
            OFFSETS,
            last.log_partition,
            last.log_offset,
            last.from_ms,
        ),
    )
    finding = ReportFinding(
        kind=KIND,
        level=_level(context, succession, begins, is_one_of_several),
        title=RULE.title,
        problem=(
            f"The last member of {shown(old)} ({whose}) left at {moment(succession.stopped_ms)}, and none came back. "
            f"{length(succession.joined_ms - succession.stopped_ms)} later, {theirs} joined the new {group} "
            f"{shown(new)},"
            f" for the same {'topic' if len(topics) == 1 else 'topics'} ({listed(topics)}, "
            f"{counted(len(begins), 'partition')}). "
            + (
                "A share group does not take over offsets: it begins where its share.auto.offset.reset says, latest by "
                "default."
                if succession.is_share
                else "The new group had no offsets."
            )
        ),
        impact=_impact(old, new, begins),
        consequence=consequence_of(scale),
        group_ids=(old, new),
        topics=topics,
        partitions=tuple(sorted({each.place[1] for each in succession.began})) if len(topics) == 1 else (),
        who=tuple(
            Actor("joined the new group", new, each.member_id, each.client_id, each.host)
            for each in succession.new_lives[:4]
        ),
        since_timestamp_ms=succession.joined_ms,
        is_going_on=False,
        scale={**scale, "partitions": len(begins)},
        evidence=evidence,
        evidence_count=len(evidence),
        rows=(Rows("current_offsets", of_group(old)), _rows_of(succession)),
        next=_steps(context, succession),
        measured={"gap_ms": succession.joined_ms - succession.stopped_ms, "partitions": len(begins)},
        thresholds=context.limits_of(f"{KIND}.lately"),
    )
    return Incident(finding, sum(each.skipped + each.again for each in begins), _verdicts(succession, evidence))


def _level(context: RuleContext, succession: Succession, begins: list[Beginning], is_one_of_several: bool) -> Level:
    has_left = all(each.left_at is not None for each in succession.new_lives)
    is_next = is_one_of_several or has_left or _NUMBER.sub("", succession.old) == _NUMBER.sub("", succession.new)
    if succession.joined_ms < context.at_ms - context.limit(f"{KIND}.lately"):
        return Level.NOTE if is_next else Level.LOW
    if any(each.skipped for each in begins):
        return Level.MODERATE if is_next else Level.HIGH
    if is_next:
        return Level.NOTE
    return Level.MODERATE if any(each.again and not each.is_unsure for each in begins) else Level.LOW


def _impact(old: str, new: str, begins: list[Beginning]) -> str:
    sure = [each for each in begins if not each.is_unsure]
    unsure = [each for each in begins if each.is_unsure]
    parts = []
    if any(each.skipped for each in sure):
        parts.append(f"{skipped_words(sure)} between the last commits of {shown(old)} and its start were never read")
    repeated = [each for each in sure if not each.skipped]
    if (again := repeated_words(repeated)) is not None:
        parts.append(f"It began at the start of {counted(len(repeated), 'log')}, and {again} were read again")
    if unsure:
        words = either_words(shown(new), "its", unsure)
        parts.append(f"{'In the other partitions, ' if parts else ''}{words}")
    text = ". ".join(map(capital, parts))
    rest = "only these records of it are unread" if any(each.skipped for each in sure) else "nobody has to clear it"
    return f"{text}. The lag of {shown(old)} grows, but {rest}."


def _verdicts(succession: Succession, evidence: tuple[Evidence, ...]) -> dict[str, Verdict]:
    old, new = succession.old, succession.new
    common = ", ".join(succession.words)
    hosts = {each.host for each in succession.old_lives} & {each.host for each in succession.new_lives} - {None}
    alike = Evidence(f"client ids or names of both groups have {common} in common")
    same_host = (Evidence(f"both had members on {listed(sorted(filter(None, hosts)))}"),) if hosts else ()
    return {
        "id_of_release": Verdict(
            _moved_words(succession),
            evidence_for=(alike, evidence[0], *same_host),
        ),
        "other_application": Verdict(
            f"{shown(old)} was retired, and {shown(new)} is another application for the same topics, which needs no "
            "earlier records.",
            evidence_against=(alike,),
        ),
    }


def _moved_words(succession: Succession) -> str:
    old, new = shown(succession.old), shown(succession.new)
    if succession.is_share:
        return f"The application of {old} moved to the share group {new}, and nobody set start offsets for it."
    return (
        f"A release or another configuration gave the application of {old} the group id {new}, and its offsets were "
        "not copied."
    )


def _steps(context: RuleContext, succession: Succession) -> tuple[NextStep, ...]:
    old, new = succession.old, succession.new
    gaps = [each for each in succession.began if each.beginning.skipped]
    spans = "; ".join(
        f"{_place(each.place)} from {each.before.offset} to {each.before.offset + each.beginning.skipped - 1}"
        for each in gaps[:MOST_LINES]
    )
    reset = "" if succession.is_share else f"Look up auto.offset.reset of {shown(new)}. If it is latest, have "
    steps = [NextStep(f"{reset or 'Have '}these records processed, for example by a separate consumer: {spans}")]
    return (
        *(steps if gaps else ()),
        _back(context, succession),
        context.ask_kafka(
            f"If {shown(old)} is not used any more, delete it after that, so that nobody restarts it because of its "
            "lag",
            "kafka-consumer-groups",
            "--delete",
            *option("--group", old),
        ),
        context.see("List what the new group has read", _rows_of(succession)),
    )


def _back(context: RuleContext, succession: Succession) -> NextStep:
    """The step that lets the new group begin where the old one ended."""
    old, new = succession.old, succession.new
    what = f"Or stop {shown(new)}, and have it begin where {shown(old)} ended"
    since = "everything since is then read again"
    if not succession.is_share:
        offsets = [(each.place, each.before.offset) for each in succession.began]
        return reset_from_file(context, new, f"{what}:", offsets, f", and {since}")
    # For share groups, the tool does not accept a file of offsets. Use the time of the old group's first unread record.
    ends, commits = log_ends(context), [(each.place, each.before) for each in succession.began]
    before = min(ends.written_ms(place, commit.offset) or commit.from_ms or 0 for place, commit in commits)
    return context.ask_kafka(
        f"{what}, by time; {since} (--execute in place of --dry-run does it)",
        "kafka-share-groups",
        "--reset-offsets",
        *option("--group", new),
        *(word for topic in succession.topics for word in option("--topic", topic)),
        *option("--to-datetime", instant(before).removesuffix("Z")),
        "--dry-run",
    )


def _rows_of(succession: Succession) -> Rows:
    return Rows("share_lag" if succession.is_share else "history", of_group(succession.new))


def _place(place: tuple[str, int]) -> str:
    return f"{place[0]}-{place[1]}"


RULE = incident_rule(
    kind=KIND,
    title="an application continues with another group id, without its offsets",
    about="""\
A group without members and a new one that began at most 30 minutes later, with the same topics, and with a word in
common in their client ids or names. The old group has been away for three times its longest earlier absence. If
the first commits are at the ends of the logs, both counts (skipped or read) are given. Blue-green deployments are
left out.""",
    tables=("groups", "timeline", "current_offsets", "share_group_topics"),
    levels={
        Level.HIGH: "skipped, if the new group began at the end",
        Level.MODERATE: "read again; or skipped, if it is one of several",
        Level.LOW: "nothing was skipped, and no record shows a repetition; or longer than `lately` ago",
        Level.NOTE: "nothing was skipped, and it is one of several",
    },
    find=_find,
    listing=Rows("groups", ("member_count=0",)),
    causes=(
        PossibleCause(
            "id_of_release",
            "a release or configuration changed the group id of an application",
            "for: common words of client ids, the same hosts",
        ),
        PossibleCause(
            "other_application",
            "one application was retired, and another one started",
            "against: the same",
        ),
    ),
    questions=(
        Question(
            "id_of_release",
            "other_application",
            "Are the clients of both groups the same application (see its release)?",
            asked="last",
        ),
    ),
    thresholds=(
        Threshold("lately", "duration", "7d", "incidents within this time matter", "offsets are kept for as long"),
    ),
    folds=(Folds("offsets_unneeded"),),
)

RULES = (RULE,)
