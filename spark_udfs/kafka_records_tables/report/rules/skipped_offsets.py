"""Offsets that were moved forward while a group had no members, so its members skipped the records in between."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.event_runs import last_run
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
    MINUTE_MS,
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
    start: int
    """The old offset or, if it is higher, the present start of the log."""
    is_to_end: bool
    """Whether the new offset is known to be the log end at that time."""

    @property
    def skipped(self) -> int:
        """The number of offsets from `start` to the new one: an upper bound for the records there, because some offsets
        belong to markers or to records that a cleaner removed."""
        return self.after.offset - self.start

    @property
    def place(self) -> str:
        """The partition in the form `<topic>-<partition>`."""
        return f"{self.topic}-{self.partition}"


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("timeline")
    rows = kept(rows, equal(rows, "event", OFFSETS_RESET)).sort_by([("at_timestamp_ms", "descending")])
    groups = _with_higher_offsets(context, rows)[:MOST_GROUPS]
    if not groups:
        return []
    lives, ends = member_lives(context, groups), log_ends(context)
    found: dict[str, list[Jump]] = {}
    for (group, topic, partition), spans in commit_spans(context, groups).items():
        found.setdefault(group, []).extend(_jumps((topic, partition), spans, lives.get(group, []), ends))
    return [
        _incident(context, group, jumps, lives[group]) for group, every in found.items() for jumps in _operations(every)
    ]


def _with_higher_offsets(context: RuleContext, resets: pa.Table) -> list[str]:
    """The groups with resets, except those whose offsets all fell, so that fewer commits are read a second time."""
    falls = context.table("regressions")
    falls = kept(falls, equal(falls, "group_id", *resets["group_id"].unique().to_pylist()))
    keys = ("group_id", "topic", "log_partition", "log_offset")
    fell = set(zip(*(falls[name].to_pylist() for name in keys), strict=True))
    found: dict[str, None] = {}
    for row in resets.to_pylist():
        detail = json.loads(row["detail"]) if row["detail"] else {}
        written = range(row["log_offset"], row["log_offset"] + detail.get("partitions", 0))
        if not written or any(
            (row["group_id"], detail["topic"], row["log_partition"], at) not in fell for at in written
        ):
            found[row["group_id"]] = None
    return list(found)


def _operations(jumps: list[Jump]) -> Iterator[list[Jump]]:
    """The jumps of a group, split into apparent operations: those without a long pause in between."""
    jumps = sorted(jumps, key=lambda each: (each.after.from_ms or 0, each.topic, each.partition))
    while jumps:
        first = last_run([each.after.from_ms or 0 for each in jumps], _PAUSE_MS)
        yield jumps[first:]
        jumps = jumps[:first]


def _jumps(place: tuple[str, int], spans: list[Span], lives: list[MemberLife], ends: LogEnds) -> Iterator[Jump]:
    """The jumps of a partition. A client that reads without being a member commits more than once while there are no
    members; its commits are not jumps."""
    without = Counter(_interval_of(lives, each) for each in spans if had_no_members(lives, each))
    start, now = ends.start(place) or 0, ends.end(place)
    for before, after in pairwise(spans):
        if before.ended_by != "commit" or not had_no_members(lives, after) or without[_interval_of(lives, after)] > 1:
            continue
        # If the log starts at or after the new offset, retention (time or size) deleted the records.
        from_offset = max(before.offset, start)
        if from_offset < after.offset and (now is None or after.offset <= now):
            yield Jump(*place, before, after, from_offset, _is_end(ends, place, after))


def _is_end(ends: LogEnds, place: tuple[str, int], commit: Span) -> bool:
    """Whether a committed offset is known to be where the log ended at about that time."""
    if commit.from_ms is None:
        return False
    least, most = (ends.end_at(place, commit.from_ms + each) for each in (-_NEAR_MS, _NEAR_MS))
    return least is not None and most is not None and least <= commit.offset <= most


def _interval_of(lives: list[MemberLife], commit: Span) -> tuple[int, int]:
    """A key for the interval without members in which a commit was written: the log, and how many members had left
    before."""
    left = [each for each in lives if each.left_at is not None and each.left_at < commit.log_offset]
    return commit.log_partition, len(left)


def _incident(context: RuleContext, group: str, jumps: list[Jump], lives: list[MemberLife]) -> Incident:
    first, skipped = jumps[0], sum(each.skipped for each in jumps)
    distance = sum(each.after.offset - each.before.offset for each in jumps)
    since, last = first.after.from_ms or 0, jumps[-1].after.from_ms or 0
    where = places_shown({(each.topic, each.partition) for each in jumps})
    known = known_ends(context)
    unknown = [(each.topic, each.partition) for each in jumps if (each.topic, each.partition) not in known]
    in_logs = sum(each.skipped for each in jumps if (each.topic, each.partition) in known)
    is_much = skipped >= context.limit(f"{KIND}.records")
    is_new = last >= context.at_ms - context.limit(f"{KIND}.lately")
    ends = "the end of the log" if len(jumps) == 1 else "the ends of the logs"
    to = f" to {ends}" if all(each.is_to_end for each in jumps) else ""
    goes_on = [each for each in lives if each.joined_ms is not None and each.joined_ms > last]
    continued = f"; its members have continued from there since {moment(goes_on[0].joined_ms or 0)}" if goes_on else ""
    old = moment(min(each.before.from_ms or since for each in jumps))
    where_begins, others = "where it would begin", ""
    if len(jumps) > 1:
        where_begins += f" in partition {first.partition}"
        others = ". The other partitions are in the evidence"
    reread = context.ask_kafka(
        f"If these records must be processed, read them with another group id, so that {shown(group)} is not "
        f"disturbed: this shows {where_begins}, and sets it with --execute in place of --dry-run; stop it at "
        f"{first.after.offset}{others}",
        "kafka-consumer-groups",
        "--reset-offsets",
        *option("--group", f"{group}-skipped"),
        *option("--topic", f"{first.topic}:{first.partition}"),
        "--to-offset",
        str(first.start),
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
            *((Evidence(f"that was {ends} at that moment"),) if to else ()),
        ),
    )
    outside = Verdict(
        f"A client of {shown(group)} that is not a member (it assigns partitions to itself) has read these records.",
        evidence_against=(Evidence("each of these partitions was committed only once while the group had no members"),),
    )
    finding = ReportFinding(
        kind=KIND,
        level=(Level.HIGH if is_new else Level.MODERATE) if is_much else Level.NOTE,
        title=RULE.title,
        problem=(
            f"At {moment(since)}, when the group {shown(group)} had no members, its offsets for {where} were moved "
            f"ahead{to}, by {counted(distance, 'offset')} in all{continued}."
        ),
        impact=(
            f"Unless a client that is not a member read them, up to {counted(skipped, 'record')} were skipped."
            if not unknown
            else f"If the new offsets are in their logs, and no client that is not a member read the records, up to "
            f"{counted(skipped, 'record')} were skipped. If they are beyond the ends, they belong to another log. "
            f"The source lacks {ends_of_logs(unknown)}."
        ),
        group_ids=(group,),
        topics=tuple(sorted({each.topic for each in jumps})),
        partitions=tuple(sorted({each.partition for each in jumps if each.topic == first.topic})),
        who=(Actor("had no members at that time", group),),
        since_timestamp_ms=since,
        is_going_on=False,
        symptom_confidence="medium",
        why_not_sure="no record shows whether a tool or a client that is not a member committed",
        scale={"records_possibly_lost": in_logs, "partitions": len(jumps)},
        evidence=tuple(
            Evidence(
                f"{each.place}: from {each.before.offset} to {each.after.offset}"
                + (f"; the log starts at {each.start} now" if each.start > each.before.offset else ""),
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
                f"Ask who moved the offsets at {moment(since)}, and whether the records from {old} on were to be "
                "skipped"
            ),
            reread,
            context.see("List all commits for the group, with the old offsets", Rows("history", of_group(group))),
            context.see("List when it had no members", Rows("timeline", of_group(group))),
        ),
        measured={"offsets": skipped, "partitions": len(jumps)},
        thresholds=context.limits_of(f"{KIND}.records", f"{KIND}.lately"),
    )
    return Incident(finding, skipped, {"moved_by_tool": by_tool, "read_by_others": outside})


_NEAR_MS: Final = 5_000
"""The time within which a tool commits a log end that it has requested. The clocks of producers may also differ."""
_PAUSE_MS: Final = 10 * MINUTE_MS
"""The longest pause between two commits of one operation on several partitions or topics."""

RULE = incident_rule(
    kind=KIND,
    title="offsets were moved ahead while a group had no members",
    about="""\
Higher offsets that were committed once while a group, which had members before, had none. They skipped the records in
between. Lower offsets are `offsets_reset`.""",
    tables=("timeline", "regressions", "log_ends"),
    levels={
        Level.HIGH: "`records` offsets or more, within `lately`",
        Level.MODERATE: "as many, earlier",
        Level.NOTE: "fewer",
    },
    find=_find,
    listing=Rows("timeline", (f"event={OFFSETS_RESET}",)),
    causes=(
        PossibleCause(
            "moved_by_tool",
            "an administrator or a tool moved the offsets",
            "for: the new offsets were the ends of the logs",
        ),
        PossibleCause(
            "read_by_others",
            "a client that is not a member has read the records",
            "against: it committed only once",
        ),
    ),
    questions=(Question("moved_by_tool", "read_by_others", "Did somebody reset the group at that time?"),),
    thresholds=(
        Threshold(
            "records",
            "count",
            20,
            "distance from the old offset to the new one that is more than somebody leaves out on purpose",
            "records that cannot be processed are skipped one by one",
        ),
        Threshold("lately", "duration", "24h", "incidents within this time are new", "since the last shift"),
    ),
)

RULES = (RULE,)
