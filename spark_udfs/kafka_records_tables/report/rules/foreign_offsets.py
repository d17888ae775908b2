"""Offsets that a tool wrote for a group but that belong to another log, because they are beyond the end of this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.beginnings import (
    Beginning,
    beginning,
    consequence_of,
    either_words,
    has_all_records,
    repeated_words,
    scale_of,
)
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    LogEnds,
    MemberLife,
    Span,
    commit_spans,
    log_ends,
    member_lives,
)
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    capital,
    listed,
    moment,
    numbers_shown,
    of_group,
    shown,
)
from kafka_records_tables.topics import OFFSETS

KIND: Final = "offsets_from_elsewhere"


@dataclass(frozen=True, slots=True)
class ForeignOffset:
    """An offset beyond the end of its log, and what followed."""

    group_id: str
    topic: str
    partition: int
    span: Span
    end: int | None
    """The end of the log when the offset was committed; None if files do not show it."""
    end_now: int
    ever_had_members: bool
    joined_since: bool
    """Whether a member has joined the group since the commit."""
    after: Span | None
    """The group's next commit."""
    began: Beginning | None
    """Where the group's consumers began after the commit; None if they have not begun."""

    @property
    def skipped(self) -> int:
        """The number of records that were never read, or may have been skipped."""
        return 0 if self.began is None else self.began.skipped

    @property
    def place(self) -> str:
        """The partition in the form `<topic>-<partition>`."""
        return f"{self.topic}-{self.partition}"


def _suspects(context: RuleContext) -> list[str]:
    """Groups with an offset beyond the end of its log, now or before the offset fell."""
    lag = context.table("lag")
    now = kept(lag, equal(lag, "problem", "beyond_end"))["group_id"].unique().to_pylist()
    falls = context.table("regressions")
    ends = {(each["topic"], each["partition"]): each["log_end_offset"] for each in _ends(context)}
    fell = kept(falls, pc.greater(falls["from_offset"], falls["to_offset"]))
    fell = fell.select(["group_id", "topic", "partition", "from_offset"]).to_pylist() if ends else []
    before = [
        each["group_id"] for each in fell if each["from_offset"] > ends.get((each["topic"], each["partition"]), 2**62)
    ]
    return list(dict.fromkeys([*now, *before]))[:MOST_GROUPS]


def _ends(context: RuleContext) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = context.table("log_ends").select(["topic", "partition", "log_end_offset"]).to_pylist()
    return rows


def _find(context: RuleContext) -> list[Incident]:
    groups = _suspects(context)
    if not groups:
        return []
    lives, ends = member_lives(context, groups), log_ends(context)
    found: dict[str, list[ForeignOffset]] = {}
    for (group, topic, partition), spans in commit_spans(context, tuple(groups)).items():
        for at in range(len(spans)):
            one = _foreign(group, (topic, partition), spans, at, lives.get(group, []), ends)
            if one is not None:
                found.setdefault(topic, []).append(one)
    return [_incident(context, of_topic) for of_topic in found.values()]


def _foreign(
    group: str, place: tuple[str, int], spans: list[Span], at: int, lives: list[MemberLife], ends: LogEnds
) -> ForeignOffset | None:
    span, end_now = spans[at], ends.end(place)
    if end_now is None or span.offset <= end_now or span.from_ms is None:
        return None
    if span.topic_id is not None and ends.topic_id(place[0]) not in (None, span.topic_id):
        # The topic has been recreated since: the offset is from the old topic.
        return None
    known = [each for each in lives if each.joined_ms is not None]
    if any(each.was_there(span.from_ms) for each in known):
        # Members commit only offsets of records that they have read, so the log must have been truncated.
        return None
    ever = any((each.joined_ms or 0) <= span.from_ms for each in known)
    before = spans[at - 1].offset if at else None
    after = next((each for each in spans[at + 1 :] if each.offset <= end_now), None)
    began = None
    if after is not None:
        own = before if before is not None and before <= end_now else ends.start(place) or 0
        since = [
            each.joined_ms for each in known if span.from_ms <= (each.joined_ms or 0) <= (after.from_ms or span.from_ms)
        ]
        began = beginning(ends, place, own, after.offset, min(filter(None, since), default=None))
        if began.is_unsure and began.end is None:
            # Without a member, or with an unknown log end when it joined, the number of skipped records is unknown.
            began = None
    joined_since = any((each.joined_ms or 0) > span.from_ms for each in known)
    return ForeignOffset(
        group, *place, span, ends.end_at(place, span.from_ms), end_now, ever, joined_since, after, began
    )


def _incident(context: RuleContext, found: list[ForeignOffset]) -> Incident:
    found = sorted(found, key=lambda each: (each.span.from_ms or 0, each.group_id, each.partition))
    first, topic = found[0], found[0].topic
    since = first.span.from_ms or 0
    groups = list(dict.fromkeys(each.group_id for each in found))
    went_on = list(dict.fromkeys(each.group_id for each in found if each.after is not None))
    silent = list(dict.fromkeys(each.group_id for each in found if each.joined_since and each.group_id not in went_on))
    waiting = [each for each in groups if each not in (*went_on, *silent)]
    begins = [each.began for each in found if each.began is not None]
    skipped, again = sum(each.skipped for each in begins), sum(each.again for each in begins)
    is_unsure, scale = any(each.is_unsure for each in begins), scale_of(begins)
    never = all(not each.ever_had_members for each in found)
    is_whole = all(has_all_records(context, each) for each in {each.span.log_partition for each in found})
    partitions = sorted({each.partition for each in found})
    ended = f"ended at {first.end} then" if first.end is not None else f"ends at {first.end_now} today"
    parts = []
    if went_on:
        clients = (
            f"{listed(went_on)} has consumed since" if len(went_on) == 1 else f"{listed(went_on)} have consumed since"
        )
        they, their = ("it", "its") if len(went_on) == 1 else ("they", "their")
        if is_unsure:
            parts.append(f"{clients}: {their} offsets were out of range, so {either_words(they, their, begins)}")
        elif again:
            parts.append(
                f"{clients}: {their} offsets were out of range, so {they} began at the start, and read "
                f"{repeated_words(begins)} again"
            )
        else:
            parts.append(f"{clients}: {their} offsets were out of range, so {they} began where auto.offset.reset says")
    if silent:
        parts.append(
            f"{listed(silent)} had members since, which began where auto.offset.reset says; no commit shows where"
        )
    if waiting:
        skip = "it skips" if len(waiting) == 1 else "they skip"
        parts.append(
            f"{listed(waiting)} will begin where auto.offset.reset says, unless the offsets are set before: with "
            f"`latest` {skip} every record in the log"
        )
    steps = []
    if waiting:
        knew = any(each.ever_had_members for each in found if each.group_id == waiting[0])
        by_time = (
            ", or by time: with --to-datetime, the moment up to which it had read"
            if knew
            else "; if it has read the same records in another cluster, by time: with --to-datetime, the moment up to "
            "which it had read there"
        )
        before = f"Before {shown(waiting[0])} starts, set its offsets to the earliest{by_time}"
        steps.append(_set(context, waiting[0], topic, "--to-earliest", before))
    if silent:
        steps.append(
            _set(
                context,
                silent[0],
                topic,
                "--to-earliest",
                f"If auto.offset.reset of {shown(silent[0])} is latest, records were skipped: stop its members, and "
                "set its offsets to the earliest, or by time (--to-datetime)",
            )
        )
    for group in went_on[:1]:
        if skipped:
            of = [each for each in found if each.group_id == group and each.skipped]
            ranges = ", ".join(f"{each.place} up to {each.began.end}" for each in of[:4] if each.began)
            steps.append(
                _set(
                    context,
                    group,
                    topic,
                    "--to-earliest",
                    f"If auto.offset.reset of {shown(group)} is latest, read what it has skipped ({ranges}): use a "
                    "second group id that starts at the earliest, or stop the group and reset its offsets, which "
                    "repeats later records",
                )
            )
    alone = "never had a member" if never else "had no members"
    lacked = () if is_whole else ("earlier records of the group",)
    seen = "" if is_whole else " in the remaining records"
    verdict = Verdict(
        f"Somebody wrote offsets of another cluster or topic for {listed(groups)} with a tool "
        "(alterConsumerGroupOffsets, kafka-consumer-groups --reset-offsets, a migration script).",
        evidence_for=(
            Evidence(
                f"{first.group_id} {alone}{seen} when {first.span.offset} was committed for {first.place}, whose"
                f" log {ended}",
                OFFSETS,
                first.span.log_partition,
                first.span.log_offset,
                since,
            ),
            *((Evidence("the commits have the present topic id"),) if first.span.topic_id is not None else ()),
        ),
        is_certain=is_whole and (never or any(each.end is not None for each in found)),
        lacked=lacked,
    )
    same_topic = Evidence(f"the commit has the present topic id of {topic} ({first.span.topic_id})")
    nobody = Evidence(f"{first.group_id} {alone} that could have read that far, and the log of {first.place} {ended}")
    finding = ReportFinding(
        kind=KIND,
        level=Level.CRITICAL if scale["records_lost"] else Level.HIGH,
        title=RULE.title,
        problem=(
            f"At {moment(since)} somebody committed offsets beyond the end of {shown(topic)} (partitions"
            f" {numbers_shown(partitions)}) for {listed(groups)}: {first.span.offset} for {first.place}, whose"
            f" log {ended}."
            f" The group{'' if len(groups) == 1 else 's'} {'never had a member until' if never else 'had no members'}"
            f" then{', so no consumer has read that far' if is_whole else seen}."
        ),
        impact=f"{capital('; '.join(parts))}.",
        consequence=consequence_of(scale),
        group_ids=tuple(groups),
        topics=(topic,),
        partitions=tuple(partitions),
        who=tuple(Actor("had no members when this was committed", group) for group in groups[:3]),
        since_timestamp_ms=since,
        is_going_on=bool(waiting or silent),
        scale={**scale, "groups": len(groups), "offsets": len(found)},
        evidence=tuple(
            Evidence(
                f"{each.group_id}: {each.span.offset} for {each.place}"
                + (f", then {each.after.offset}" if each.after is not None else ""),
                OFFSETS,
                each.span.log_partition,
                each.span.log_offset,
                each.span.from_ms,
            )
            for each in found[:MOST_EVIDENCE]
        ),
        evidence_count=len(found),
        rows=tuple(Rows("lag", of_group(group)) for group in groups[:3]),
        next=(
            *steps,
            context.see("List all commits for the group", Rows("history", of_group(groups[0]))),
            NextStep("Find the script: offsets of one cluster mean nothing in another one. Translate them by time"),
        ),
        measured={"offsets": len(found)},
    )
    return Incident(
        finding,
        skipped + len(found),
        {
            "another_cluster": verdict,
            "topic_recreated": Verdict(
                refuted_by=same_topic if first.span.topic_id is not None else None,
                statement=f"{topic} was deleted and created again.",
            ),
            "log_truncated": Verdict(
                f"The log of {topic} lost its end after members had read that far: a replica that lacked it became"
                " leader.",
                refuted_by=nobody if is_whole else None,
                lacked=lacked,
            ),
        },
    )


def _set(context: RuleContext, group: str, topic: str, to: str, what: str) -> NextStep:
    words = ("--reset-offsets", *option("--group", group), *option("--topic", topic), to, "--dry-run")
    return context.ask_kafka(f"{what} (--execute in place of --dry-run does it)", "kafka-consumer-groups", *words)


RULE = incident_rule(
    kind=KIND,
    title="offsets of another log were written for a group",
    about="""\
Commits beyond the end of their log, for a group without members, where no log was cut. A commit of a member beyond the
end is `offsets_beyond_end`.""",
    tables=("lag", "regressions", "timeline", "log_ends"),
    levels={Level.CRITICAL: "records were skipped", Level.HIGH: "nothing was skipped so far, or no record shows it"},
    find=_find,
    listing=Rows("lag", ("problem=beyond_end",)),
    causes=(
        PossibleCause(
            "another_cluster",
            "a tool wrote offsets of another cluster or topic",
            "for: the group never had a member",
        ),
        PossibleCause("topic_recreated", "the topic was created again", "refuted by the topic id of the commit"),
        PossibleCause("log_truncated", "the log was cut", "refuted by the end of the log at that time"),
    ),
    folds=(
        Folds("offsets_beyond_end"),
        Folds("group_stands_still"),
        Folds("offsets_rewound"),
        Folds("offsets_reset"),
        Folds("topic_recreated"),
    ),
)

RULES = (RULE,)
