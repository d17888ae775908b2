"""Groups whose offsets expired or were deleted while they were away, and that restarted from other offsets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept, true_where
from kafka_records_tables.report.command_lines import kafka_command
from kafka_records_tables.report.facts.beginnings import (
    Beginning,
    agreed,
    beginning,
    consequence_of,
    either_words,
    first_member,
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
from kafka_records_tables.report.facts.recreated_topics import is_recreated, was_never_deleted
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
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
from kafka_records_tables.topics import OFFSETS

KIND: Final = "expired_and_began_again"
_CAUSES: Final = {"expired", "group_deleted", "offset_deleted"}
"""Causes in `disappearances` that remove offsets of existing topics."""
_BY_CLEAN_UP: Final = {"expired", "group_expired"}
_BY_REQUEST: Final = {"group_deleted", "offset_deleted"}


@dataclass(frozen=True, slots=True)
class Restart:
    """A partition with a commit made after its offset was deleted."""

    topic: str
    partition: int
    before: Span
    after: Span
    began: Beginning
    member: MemberLife | None
    """The member that made this commit; None if records do not show exactly one."""


def _suspects(context: RuleContext) -> list[str]:
    """Groups that have offsets now, but may have lost earlier ones to a clean-up."""
    rows = context.table("activity")
    counts = [rows[name] for name in ("expirations", "likely_expirations", "deletions", "likely_deletions")]
    counts.append(rows["unclear_deletions"])
    some = np.zeros(rows.num_rows, bool)
    for each in counts:
        some |= true_where(pc.greater(each, 0))
    gone = kept(rows, some)["group_id"].unique()
    there = context.table("current_offsets")["group_id"].unique()
    found: list[str] = gone.filter(pc.is_in(gone, there)).to_pylist()[:MOST_GROUPS]
    return found


def _find(context: RuleContext) -> list[Incident]:
    groups = _suspects(context)
    if not groups:
        return []
    rows = context.look("disappearances", tuple(groups))
    rows = kept(rows, equal(rows, "record", "OffsetCommit"))
    causes = {
        (each["log_partition"], each["log_offset"]): each
        for each in rows.to_pylist()
        if each["log_timestamp_ms"] is not None and _CAUSES & set(each["cause"].split(" or "))
    }
    lives, ends = member_lives(context, groups), log_ends(context)
    found: dict[str, list[tuple[Restart, dict[str, Any]]]] = {}
    gone_at: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for each in causes.values():
        gone_at.setdefault((each["group_id"], each["topic"], each["partition"]), []).append(each)
    for key, spans in commit_spans(context, tuple(groups)).items():
        for before, after in pairwise(spans):
            if before.ended_by != "tombstone" or before.topic_id != after.topic_id:
                continue
            why = [each for each in gone_at.get(key, ()) if before.log_offset < each["log_offset"] < after.log_offset]
            # If the topic was deleted and recreated, the offset was deleted with the topic (`topic_recreated`).
            if why and not is_recreated(context, key[1], before, after, [why[0]["log_timestamp_ms"]]):
                restart = _restart(key[1:], before, after, lives.get(key[0], []), ends, why[0])
                found.setdefault(key[0], []).append((restart, why[0]))
    return [_incident(context, group, some, lives.get(group, [])) for group, some in found.items()]


def _restart(
    place: tuple[str, int], before: Span, after: Span, lives: list[MemberLife], ends: LogEnds, why: dict[str, Any]
) -> Restart:
    joined = [
        each.joined_ms
        for each in lives
        if each.joined_ms is not None and why["log_timestamp_ms"] <= each.joined_ms <= (after.from_ms or 0)
    ]
    began = beginning(ends, place, before.offset, after.offset, min(joined, default=None))
    return Restart(*place, before, after, began, first_member(place, after, lives))


def _incident(
    context: RuleContext, group: str, found: list[tuple[Restart, dict[str, Any]]], lives: list[MemberLife]
) -> Incident:
    found.sort(key=lambda each: (each[1]["log_timestamp_ms"], each[1]["log_offset"]))
    gone, restarts = found[0][1], [each for each, _ in found]
    since = gone["log_timestamp_ms"]
    began = min(each.after.from_ms or 2**62 for each in restarts)
    begins = agreed([(each.began, each.member) for each in restarts])
    again, skipped = sum(each.again for each in begins), sum(each.skipped for each in begins)
    is_unsure, scale = any(each.is_unsure for each in begins), scale_of(begins)
    left = max((each.left_ms for each in lives if each.left_ms is not None and each.left_ms <= since), default=None)
    away = "" if left is None else f", {length(since - left)} after its last member had left ({moment(left)})"
    topics = sorted({each.topic for each in restarts})
    what = []
    if is_unsure:
        what.append(either_words("it", "its", begins))
    elif again:
        what.append(f"it began at the start of the log, and {repeated_words(begins)} were read again")
    is_due = all(each["cause"] == "expired" for _, each in found)
    is_sure = is_due and all(each["possible_causes"] == ["expired"] for _, each in found)
    evidence = tuple(
        Evidence(
            f"the offset of {each.topic}-{each.partition} ({each.before.offset}) is deleted; {each.after.offset} is"
            " committed next",
            OFFSETS,
            why["log_partition"],
            why["log_offset"],
            why["log_timestamp_ms"],
        )
        for each, why in found[:MOST_EVIDENCE]
    )
    expired = Verdict(
        f"The offsets of {shown(group)} expired: the group had no members for longer than offsets.retention.minutes.",
        evidence_for=evidence[:1],
        is_certain=is_sure,
        lacked=(
            ()
            if is_due
            else (f"offsets.retention.minutes of the brokers ({length(context.request.retention_ms)} was assumed)",)
        ),
    )
    words = {
        word
        for each, why in found
        for word in why["possible_causes"]
        if word != "topic_deleted" or not was_never_deleted(context, each.topic, each.before.from_ms)
    }
    others, by_clean_up = words - _BY_CLEAN_UP, bool(words & _BY_CLEAN_UP)
    by_request = bool(words) and words <= _BY_REQUEST
    or_topic = " or its topic" if "topic_deleted" in words else ""
    if not by_clean_up:
        expired = replace(
            expired,
            refuted_by=Evidence(
                "their retention was not over, and a clean-up deletes only offsets whose retention is over"
            ),
            lacked=(),
        )
    deleted = Verdict(
        f"Somebody deleted the group {shown(group)} or its offsets{or_topic} while it was away.",
        evidence_for=() if is_due else evidence[:1],
        is_certain=by_request,
        lacked=(
            () if by_clean_up or by_request else ("the metadata log (__cluster_metadata) since before the deletion",)
        ),
        refuted_by=(
            None
            if others
            else Evidence("exactly the offsets that had expired were deleted, which only a clean-up does")
        ),
    )
    lately = context.at_ms - context.limit(f"{KIND}.lately")
    finding = ReportFinding(
        kind=KIND,
        level=(
            Level.LOW
            if began < lately or not (skipped or again or is_unsure)
            else Level.CRITICAL if scale["records_lost"] else Level.HIGH
        ),
        title=RULE.title if by_clean_up else "offsets of a group were deleted, and it started again elsewhere",
        problem=(
            f"The offsets of the group {shown(group)} for {listed(topics)} ({counted(len(restarts), 'partition')}) were"
            f" deleted at {moment(since)}{away}. When it came back, at {moment(began)}, it had none."
        ),
        impact=(
            f"Without offsets, {' and '.join(what)}."
            if what
            else "It continued where it was: nothing was lost or repeated."
        ),
        consequence=consequence_of(scale),
        group_ids=(group,),
        topics=tuple(topics),
        partitions=tuple(sorted({each.partition for each in restarts})) if len(topics) == 1 else (),
        since_timestamp_ms=since,
        is_going_on=False,
        scale={**scale, "partitions": len(restarts)},
        evidence=evidence,
        evidence_count=len(found),
        rows=(Rows("current_offsets", of_group(group)),),
        next=(
            NextStep(
                "Raise offsets.retention.minutes of the brokers above the longest time that the group is away (7 days "
                "by default), or keep a member running"
                if by_clean_up
                else f"Ask who deleted the group or its offsets{or_topic} at {moment(since)}, and why: to stop an "
                "application, it is enough to stop its members"
            ),
            *(
                (NextStep("Look up auto.offset.reset of the application: if it is earliest, nothing was skipped"),)
                if is_unsure
                else ()
            ),
            NextStep(
                f"{'If records were skipped, read them' if is_unsure else 'Read the skipped records'} with "
                f"another group id, from offset {restarts[0].before.offset} of "
                f"{restarts[0].topic}-{restarts[0].partition} on"
                if skipped
                else "Check whether reading these records a second time did harm"
            ),
            context.see("List each deletion, and how certain its cause is", Rows("disappearances", of_group(group))),
            context.see("List what was committed before and after it", Rows("history", of_group(group))),
        ),
        thresholds=context.limits_of(f"{KIND}.lately"),
    )
    return Incident(finding, skipped + again, {"expired": expired, "offsets_deleted": deleted})


RULE = incident_rule(
    kind=KIND,
    title="offsets expired while a group was away, and it started again elsewhere",
    about="""\
Offsets that expired or were deleted, and the first commits for their partitions afterwards. If the first commit is at
the end of the log, the group began there, or began at the start and read everything: both counts are given.""",
    tables=("activity", "current_offsets", "timeline"),
    levels={
        Level.CRITICAL: "records were skipped",
        Level.HIGH: "records were read again, or may have been",
        Level.LOW: "it started again longer than `lately` ago, or got its offsets back",
    },
    find=_find,
    listing=Rows("activity", ("expirations>0",)),
    causes=(
        PossibleCause(
            "expired",
            "the group was away for longer than the retention of offsets",
            "",
        ),
        PossibleCause(
            "offsets_deleted",
            "somebody deleted the offsets",
            "`disappearances` may decide",
        ),
    ),
    questions=(
        Question(
            "expired",
            "offsets_deleted",
            "Is offsets.retention.minutes of the brokers shorter than the time for which the group was away?",
            lambda context, _: kafka_command(
                "kafka-configs", context.bootstrap, context.config, "--describe", "--entity-type", "brokers", "--all"
            ),
        ),
    ),
    thresholds=(
        Threshold(
            "lately",
            "duration",
            "7d",
            "incidents within this time matter",
            "those affected notice within a week",
        ),
    ),
    folds=(Folds("offsets_began_again"), Folds("offsets_rewound")),
)

RULES = (RULE,)
