"""Clients that are not members but repeatedly commit for a group while it has no members, so its members skip
records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kafka_records_tables.report.case_columns import equal, grouped, kept
from kafka_records_tables.report.facts.event_runs import goes_on
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    MemberLife,
    Place,
    Span,
    commit_spans,
    had_no_members,
    member_lives,
)
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.reset_steps import reset_from_file
from kafka_records_tables.tables.words.timeline_words import OFFSETS_RESET
from kafka_records_tables.topics import OFFSETS

KIND: Final = "outside_reader_commits"


@dataclass(frozen=True, slots=True)
class _Absence:
    """The commits for a partition while the group had no members, between two commits by members."""

    place: Place
    before: Span
    """The last commit of a member."""
    commits: Sequence[Span]
    is_followed: bool
    """Whether a member committed the partition afterwards, at or after the last of these offsets."""

    @property
    def skipped(self) -> int:
        """The number of offsets by which they moved the group forward."""
        return max(self.commits[-1].offset - self.before.offset, 0)


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("timeline")
    counts = grouped(kept(rows, equal(rows, "event", OFFSETS_RESET)), ["group_id"], [("event", "count")])
    least = context.limit(f"{KIND}.commits")
    columns = (counts[name].to_pylist() for name in ("group_id", "event_count"))
    names = [group for group, count in zip(*columns, strict=True) if count >= least][:MOST_GROUPS]
    if not names:
        return []
    lives = member_lives(context, names)
    found: dict[str, list[_Absence]] = {}
    for (group, topic, partition), spans in commit_spans(context, names).items():
        found.setdefault(group, []).extend(_absences((topic, partition), spans, lives.get(group, []), least))
    return [
        _incident(context, group, absences)
        for group, absences in found.items()
        if any(each.is_followed and each.skipped for each in absences)
    ]


def _absences(place: Place, spans: Sequence[Span], lives: Sequence[MemberLife], least: int) -> list[_Absence]:
    """The absences of members with at least `least` commits for a partition."""
    found: list[_Absence] = []
    before: Span | None = None
    outside: list[Span] = []
    for each in (*spans, None):
        if each is not None and had_no_members(lives, each):
            outside.append(each)
            continue
        if before is not None and len(outside) >= least:
            is_followed = each is not None and each.offset >= outside[-1].offset
            found.append(_Absence(place, before, tuple(outside), is_followed))
        before, outside = each, []
    return found


def _incident(context: RuleContext, group: str, absences: list[_Absence]) -> Incident:
    commits = sorted((each for absence in absences for each in absence.commits), key=lambda each: each.from_ms or 0)
    times = sorted({each.from_ms or 0 for each in commits})
    followed = [each for each in absences if each.is_followed and each.skipped]
    waiting = [each for each in absences if not each.is_followed and each.skipped]
    skipped = sum(each.skipped for each in followed)
    firsts: dict[Place, Span] = {}
    for each in sorted(absences, key=lambda each: each.commits[0].from_ms or 0):
        firsts.setdefault(each.place, each.before)
    where = places_shown(firsts)
    topics = tuple(sorted({topic for topic, _ in firsts}))
    pauses = sorted(later - earlier for earlier, later in pairwise(times))
    usual = pauses[len(pauses) // 2] if pauses else 0
    first = commits[0]
    evidence = tuple(
        Evidence(
            f"{topic}-{partition}: {each.commits[-1].offset} is committed while the group has no members, after "
            f"{each.before.offset} by its last one",
            OFFSETS,
            each.commits[-1].log_partition,
            each.commits[-1].log_offset,
            each.commits[-1].from_ms,
        )
        for each in followed
        for topic, partition in (each.place,)
    )
    more = (
        f" Another {counted(sum(each.skipped for each in waiting), 'record')} will be skipped when members come back."
        if waiting
        else ""
    )
    is_much = skipped >= context.limit(f"{KIND}.records")
    is_new = times[-1] >= context.at_ms - context.limit(f"{KIND}.lately")
    finding = ReportFinding(
        kind=KIND,
        level=Level.NOTE if not is_much else Level.HIGH if is_new else Level.LOW,
        title=RULE.title,
        problem=(
            f"While the group {shown(group)} had no members, {where} were committed for it again and again since "
            f"{moment(times[0])}: {counted(len(times), 'time')}, mostly every {length(usual)}. When members came back, "
            "they continued from there."
        ),
        impact=(
            f"The members of {shown(group)} skipped {counted(skipped, 'record')}, unless the client that committed "
            f"did their work. The lag does not show it.{more}"
        ),
        group_ids=(group,),
        topics=topics,
        partitions=tuple(sorted({partition for _, partition in firsts})) if len(topics) == 1 else (),
        since_timestamp_ms=times[0],
        is_going_on=goes_on(times, context.at_ms),
        scale={"records_possibly_lost": skipped, "partitions": len(firsts)},
        evidence=evidence[:MOST_EVIDENCE],
        evidence_count=len(evidence),
        rows=(Rows("history", of_group(group)), Rows("timeline", of_group(group, f"event={OFFSETS_RESET}"))),
        next=(
            NextStep(
                f"Find the client with the group id {shown(group)} that is not a member, stop it, and give it another "
                "group id or set its enable.auto.commit to false; no record names it"
            ),
            reset_from_file(
                context,
                group,
                "If the skipped records must be processed, set the group back while it has no members:",
                [(place, each.offset) for place, each in sorted(firsts.items())],
                "; what members read since is then read again",
            ),
            context.see("List when it had no members", Rows("timeline", of_group(group))),
        ),
        measured={"records": skipped, "commits": len(times)},
        thresholds=context.limits_of(*(f"{KIND}.{each.name}" for each in RULE.thresholds)),
    )
    proof = Evidence(
        f"{group} has no members when {first.offset} is committed",
        OFFSETS,
        first.log_partition,
        first.log_offset,
        first.from_ms,
    )
    repeated = Evidence(f"{counted(len(times), 'commit')} mostly {length(usual)} apart")
    verdicts = {
        "reads_outside": Verdict(
            f"A client that assigns itself partitions (assign) uses the group id {shown(group)}, and commits what it "
            "has read; while there are members, its commits are rejected.",
            evidence_for=(proof, repeated),
        ),
        "script_moves_offsets": Verdict(
            f"A script moves the offsets of {shown(group)} ahead again and again (alterConsumerGroupOffsets).",
            evidence_for=(proof,),
            evidence_against=(repeated,),
        ),
    }
    return Incident(finding, skipped, verdicts)


RULE = incident_rule(
    kind=KIND,
    title="a client outside the group commits for it while it has no members",
    about="""\
Partitions that were committed `commits` times or more while a group had no members, with higher offsets. Members that
came back skipped the records in between, unless that client processed them. A single commit is `offsets_moved_ahead`.
No record names the client.""",
    tables=("timeline",),
    levels={
        Level.HIGH: "`records` records or more, and the last such commit is within `lately`",
        Level.LOW: "as many, earlier",
        Level.NOTE: "fewer",
    },
    find=_find,
    listing=Rows("timeline", (f"event={OFFSETS_RESET}",)),
    causes=(
        PossibleCause(
            "reads_outside",
            "a client that assigns itself partitions uses the group id",
            "",
        ),
        PossibleCause(
            "script_moves_offsets", "a script moves the offsets", "against: many commits, at short intervals"
        ),
    ),
    questions=(
        Question(
            "reads_outside",
            "script_moves_offsets",
            "Does a client that assigns itself partitions have this group id (a test, a debugger, a notebook)?",
            asked="last",
        ),
    ),
    thresholds=(
        Threshold("commits", "count", 3, "commits in one absence of members", "a tool commits once"),
        Threshold("records", "count", 20, "skipped records that matter", "people leave out single records"),
        Threshold("lately", "duration", "24h", "incidents within this time are new", "since the last shift"),
    ),
)

RULES = (RULE,)
