"""Offsets that a tool moved ahead while a group had no members: the records in between were never read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    LogEnds,
    MemberLife,
    Span,
    commit_spans,
    had_no_members,
    log_ends,
    member_lives,
)
from kafka_records_tables.report.facts.known_logs import ends_of_logs, known_ends
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.tables.words.timeline_words import OFFSETS_RESET
from kafka_records_tables.topics import OFFSETS

KIND: Final = "offsets_moved_ahead"


@dataclass(frozen=True, slots=True)
class Jump:
    """A higher offset that was committed for a partition while its group had no members."""

    topic: str
    partition: int
    before: Span
    after: Span
    end: int | None
    """Where the log ended then; None if it is unknown."""

    @property
    def skipped(self) -> int:
        """Records between the two offsets."""
        return self.after.offset - self.before.offset

    @property
    def place(self) -> str:
        """The partition in the form that operators write."""
        return f"{self.topic}-{self.partition}"


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("timeline")
    rows = kept(rows, equal(rows, "event", OFFSETS_RESET)).sort_by([("at_timestamp_ms", "descending")])
    groups = tuple(rows["group_id"].unique().to_pylist())[:MOST_GROUPS]
    if not groups:
        return []
    lives, ends = member_lives(context, groups), log_ends(context)
    found: dict[str, list[Jump]] = {}
    for (group, topic, partition), spans in commit_spans(context, groups).items():
        found.setdefault(group, []).extend(_jumps((topic, partition), spans, lives.get(group, []), ends))
    return [_incident(context, group, jumps, lives[group]) for group, jumps in found.items() if jumps]


def _jumps(place: tuple[str, int], spans: list[Span], lives: list[MemberLife], ends: LogEnds) -> Iterator[Jump]:
    """The jumps of a partition. A client that is not a member and reads commits more than once while there are no
    members; its commits are no jumps."""
    ahead = [
        (before, after)
        for before, after in pairwise(spans)
        if before.ended_by == "commit" and after.offset > before.offset and had_no_members(lives, after)
    ]
    for before, after in ahead:
        alone = all(one is after or _interval_of(lives, after) != _interval_of(lives, one) for _, one in ahead)
        now = ends.end(place)
        if alone and (now is None or after.offset <= now):
            yield Jump(*place, before, after, ends.end_at(place, after.from_ms))


def _interval_of(lives: list[MemberLife], commit: Span) -> tuple[int, int]:
    """The number of the interval without members in which a commit was written: by log and by who had left before."""
    left = [each for each in lives if each.left_at is not None and each.left_at < commit.log_offset]
    return commit.log_partition, len(left)


def _incident(context: RuleContext, group: str, jumps: list[Jump], lives: list[MemberLife]) -> Incident:
    jumps.sort(key=lambda each: (each.after.from_ms or 0, each.topic, each.partition))
    first, skipped = jumps[0], sum(each.skipped for each in jumps)
    since, last = first.after.from_ms or 0, jumps[-1].after.from_ms or 0
    to_end = [each for each in jumps if each.end is not None and each.after.offset >= each.end - _NEAR]
    where = places_shown({(each.topic, each.partition) for each in jumps})
    known = known_ends(context)
    unknown = [(each.topic, each.partition) for each in jumps if (each.topic, each.partition) not in known]
    lost = sum(each.skipped for each in jumps if (each.topic, each.partition) in known)
    is_much = skipped >= context.limit(f"{KIND}.records")
    is_new = last >= context.at_ms - context.limit(f"{KIND}.lately")
    to = " to the ends of their logs" if len(to_end) == len(jumps) else ""
    goes_on = [each for each in lives if each.joined_ms is not None and each.joined_ms > last]
    continued = f"; its members continue from there since {moment(goes_on[0].joined_ms or 0)}" if goes_on else ""
    before = moment(min(each.before.from_ms or since for each in jumps))
    reread = context.ask_kafka(
        (
            f"If these records must be processed, read them with another group id, so that {shown(group)} is not "
            f"disturbed: this shows where it would begin in partition {first.partition}, and sets it with --execute in "
            f"place of --dry-run; stop it at {first.after.offset}. The other partitions are in the evidence"
            if len(jumps) > 1
            else f"If these records must be processed, read them with another group id, so that {shown(group)} is not "
            f"disturbed: this shows where it would begin, and sets it with --execute in place of --dry-run; stop it at "
            f"{first.after.offset}"
        ),
        "kafka-consumer-groups",
        "--reset-offsets",
        *option("--group", f"{group}-skipped"),
        *option("--topic", f"{first.topic}:{first.partition}"),
        "--to-offset",
        str(first.before.offset),
        "--dry-run",
    )
    by_tool = Verdict(
        f"Somebody moved the offsets of {shown(group)} ahead with a tool (kafka-consumer-groups --reset-offsets, "
        "alterConsumerGroupOffsets) while its members were stopped.",
        evidence_for=(
            Evidence(
                f"the group had no members when {first.after.offset} was committed for {first.place}, after "
                f"{first.before.offset}",
                OFFSETS,
                first.after.log_partition,
                first.after.log_offset,
                since,
            ),
            *((Evidence("the new offsets are where the logs ended at that moment"),) if to else ()),
        ),
    )
    outside = Verdict(
        f"A client of {shown(group)} that is no member (it assigns itself partitions) has read these records.",
        evidence_against=(
            Evidence("it committed each partition once, and all other commits of the group are by members"),
        ),
    )
    finding = ReportFinding(
        kind=KIND,
        level=(Level.HIGH if is_new else Level.MODERATE) if is_much else Level.NOTE,
        title=RULE.title,
        problem=(
            f"At {moment(since)}, when the group {shown(group)} had no members, its offsets for {where} were moved "
            f"ahead{to}, by {counted(skipped, 'offset' if unknown else 'record')} in all{continued}."
        ),
        impact=(
            f"It skipped {counted(lost, 'record')} that it had not read."
            if not unknown
            else f"If the new offsets are in their logs, it skipped {counted(skipped, 'record')} that it had not read. "
            f"If they are beyond the ends, they belong to another log. The source lacks {ends_of_logs(unknown)}."
        ),
        consequence="data_lost" if is_much and lost else "none",
        group_ids=(group,),
        topics=tuple(sorted({each.topic for each in jumps})),
        partitions=tuple(sorted({each.partition for each in jumps if each.topic == first.topic})),
        who=(Actor("had no members and did not commit this itself", group),),
        since_timestamp_ms=since,
        is_going_on=False,
        symptom_confidence="medium",
        why_not_sure="no record shows whether a tool or a client that is no member committed",
        scale={"records_lost": lost, "partitions": len(jumps)},
        evidence=tuple(
            Evidence(
                f"{each.place}: from {each.before.offset} to {each.after.offset}",
                OFFSETS,
                each.after.log_partition,
                each.after.log_offset,
                each.after.from_ms,
            )
            for each in jumps[:MOST_EVIDENCE]
        ),
        evidence_count=len(jumps),
        rows=(Rows("history", of_group(group)), Rows("timeline", of_group(group, f"event={OFFSETS_RESET}"))),
        next=(
            NextStep(
                f"Ask who moved the offsets at {moment(since)}, and whether the records from {before} on were to be "
                "skipped"
            ),
            reread,
            context.see("List all commits for the group, with the old offsets", Rows("history", of_group(group))),
            context.see("List when it had no members", Rows("timeline", of_group(group))),
        ),
        measured={"records": skipped, "partitions": len(jumps)},
        thresholds=context.limits_of(f"{KIND}.records", f"{KIND}.lately"),
    )
    return Incident(finding, skipped, {"moved_by_tool": by_tool, "read_by_others": outside})


_NEAR: Final = 50
"""Records that may be written between a tool's question for the end of a log and its commit."""

RULE = incident_rule(
    kind=KIND,
    title="offsets were moved ahead while a group had no members",
    about="""\
Higher offsets that were committed for a group that has had members while it had none: the records between the old and
the new offset were skipped. If a partition was committed several times until members came back, a client that is no
member reads it, and there is no finding. Offsets beyond the end of the log are `offsets_from_elsewhere`, lower ones
`offsets_reset`.""",
    tables=("timeline", "log_ends"),
    levels={
        Level.HIGH: "`records` or more were skipped, within `lately`",
        Level.MODERATE: "as many, earlier",
        Level.NOTE: "fewer, as when an operator leaves out a record that cannot be processed",
    },
    find=_find,
    listing=Rows("timeline", (f"event={OFFSETS_RESET}",)),
    causes=(
        PossibleCause(
            "moved_by_tool",
            "an administrator or a tool moved the offsets",
            "for: the group had no members then, and the new offsets were the ends of the logs",
        ),
        PossibleCause(
            "read_by_others",
            "a client that is no member has read the records",
            "against: it committed once",
        ),
    ),
    questions=(Question("moved_by_tool", "read_by_others", "Did somebody reset the group at that time?"),),
    thresholds=(
        Threshold(
            "records",
            "count",
            20,
            "skipped records that are more than what somebody leaves out on purpose",
            "records that cannot be processed are skipped one by one",
        ),
        Threshold("lately", "duration", "24h", "incidents within this time are new", "since the last shift"),
    ),
)

RULES = (RULE,)
