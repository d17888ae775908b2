"""Consumers that repeatedly failed on a record, but no longer do."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import median
from typing import Final

from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.facts.group_facts import (
    MemberLife,
    Offset,
    Span,
    had_no_members,
    log_ends,
    stopped_quickly,
)
from kafka_records_tables.report.incident_rule import Incident
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import (
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.report.rules.dying_processes import NAME as PROCESS_DIES
from kafka_records_tables.report.rules.dying_processes import lone_process, weigh_process, weigh_record
from kafka_records_tables.report.rules.stuck_partitions import (
    KIND,
    StuckPartition,
    departures_shown,
    is_fixed_time,
    poll_limits,
    polls_too_late,
    rises,
    usual_attempts,
    usual_step,
)
from kafka_records_tables.topics import OFFSETS

_COMMITS: Final = 5
"""The number of commits before and after that show whether a group reads steadily."""
_LONGER: Final = 4
"""How long the offset must have stayed with records to read, as a multiple of the longest pause between other
commits."""


def past_loops(
    context: RuleContext, group: str, spans: dict[Offset, list[Span]], lives: list[MemberLife]
) -> list[StuckPartition]:
    """Partitions of a group whose offset did not move for some time while members failed on it, until the group got
    past it. An offset counts only if it is known when its record became available to read; running brokers do not
    report that."""
    left = [each for each in lives if each.left_ms is not None]
    least = context.limit(f"{KIND}.attempts")
    found = []
    for (owner, topic, partition), of_place in spans.items():
        had = [each for each in left if (topic, partition) in each.places] if owner == group else []
        if len(had) < least:
            continue
        for at, span in enumerate(of_place[:-1]):
            if span.from_ms is None or span.to_ms is None:
                continue
            tries = [each for each in had if span.from_ms <= (each.left_ms or 0) <= span.to_ms]
            if len(tries) < least:
                continue
            written = log_ends(context).written_ms((topic, partition), span.offset)
            if written is None and (log_ends(context).start((topic, partition)) or 0) > span.offset:
                written = _waiting_since(of_place, at)
            if written is None:
                # When the record was written is unknown, so jobs without records to read would count as failures.
                continue
            since = max(span.from_ms, written)
            tries = [each for each in tries if (each.left_ms or 0) >= since]
            usual = usual_attempts([*of_place[:at], *of_place[at + 1 :]], had, None)
            lasted = span.to_ms - since
            enough = max(least, 2 * (usual or 0))
            if len(tries) >= enough and lasted >= context.limit("report.group_settles_within"):
                step = usual_step(of_place)
                found.append(StuckPartition(topic, partition, span.offset, 0, since, span, tries, usual, step))
    # Report only the longest loop, with the other partitions that did not move at that time.
    longest = max(found, key=lambda each: len(each.attempts), default=None)
    if longest is None:
        return []
    from_ms, to_ms = longest.span.from_ms or 0, longest.span.to_ms or 0
    meanwhile = [each for each in found if (each.span.from_ms or 0) < to_ms and (each.span.to_ms or 0) > from_ms]
    return sorted(meanwhile, key=lambda each: -len(each.attempts))


def _waiting_since(spans: list[Span], at: int) -> int | None:
    """Approximately when records began to wait at an offset that did not move, if the log no longer has them: the next
    commit minus the time that the group usually needs for that distance. None if unknown, or if the other offsets did
    not move steadily, for example because records come in bursts."""
    span, after = spans[at], spans[at + 1]
    sides = spans[: at + 1], spans[at + 1 :]
    if span.to_ms is None or min(map(len, sides)) <= _COMMITS or after.offset <= span.offset:
        return None
    times = [[each.from_ms or 0 for each in side] for side in sides]
    speed = max(
        (side[-1].offset - side[0].offset) / max(of_side[-1] - of_side[0], 1)
        for side, of_side in zip(sides, times, strict=True)
    )
    waited = (after.offset - span.offset) / speed if speed > 0 else 0
    longest = max(later - earlier for side in times for earlier, later in pairwise(side))
    return round(span.to_ms - waited) if waited >= _LONGER * longest else None


def past_incident(
    context: RuleContext,
    group: str,
    over: list[StuckPartition],
    lives: list[MemberLife],
    spans: dict[Offset, list[Span]],
) -> Incident:
    """The finding about a past loop; `over` is not empty."""
    first, ended = over[0], over[0].span.to_ms or 0
    since = first.span.from_ms or 0
    clients = Counter(each.name for each in first.attempts)
    stays = [each for each in map(stopped_quickly, first.attempts) if each is not None]
    kept_ms = cluster_settings(context).retention_ms(first.topic)
    outlasted = kept_ms is not None and 0 < kept_ms <= ended - since
    of_place = spans[group, first.topic, first.partition]
    after = of_place[of_place.index(first.span) + 1]
    how = _how_it_ended(first.span, after, lives)
    got_past = first.span.ended_by == "commit" and after.offset > first.offset and not had_no_members(lives, after)
    still = {(group, each.topic, each.partition) for each in over}
    moves = any(rises(others, since, ended) for key, others in spans.items() if key[0] == group and key not in still)
    along = f" {', '.join(each.place for each in over[1:5])} did not move either." if over[1:] else ""
    until = ", until it got past it" + (" or the topic deleted it" if outlasted else "") if got_past else ""
    passed = Verdict(
        f"The application failed on {first.record}{until}.",
        evidence_for=(
            Evidence(
                f"the offset of {first.place} stayed {first.offset} while {counted(len(first.attempts), 'member')} had "
                "the partition and left",
                OFFSETS,
                first.span.log_partition,
                first.span.log_offset,
                since,
            ),
            *((Evidence("other partitions of the group moved on meanwhile"),) if moves else ()),
        ),
    )
    late = _late(group, first.attempts, stays, moves)
    start = Verdict(
        "The application failed before it had processed anything, regardless of the record.",
        refuted_by=Evidence("other partitions of the group moved on meanwhile") if moves else None,
    )
    lone = lone_process(context, group, over, spans, lives) if moves else None
    is_deleted = log_ends(context).written_ms((first.topic, first.partition), first.offset) is None
    jumped = after.offset - first.offset
    step = NextStep(
        f"Find out in the log of the application what failed from {moment(since)} on, and whether "
        f"{first.record} was processed or left out"
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.MODERATE if outlasted else Level.LOW,
        title=(
            "members polled too late, were removed and joined again; it is over"
            if late.evidence_for and not moves
            else (
                "members came and went again and again, and an offset did not move; it is over"
                if lone is not None
                else "members failed on a record, left and joined again; it is over"
            )
        ),
        problem=(
            f"The group {shown(group)} did not get past offset {first.offset} of {shown(first.topic)} partition "
            f"{first.partition} for {length(ended - since)}: {counted(len(first.attempts), 'member')} took the "
            f"partition and left, half of them within {length(median(stays) if stays else 0)} "
            f"({listed(list(clients))}). It ended at {moment(ended)}, {how}.{along}"
        ),
        impact=(
            f"The topic keeps records for {length(kept_ms or 0)}: some"
            + (f" of the {counted(jumped, 'offset')} up to its next commit" if is_deleted and jumped > 1 else "")
            + " may have been deleted before they were read."
            if outlasted
            else "Records were processed late; the record itself may have been left out."
        ),
        consequence="work_stopped",
        group_ids=(group,),
        topics=tuple(sorted({each.topic for each in over})),
        partitions=tuple(sorted({each.partition for each in over if each.topic == first.topic})),
        who=tuple(
            Actor(f"left {counted(count, 'time')}", group, None, name, None) for name, count in clients.most_common(5)
        ),
        since_timestamp_ms=since,
        is_going_on=False,
        symptom_confidence="medium" if is_deleted else "high",
        why_not_sure=(
            "the record is deleted: how long it waited is estimated from the other commits of the group"
            if is_deleted
            else None
        ),
        scale={"attempts": len(first.attempts), "partitions": len(over)},
        evidence=departures_shown(first.attempts),
        evidence_count=len(first.attempts),
        rows=(Rows("timeline", of_group(group)), Rows("history", of_group(group))),
        next=(
            step,
            context.see("List who joined, what each member had and when it left", Rows("timeline", of_group(group))),
            context.see("List what the group committed, and when", Rows("history", of_group(group))),
        ),
        measured={"attempts": len(first.attempts), "lasted_ms": ended - since},
        thresholds=context.limits_of(f"{KIND}.attempts", "report.group_settles_within"),
    )
    causes = {"polls_too_late": late, "poison_record": passed, "fails_at_start": start}
    if lone is not None:
        record = weigh_record(lone, passed, is_over=True)
        causes |= {PROCESS_DIES: weigh_process(lone, is_over=True), "poison_record": record}
    return Incident(finding, len(first.attempts), causes)


def _how_it_ended(stuck: Span, after: Span, lives: list[MemberLife]) -> str:
    if stuck.ended_by != "commit":
        return "when that offset was deleted"
    if had_no_members(lives, after):
        return f"when the group had no members: a tool, or a client that is not a member, committed {after.offset}"
    return f"when members committed {after.offset}"


def _late(group: str, attempts: list[MemberLife], stays: list[int], moves: bool) -> Verdict:
    """Whether members were removed because of max.poll.interval.ms."""
    usual, limits = median(stays) if stays else 0, poll_limits(attempts)
    slow = polls_too_late(limits, stays)
    return Verdict(
        f"The application of {shown(group)} polled too late: its members were removed from the group when "
        "max.poll.interval.ms had passed, before they committed, and the next ones got the same records.",
        evidence_for=(Evidence(slow),) if slow else (),
        evidence_against=(Evidence("other partitions of the group moved on meanwhile"),) if moves else (),
        refuted_by=(
            Evidence(f"half of the members left within {length(usual)}, and not after a fixed time")
            if not is_fixed_time(stays)
            else (
                Evidence(
                    f"half of the members left within {length(usual)}; max.poll.interval.ms is {length(limits[0])}"
                )
                if limits and not slow
                else None
            )
        ),
        lacked=() if limits else ("max.poll.interval.ms of the members of that time",),
    )
