"""Consumers that fail on a record, leave, rejoin, and fail on it again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.cleaned_loops import is_cut
from kafka_records_tables.report.facts.group_facts import (
    MemberLife,
    Offset,
    Place,
    Span,
    commit_spans,
    groups_with_departures,
    log_ends,
    member_lives,
    stopped_quickly,
)
from kafka_records_tables.report.facts.known_logs import ends_of_logs, without_end
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, command_of, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import AT_LEAST, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    RuleContext,
    counted,
    length,
    listed,
    of_group,
    shown,
)
from kafka_records_tables.report.rules.cleaned_crash_loops import cleaned_incidents
from kafka_records_tables.report.rules.dying_processes import CAUSE as PROCESS_CAUSE
from kafka_records_tables.report.rules.dying_processes import (
    DECIDES,
    LoneProcess,
    finding_of_process,
    lone_process,
    weigh_process,
    weigh_record,
)
from kafka_records_tables.report.rules.dying_processes import NAME as PROCESS_DIES
from kafka_records_tables.report.rules.out_of_range_loops import OUT_OF_RANGE, gone_offsets, out_of_range_incident
from kafka_records_tables.report.rules.past_crash_loops import past_incident, past_loops
from kafka_records_tables.report.rules.rebalancing import scaled_since
from kafka_records_tables.report.rules.scaled_groups import may_be_scaled
from kafka_records_tables.report.rules.silent_readers import DOES_NOT_COMMIT, PROCESSES, reads_without_commits
from kafka_records_tables.report.rules.stuck_partitions import (
    KIND,
    StuckPartition,
    departures_shown,
    how_they_left,
    look_at,
    poll_limits,
    polls_too_late,
    rises,
    step_past,
    usual_attempts,
    usual_step,
    who_left,
)
from kafka_records_tables.report.rules.timed_out_transactions import CAUSE as TIMEOUT_CAUSE
from kafka_records_tables.report.rules.timed_out_transactions import with_timeouts
from kafka_records_tables.report.rules.uncommitted_starts import CAUSE as NO_OFFSET_CAUSE
from kafka_records_tables.report.rules.uncommitted_starts import QUESTIONS as NO_OFFSET_QUESTIONS
from kafka_records_tables.report.rules.uncommitted_starts import no_offsets, with_no_offsets
from kafka_records_tables.topics import OFFSETS


def _suspects(context: RuleContext) -> dict[str, list[dict[str, Any]]]:
    """Groups that many members left, with their partitions that have unread records, from `lag`. Groups without unread
    records are left out."""
    groups = groups_with_departures(context, context.limit(f"{KIND}.attempts"))
    lag = context.table("lag")
    lag = kept(lag, equal(lag, "group_id", *groups), pc.greater(lag["lag"], 0))
    found: dict[str, list[dict[str, Any]]] = {each: [] for each in groups}
    for row in lag.to_pylist():
        found[row["group_id"]].append(row)
    return found


def find(context: RuleContext) -> list[Incident]:
    """The crash loops."""
    suspects = _suspects(context)
    lives = member_lives(context, suspects)
    spans = commit_spans(context, tuple(suspects))
    found = []
    for group, rows in suspects.items():
        stuck = []
        for row in rows:
            of_place = spans.get((group, row["topic"], row["partition"]))
            if of_place and of_place[-1].to_ms is None:
                one = _stuck(context, row, of_place, lives.get(group, []))
                if one is not None:
                    stuck.append(one)
        if stuck and _is_scaling(context, group, stuck):
            continue  # `endless_rebalances` reports it
        if stuck:
            # If the offset of a partition moves from time to time, there were fewer attempts since it last moved.
            most = max(len(each.attempts) for each in stuck)
            stuck = [each for each in stuck if 2 * len(each.attempts) >= most]
            # Internal topics of Kafka Streams come last: what is written to them depends on records read from other
            # topics.
            stuck.sort(
                key=lambda each: (
                    _is_internal(group, each.topic),
                    each.unread_ms or 2**62,
                    each.span.from_ms or 0,
                    each.partition,
                )
            )
            among = _tried_by_all(stuck, group)
            stuck = [*among, *(each for each in stuck if each not in among)]
            others = _others_that_move(spans, group, stuck)
            unknown = _may_be_stuck(context, group, stuck, spans, lives.get(group, []))
            gone = gone_offsets(group, stuck, rows)
            if gone:
                found.append(out_of_range_incident(context, stuck, gone))
                continue
            loop = _incident(context, group, stuck, len(among), others, unknown)
            lone = lone_process(context, group, stuck, spans, lives[group]) if others else None
            none = None if others else no_offsets(context, group, spans, lives[group])
            if none is not None:
                found.append(with_no_offsets(context, loop, none, stuck))
                continue
            loop = loop if lone is None else _of_process(loop, lone, rows)
            found.append(with_timeouts(context, group, stuck, loop))
        elif context.is_stored and (over := past_loops(context, group, spans, lives.get(group, []))):
            found.append(past_incident(context, group, over, lives[group], spans))
    known = {group for each in found for group in each.finding.group_ids}
    return found + cleaned_incidents(context, known)


def _is_scaling(context: RuleContext, group: str, stuck: list[StuckPartition]) -> bool:
    """Whether `endless_rebalances` reports that a group is scaled up and down, since before its members began to leave
    without moving the offset."""
    if not may_be_scaled(context, group):
        return False
    since_ms = context.once(scaled_since).get(group)
    first_ms = min(each.left_ms or 0 for place in stuck for each in place.attempts)
    return since_ms is not None and since_ms <= first_ms


def _is_internal(group: str, topic: str) -> bool:
    """Whether a topic has a name like those that Kafka Streams creates: the application.id, which is the group id, and
    the topic's use (`InternalTopicConfig`)."""
    return topic.startswith(f"{group}-") and topic.endswith(("-repartition", "-changelog"))


def _tried_by_all(stuck: list[StuckPartition], group: str) -> list[StuckPartition]:
    """The partitions that may have the record, because all members that left had been assigned them; the first
    partition if there are none."""
    tries = [{each.member_id for each in place.attempts} for place in stuck]
    every: set[str] = set().union(*tries)
    found = [place for place, members in zip(stuck, tries, strict=True) if members == every]
    return [each for each in found if not _is_internal(group, each.topic)] or found or stuck[:1]


def _may_be_stuck(
    context: RuleContext,
    group: str,
    stuck: list[StuckPartition],
    spans: dict[Offset, list[Span]],
    lives: list[MemberLife],
) -> list[tuple[Place, int]]:
    """Other partitions with an unmoved offset and an unknown log end, each with that offset. The record on which
    members fail may be in one of them, or there may be nothing left to read."""
    since = _since(stuck)
    tried = {place for each in lives if (each.left_ms or 0) >= since for place in each.places}
    found = []
    for place in without_end(context, [group]):
        of_place = spans.get((group, *place), [])
        if place in tried and of_place and not rises(of_place, since):
            found.append((place, of_place[-1].offset))
    return found


def _others_that_move(spans: dict[Offset, list[Span]], group: str, stuck: list[StuckPartition]) -> int:
    """The number of a group's partitions whose offsets have risen after the first of the stuck ones."""
    since = _since(stuck)
    still = {(group, each.topic, each.partition) for each in stuck}
    return sum(rises(of_place, since) for key, of_place in spans.items() if key[0] == group and key not in still)


def _since(stuck: list[StuckPartition]) -> int:
    """When the first of the given partitions stopped moving."""
    return min(max(each.span.from_ms or 0, each.unread_ms or 0) for each in stuck)


def _stuck(
    context: RuleContext, row: dict[str, Any], spans: list[Span], lives: list[MemberLife]
) -> StuckPartition | None:
    last, place = spans[-1], (row["topic"], row["partition"])
    since = max(last.from_ms or 0, row["unread_timestamp_ms"] or 0)
    left = [each for each in lives if each.left_ms is not None and place in each.places]
    attempts = [each for each in left if (each.left_ms or 0) >= since]
    if len(attempts) < context.limit(f"{KIND}.attempts"):
        return None
    # Members that leave while there is nothing to read do not count now, so they must not count in the past either.
    ends = None if row["unread_timestamp_ms"] is None else log_ends(context)
    usual = usual_attempts(spans[:-1], left, None if ends is None else partial(ends.written_ms, place))
    if len(attempts) < 2 * (usual or 0):
        return None
    # A job that starts and stops reads all available records. If a member had the partition and its offset did not
    # move, the member tried and failed.
    step = usual_step(spans)
    return StuckPartition(*place, last.offset, row["lag"], row["unread_timestamp_ms"], last, attempts, usual, step)


def _incident(
    context: RuleContext,
    group: str,
    stuck: list[StuckPartition],
    among: int,
    others: int,
    unknown: list[tuple[Place, int]],
) -> Incident:
    """If others move, only the first `among` partitions may have the record."""
    first = stuck[0]
    tries = first.attempts
    stays = [each for each in map(stopped_quickly, tries) if each is not None]
    usual = median(stays) if stays else 0
    clients = Counter(each.name for each in tries)
    always = ", always under new member ids" if len({each.member_id for each in tries}) == len(tries) else ""
    leaving = how_they_left(context, group, stays)
    others_stuck = sorted(stuck[1:], key=lambda each: (each.topic, each.partition))
    more = [f"{each.place} at {each.offset}" for each in others_stuck]
    along = f" {', '.join(more[:4])} {'has' if len(more) == 1 else 'have'} not moved since either." if more else ""
    may_be = " or ".join(f"offset {offset} of {topic}-{partition}" for (topic, partition), offset in unknown[:4])
    lacked = (ends_of_logs(place for place, _ in unknown),) if unknown else ()
    if unknown:
        along += f" The record on which they fail may also be at {may_be}, which does not move either."
    goes_on = max(each.left_ms or 0 for each in tries) >= context.at_ms - max(10 * usual, 60_000)
    moves = others > 0
    # Unless other partitions move, members may fail before they process any record, so nothing is known about it.
    is_one = among == 1 if moves else not more
    which = [f"{each.place} at {each.offset}" for each in stuck[: among if moves else 5]]
    step = first.step if is_one else None
    skip = step_past(context, group, (first.topic, first.partition), first.offset, step)
    least = "at least " if is_cut(context, group, _since(stuck[:1])) else ""
    silent = None if moves else reads_without_commits(context, group, stays)
    long_stays = () if silent is None else silent.evidence_for[:1]
    usual_tries = f"at most {counted(first.usual, 'member')}" if first.usual else "no member"
    poison = Verdict(
        (
            f"The application fails on {first.record}: no member gets past it."
            if not unknown and is_one
            else (
                "The application fails on a record of one of these partitions, at the offset or soon after it: "
                f"{', '.join(which[:5])}."
                if not unknown
                else f"The application fails on a record at or soon after offset {first.offset} of {first.place}, or "
                f"{may_be}."
            )
        ),
        evidence_for=(
            Evidence(
                f"the offset of {first.place} stays {first.offset} while {counted(len(tries), 'member')} had "
                "the partition and left",
                OFFSETS,
                first.span.log_partition,
                first.span.log_offset,
                first.span.from_ms,
            ),
            *((Evidence("other partitions of the group move on", OFFSETS, first.span.log_partition),) if moves else ()),
            *(
                (
                    Evidence(
                        f"before, in 95 % of the cases, {usual_tries} had {first.place} and left before its offset "
                        "moved"
                    ),
                )
                if first.usual is not None
                else ()
            ),
        ),
        steps=(
            (*(look_at(context, (each.topic, each.partition), each.offset, step) for each in stuck[:among][:3]), skip)
            if not unknown
            else tuple(
                look_at(context, place, offset)
                for place, offset in [((first.topic, first.partition), first.offset), *unknown[:3]]
            )
        ),
        evidence_against=long_stays,
        lacked=lacked,
    )
    start = Verdict(
        "The application fails before it has processed anything, regardless of the record: no partition of the group "
        "moves.",
        evidence_for=() if moves else (Evidence("no partition of the group moves", OFFSETS, first.span.log_partition),),
        evidence_against=long_stays,
        refuted_by=Evidence("other partitions of the group move on meanwhile") if moves else None,
    )
    slow = polls_too_late(poll_limits(tries), stays)
    late = Verdict(
        f"The application of {shown(group)} polls too late: its members are removed from the group when "
        "max.poll.interval.ms has passed, before they commit, and the next ones get the same records.",
        evidence_for=(Evidence(slow),) if slow else (),
        evidence_against=(Evidence("other partitions of the group move on"),) if moves else (),
        is_certain=bool(slow) and not moves,
        refuted_by=(
            None if slow else Evidence(f"half of the members left within {length(usual)}, and not after a fixed time")
        ),
        steps=(
            NextStep(
                "Find out why the work became slow; until then lower max.poll.records, or raise max.poll.interval.ms "
                "above the time that one poll takes"
            ),
        ),
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if goes_on else Level.MODERATE,
        title=(
            "members poll too late, are removed and join again, endlessly"
            if late.is_certain
            else "members join and leave again and again, and no offset moves" if long_stays else RULE.title
        ),
        problem=(
            f"The group {shown(group)} does not get past offset {first.offset} of {shown(first.topic)} partition "
            f"{first.partition}: {least}{counted(len(tries), 'member')} took the partition since and left, half of "
            f"them within {length(usual)}{always} ({listed(list(clients))}).{leaving}{along}"
        ),
        impact=(
            f"{counted(sum(each.lag for each in stuck), 'record')} of {counted(len(stuck), 'partition')} wait, and more"
            " come. Each restart rebalances the group."
        ),
        consequence="work_stopped",
        group_ids=(group,),
        topics=tuple(sorted({each.topic for each in stuck})),
        partitions=tuple(sorted({each.partition for each in stuck if each.topic == first.topic})),
        who=who_left(group, tries),
        since_timestamp_ms=first.span.from_ms,
        is_going_on=goes_on,
        scale={
            "records_waiting": sum(each.lag for each in stuck),
            "records_waiting_after_the_stuck_offset": stuck[0].lag,
            f"attempts{AT_LEAST if least else ''}": len(tries),
            "partitions": len(stuck),
        },
        evidence=departures_shown(tries),
        evidence_count=len(tries),
        rows=(Rows("timeline", of_group(group)), Rows("lag", of_group(group))),
        next=(
            context.see("List who joined, what each member had and when it left", Rows("timeline", of_group(group))),
            context.see("List which offsets move and which do not", Rows("lag", of_group(group))),
        ),
        measured={"attempts": len(tries), "stay_ms": round(usual)},
        thresholds=context.limits_of(f"{KIND}.attempts"),
    )
    causes = {"polls_too_late": late, "poison_record": poison, "fails_at_start": start}
    if silent is not None:
        causes["does_not_commit"] = silent
    look = look_at(context, (first.topic, first.partition), first.offset, first.step)
    return Incident(finding, len(tries), causes, look.command)


def _of_process(found: Incident, lone: LoneProcess, lags: list[dict[str, Any]]) -> Incident:
    """The incident, if possibly only one process fails. Then the record may not be the cause."""
    record = weigh_record(lone, found.verdicts["poison_record"])
    verdicts = {**found.verdicts, PROCESS_DIES: weigh_process(lone), "poison_record": record}
    return replace(found, finding=finding_of_process(lone, found.finding, lags), verdicts=verdicts)


RULE = incident_rule(
    kind=KIND,
    title="members fail on a record, leave and join again, endlessly",
    about="""\
Partitions with records to read whose offset does not move while `attempts` members (more if members always leave early)
get it one after another and leave. Jobs that start and end are left out.

Files also show loops that are over, if they lasted `report.group_settles_within`. If a cleaner has removed the
beginning, counts are lower bounds, and classic groups may not be found.""",
    tables=("timeline", "lag", "members", "groups", "assignments", "pending_offsets", "log_ends", "progress"),
    levels={
        Level.HIGH: "it goes on",
        Level.MODERATE: "the last failure was a while ago, or it is over and lasted longer than the topic keeps "
        "records",
        Level.LOW: "it is over (from files)",
    },
    find=find,
    listing=Rows("timeline", ("event=member_left",)),
    causes=(
        TIMEOUT_CAUSE,
        PossibleCause(
            "polls_too_late",
            "members are removed when max.poll.interval.ms has passed",
            "for: they stay exactly that long; refuted otherwise",
        ),
        DOES_NOT_COMMIT,
        NO_OFFSET_CAUSE,
        PROCESS_CAUSE,
        PossibleCause(
            "poison_record",
            "the application cannot process a record",
            "for: other offsets move",
        ),
        PossibleCause(
            "fails_at_start",
            "the application cannot work at all",
            "for: no partition moves; refuted if one moves",
        ),
        OUT_OF_RANGE,
    ),
    questions=(
        *(
            Question("does_not_commit", other, PROCESSES, command_of(find))
            for other in ("poison_record", "fails_at_start")
        ),
        Question(PROCESS_DIES, "poison_record", DECIDES, command_of(find), asked="if_undecided"),
        *NO_OFFSET_QUESTIONS,
    ),
    thresholds=(
        Threshold(
            "attempts",
            "count",
            4,
            "members that had a partition and left before its offset moved",
            "a deployment that fails is repeated two or three times",
        ),
    ),
    folds=(
        Folds("endless_rebalances"),
        Folds("too_slow"),
        Folds("group_emptied"),
        Folds("two_committers"),
        Folds("members_unsettled"),
        Folds("group_stands_still"),
        Folds("transaction_open", ("transactional_id",)),
    ),
    effect_title="members join and leave again and again, and no offset moves",
)

RULES = (RULE,)
