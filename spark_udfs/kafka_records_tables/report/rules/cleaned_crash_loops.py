"""Consumers that repeatedly fail on a record, if a cleaner has removed most of the group's records."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.cleaned_loops import CleanedLoop, cleaned_loops
from kafka_records_tables.report.facts.departed_members import TABLE as DEPARTED
from kafka_records_tables.report.facts.group_facts import member_lives, stopped_quickly
from kafka_records_tables.report.incident_rule import Incident
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import AT_LEAST, Actor, Evidence, ReportFinding, Rows
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.report.rules.stuck_partitions import KIND, departures_shown, look_at, poll_limits, step_past
from kafka_records_tables.topics import OFFSETS

_NO_POLL_LIMIT_MS = 1000
"""The lowest value of max.poll.interval.ms that is used in practice."""


def cleaned_incidents(context: RuleContext, known: set[str]) -> list[Incident]:
    """A finding for each group whose members seem to fail on a record, except for `known` groups, which already have
    one."""
    return [_incident(context, each) for each in cleaned_loops(context, known)]


def _incident(context: RuleContext, loop: CleanedLoop) -> Incident:
    group, (topic, partition), offset = loop.group_id, loop.place, loop.span.offset
    number, last = len(loop.departures), loop.departures[-1]
    members = context.rows_of_group("members", group).to_pylist()
    goes_on = last >= context.at_ms - max(10 * loop.every_ms, 60_000)
    waits = loop.lag + sum(_lag(context, group, place) for place, _ in loop.others)
    more = [f"{each[0]}-{each[1]} at {at}" for each, at in loop.others[:4]]
    along = f" {', '.join(more)} {'does' if len(more) == 1 else 'do'} not move either." if more else ""
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if goes_on else Level.MODERATE,
        title="members seem to fail on a record, leave and join again, endlessly",
        problem=(
            f"The group {shown(group)} does not get past offset {offset} of {shown(topic)} partition {partition}, "
            f"where a record has waited since {moment(loop.written_ms)}: {_seen_words(loop)}{along}"
        ),
        impact=(
            f"{counted(waits, 'record')} of {counted(1 + len(loop.others), 'partition')} wait, and more come. Each "
            "restart rebalances the group."
        ),
        consequence="work_stopped",
        group_ids=(group,),
        topics=tuple(sorted({topic, *(place[0] for place, _ in loop.others)})),
        partitions=tuple(sorted({partition, *(place[1] for place, _ in loop.others if place[0] == topic)})),
        who=_who(loop, members),
        since_timestamp_ms=loop.written_ms,
        since_note=None if loop.by_tombstones else "when the record was written; compaction removed the first attempts",
        is_going_on=goes_on,
        scale={
            "records_waiting": waits,
            "records_waiting_after_the_stuck_offset": loop.lag,
            f"attempts{AT_LEAST}": number,
            "partitions": 1 + len(loop.others),
        },
        symptom_confidence="medium",
        why_not_sure="compaction removed the assignments and commits of earlier members: the offset may have moved "
        "meanwhile",
        evidence=_evidence(context, loop),
        evidence_count=number,
        rows=(Rows("timeline", of_group(group)), Rows("lag", of_group(group))),
        next=(
            context.see("List what the log still has of its members", Rows("timeline", of_group(group))),
            context.see("List which offsets move and which do not", Rows("lag", of_group(group))),
            context.describe_group(group),
        ),
        measured={"attempts": number, "every_ms": round(loop.every_ms)},
        thresholds=context.limits_of(f"{KIND}.attempts"),
    )
    return Incident(finding, number, _verdicts(context, loop))


def _seen_words(loop: CleanedLoop) -> str:
    """The end of a sentence, and another sentence, about the records that are still in the log."""
    if loop.by_tombstones:
        return (
            f"the first member left {length(loop.departures[0] - loop.written_ms)} later, at least "
            f"{len(loop.departures)} have left by now, one every {length(loop.every_ms)}, each under another "
            f"member id, and the offset is still {loop.span.offset}. Compaction removed the assignments and "
            "commits of most of them."
        )
    stays = [each for each in map(stopped_quickly, loop.seen) if each is not None]
    names = listed(list(Counter(each.name for each in loop.seen)))
    again = f", which was committed {counted(loop.span.commits, 'time')}" if loop.span.commits > 1 else ""
    return (
        f"in the {length(loop.departures[-1] - loop.seen_from_ms)} from which compaction removed nothing, "
        f"{counted(len(loop.seen), 'member')} took the partition and left, half of them within "
        f"{length(median(stays) if stays else 0)} ({names}), and the offset stayed{again}. Joins and departures "
        f"have raised its epoch to {loop.epoch} since the group was created."
    )


def _verdicts(context: RuleContext, loop: CleanedLoop) -> dict[str, Verdict]:
    group, place, offset = loop.group_id, loop.place, loop.span.offset
    name = f"{place[0]}-{place[1]}"
    lacked = (f"what compaction removed from {OFFSETS}-{loop.span.log_partition}: earlier commits and members",)
    moves = Evidence("other partitions of the group were read meanwhile") if loop.moved else None
    poison = Verdict(
        f"The application fails on the record at offset {offset} of {name} or one soon after it: no member gets past "
        "it.",
        evidence_for=(
            Evidence(
                (
                    f"members began to leave when the record at offset {offset} of {name} was written"
                    if loop.by_tombstones
                    else f"the offset of {name} stays {offset}; {counted(len(loop.seen), 'member')} had it and left"
                ),
                OFFSETS,
                loop.span.log_partition,
                loop.span.log_offset,
                loop.span.from_ms,
            ),
            *((moves,) if moves else ()),
        ),
        lacked=lacked,
        steps=(look_at(context, place, offset), step_past(context, group, place, offset)),
    )
    start = Verdict(
        "The application fails before it has processed anything, regardless of the record.",
        refuted_by=moves,
        lacked=lacked,
    )
    stay, limits = _longest_stay(loop), poll_limits(member_lives(context, [group]).get(group, []))
    late = Verdict(
        f"The application of {shown(group)} polls too late: its members are removed from the group when "
        "max.poll.interval.ms has passed, before they commit, and the next ones get the same records.",
        evidence_against=() if moves is None else (moves,),
        refuted_by=(
            Evidence(
                f"members leave within {length(stay)} on average"
                + (f", and max.poll.interval.ms is {length(min(limits))}" if limits else "")
            )
            if stay < min(limits, default=_NO_POLL_LIMIT_MS)
            else None
        ),
        lacked=lacked,
    )
    return {"polls_too_late": late, "poison_record": poison, "fails_at_start": start}


def _longest_stay(loop: CleanedLoop) -> float:
    """An upper bound for the mean time that members spent in the group."""
    stays = [each for each in map(stopped_quickly, loop.seen) if each is not None]
    if not loop.by_tombstones and stays:
        return float(median(stays))
    return (loop.departures[-1] - loop.written_ms) * loop.slots / len(loop.departures)


def _evidence(context: RuleContext, loop: CleanedLoop) -> tuple[Evidence, ...]:
    if not loop.by_tombstones:
        return departures_shown(loop.seen)
    rows = context.look(DEPARTED, (loop.group_id,)).to_pylist()
    left = [each for each in rows if each["log_timestamp_ms"] >= loop.written_ms]
    return tuple(
        Evidence(
            f"the member {each['member_id']} has left",
            OFFSETS,
            each["log_partition"],
            each["log_offset"],
            each["log_timestamp_ms"],
        )
        for each in left[:MOST_EVIDENCE]
    )


def _who(loop: CleanedLoop, members: list[dict[str, Any]]) -> tuple[Actor, ...]:
    """The clients that the log still shows."""
    group = loop.group_id
    counts = Counter(each.name for each in loop.seen)
    hosts = {each.name: each.host for each in loop.seen}
    left = [Actor(f"left {counted(count, 'time')}", group, None, name, hosts[name]) for name, count in counts.items()]
    there = [
        Actor("is a member now", group, each["member_id"], each["client_id"], each["client_host"]) for each in members
    ]
    return tuple([*left, *there][:5])


def _lag(context: RuleContext, group: str, place: tuple[str, int]) -> int:
    rows = context.rows_of_group("lag", group)
    of_place = kept(rows, equal(rows, "topic", place[0]))
    return sum(each["lag"] or 0 for each in of_place.to_pylist() if each["partition"] == place[1])
