"""Partitions of a topic that a group never reads although it reads the others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept, numbers
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, LogEnds, Offset, Span, commit_spans, log_ends
from kafka_records_tables.report.facts.known_logs import known_ends
from kafka_records_tables.report.facts.moved_groups import without_old_copies
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.facts.usual_values import STOP, UsualGap, usual_gap
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    HOUR_MS,
    RuleContext,
    counted,
    moment,
    of_group,
    partitions_shown,
    shown,
)
from kafka_records_tables.topics import METADATA, OFFSETS

if TYPE_CHECKING:
    import pyarrow as pa

KIND: Final = "partitions_left_out"
_FIXED, _UNASSIGNED = "fixed_partitions", "assigned_to_nobody"
_INTERNAL: Final = "__"
_END: Final = re.compile("([-_.:][0-9A-Za-z]*|[0-9]+)$")
"""The part of the name that differs between groups that share a topic's partitions."""

GroupTopic = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """The partitions of a topic that a group does not read."""

    group: str
    topic: str
    read: list[int]
    partitions: list[int]
    first: Span
    """The group's first commit for the topic."""
    gap: UsualGap
    unread: int
    """The number of records written to these partitions since then."""
    since_ms: int
    added: dict[str, Any] | None
    """The change that added all of these partitions after the group had begun; None if there is none."""


def _find(context: RuleContext) -> list[Incident]:
    suspects = _suspects(context)
    if not suspects:
        return []
    names = {group for group, _ in suspects}
    groups = kept(context.table("groups"), equal(context.table("groups"), "group_id", *names))
    kinds = {each["group_id"]: each["group_kind"] for each in without_old_copies(context, groups).to_pylist()}
    assigned = _by_topic(context.table("assignments"), list(suspects))
    there: dict[str, set[int]] = {}
    for topic, number in known_ends(context):
        there.setdefault(topic, set()).add(number)
    left_over = {
        (group, topic): there.get(topic, set()) - committed - assigned[group, topic]
        for (group, topic), committed in suspects.items()
        # Members are assigned their partitions, and the log shows the assignments.
        if kinds.get(group) == "simple" or (kinds.get(group) in ("classic", "consumer") and assigned[group, topic])
    }
    left_over = {key: partitions for key, partitions in left_over.items() if partitions}
    spans = commit_spans(context, sorted({group for group, _ in left_over})[:MOST_GROUPS])
    found = []
    for (group, topic), partitions in left_over.items():
        is_simple = kinds[group] == "simple"
        left = _left_out(context, group, topic, partitions, spans, is_simple)
        if left is not None:
            others = _sharers(left, suspects)
            if not any(_END.sub("", each) == _END.sub("", group) for each in others):
                found.append(_incident(context, left, is_simple, others))
    return found


def _suspects(context: RuleContext) -> dict[GroupTopic, set[int]]:
    """By group and topic, the partitions of groups that have committed offsets for some partitions with records, but
    not for all. Only groups that committed within the last hour are included."""
    ends = context.table("log_ends")
    ends = kept(
        ends,
        pc.invert(pc.starts_with(ends["topic"], _INTERNAL)),
        pc.greater(ends["log_end_offset"], ends["log_start_offset"]),
    )
    counts = grouped(ends, ["topic"], [("partition", "count")])
    wanted = dict(zip(*(counts[name].to_pylist() for name in ("topic", "partition_count")), strict=True))
    rows = context.table("current_offsets")
    rows = kept(rows, pc.is_in(rows["topic"], counts["topic"].combine_chunks()))
    of_groups = grouped(rows, ["group_id", "topic"], [("partition", "count_distinct"), ("commit_timestamp_ms", "max")])
    of_groups = kept(of_groups, numbers(of_groups, "commit_timestamp_ms_max", 0) >= context.at_ms - HOUR_MS)
    names = ("group_id", "topic", "partition_count_distinct")
    fewer = [
        (group, topic)
        for group, topic, number in zip(*(of_groups[name].to_pylist() for name in names), strict=True)
        if number < wanted[topic]
    ]
    return _by_topic(rows, fewer)


def _by_topic(rows: pa.Table, wanted: list[GroupTopic]) -> dict[GroupTopic, set[int]]:
    """The partitions in rows of some groups and topics."""
    found: dict[GroupTopic, set[int]] = {each: set() for each in wanted}
    rows = kept(rows, equal(rows, "group_id", *{group for group, _ in wanted})) if wanted else rows.slice(0, 0)
    for row in rows.select(["group_id", "topic", "partition"]).to_pylist():
        if (row["group_id"], row["topic"]) in found and row["partition"] is not None:
            found[row["group_id"], row["topic"]].add(row["partition"])
    return found


def _left_out(
    context: RuleContext,
    group: str,
    topic: str,
    partitions: set[int],
    spans: dict[Offset, list[Span]],
    is_simple: bool,
) -> _LeftOut | None:
    own = {number: each for (name, of_topic, number), each in spans.items() if (name, of_topic) == (group, topic)}
    times = sorted({each.from_ms for of_place in own.values() for each in of_place if each.from_ms is not None})
    gap = usual_gap(times)
    limit = context.limit(f"{KIND}.{'after' if is_simple else 'assigned_after'}")
    ends, at_ms = known_ends(context), context.at_ms
    if gap is None or any((topic, number) not in ends for number in own):
        return None
    wait = max(limit, STOP * gap.most_ms)
    if at_ms - times[-1] > wait:
        return None
    logs, began = log_ends(context), times[0]
    unread = {
        number: count
        for number in sorted(partitions - set(own))
        if (count := _written(logs, topic, number, began, at_ms - wait, ends[topic, number]))
    }
    lag = context.rows_of_group("lag", group)
    lag = kept(lag, equal(lag, "topic", topic))
    behind = sum(each or 0 for each in lag["lag"].to_pylist())
    if not unread or behind >= sum(unread.values()):
        return None
    first = min((of_place[0] for of_place in own.values()), key=lambda each: each.from_ms or 0)
    changes = changes_of(context, topic)
    added = [each for each in changes if each["event"] == "partitions_added" and (each["at_timestamp_ms"] or 0) > began]
    before = min((_before(changes, each) for each in added), default=None)
    is_new = before is not None and min(unread) >= before
    return _LeftOut(
        group,
        topic,
        sorted(own),
        list(unread),
        first,
        gap,
        sum(unread.values()),
        min((each["at_timestamp_ms"] for each in added), default=began) if is_new else began,
        added[0] if is_new else None,
    )


def _before(changes: list[dict[str, Any]], change: dict[str, Any]) -> int:
    """The number of partitions that a topic had before a change."""
    earlier = [each["partition_count"] or 0 for each in changes[: changes.index(change)] if each["event"] != "deleted"]
    return max(earlier[-1:], default=0)


def _written(logs: LogEnds, topic: str, partition: int, began_ms: int, until_ms: int, end: int) -> int:
    """The number of records written since a group began; 0 if unknown, or if all of them are new."""
    place = topic, partition
    first, then = logs.end_at(place, began_ms), logs.end_at(place, until_ms)
    first = logs.start(place) if first is None else first
    return 0 if first is None or then is None or then <= first else end - first


def _sharers(left: _LeftOut, suspects: dict[GroupTopic, set[int]]) -> list[str]:
    """Other groups that read a part of the topic too, if together they read everything that this group leaves out."""
    others = {group: read for (group, topic), read in suspects.items() if topic == left.topic and group != left.group}
    covered = set().union(*others.values())
    return sorted(others) if covered >= set(left.partitions) else []


def _incident(context: RuleContext, left: _LeftOut, is_simple: bool, sharers: list[str]) -> Incident:
    group, topic = shown(left.group), shown(left.topic)
    parts, added = partitions_shown(left.partitions), left.added
    level = Level.HIGH if added is not None else Level.NOTE if is_simple else Level.MODERATE
    if sharers:
        level = Level.NOTE
    grown = (
        ()
        if added is None
        else (
            Evidence(
                f"the topic has had {added['partition_count']} partitions since {moment(added['at_timestamp_ms'])}",
                METADATA,
                0,
                added["log_offset"],
                added["at_timestamp_ms"],
            ),
        )
    )
    commits = Evidence(
        f"{left.group} began to commit {left.topic}, and has never committed {parts}",
        OFFSETS,
        left.first.log_partition,
        left.first.log_offset,
        left.first.from_ms,
    )
    later = "" if added is None else f" These were added at {moment(added['at_timestamp_ms'])}, after it had begun."
    by_others = "" if not sharers else f" {counted(len(sharers), 'other group')} read them."
    rows = Rows("current_offsets", (*of_group(left.group), f"topic={left.topic}"))
    fixed = Verdict(
        f"The application of {group} assigns itself a fixed list of partitions (assign), which does not have {parts}.",
        evidence_for=(commits, *grown),
        refuted_by=None if is_simple else Evidence("the group has members, which get their partitions assigned"),
    )
    unassigned = Verdict(
        f"The members of {group} have not been assigned {parts}: the member that computes the assignment does "
        "not know them, or leaves them out.",
        evidence_for=(commits, *grown),
        refuted_by=Evidence("the group has had no members at all") if is_simple else None,
    )
    names = ",".join(str(each) for each in left.partitions)
    finding = ReportFinding(
        kind=KIND,
        level=level,
        title=RULE.title,
        problem=(
            f"The group {group} reads {partitions_shown(left.read)} of {topic} and has never committed an offset of "
            f"{parts}, which {'has' if len(left.partitions) == 1 else 'have'} {counted(left.unread, 'record')} "
            f"that were written since it began.{later}{by_others}"
        ),
        impact=(
            f"These records are not processed by {group}, and are lost for it once they are deleted (retention.ms)."
            if level > Level.NOTE
            else "That is right if others process these records."
        ),
        consequence="work_stopped" if level > Level.NOTE else "none",
        group_ids=(left.group,),
        topics=(left.topic,),
        partitions=tuple(left.partitions),
        since_timestamp_ms=left.since_ms,
        since_note=None if added is not None else "its first commit of the topic",
        is_going_on=True,
        scale={"records_waiting": left.unread, "partitions": len(left.partitions)},
        symptom_confidence="high" if added is not None else "medium",
        why_not_sure=None if added is not None else "an application may be meant to read only some partitions",
        evidence=(commits, *grown),
        evidence_count=1 + len(grown),
        rows=(rows,),
        next=(
            NextStep(
                f"Add {parts} to the list of partitions of its application, or let it subscribe to {topic}"
                if is_simple
                else f"Restart the members of {group}: they then learn how many partitions {topic} has"
            ),
            context.ask_kafka(
                "Before it reads them, set its offsets there to the start: otherwise auto.offset.reset decides, and "
                "may skip these records. This shows what would be set, and sets it with --execute in place of "
                "--dry-run",
                "kafka-consumer-groups",
                "--reset-offsets",
                *option("--group", left.group),
                *option("--topic", f"{left.topic}:{names}"),
                "--to-earliest",
                "--dry-run",
            ),
            context.see("List the offsets that it has committed", rows),
            context.ask_kafka("See all partitions", "kafka-topics", "--describe", *option("--topic", left.topic)),
        ),
        measured={"usual_interval_ms": left.gap.median_ms, "records": left.unread},
        thresholds=context.limits_of(f"{KIND}.after", f"{KIND}.assigned_after"),
    )
    return Incident(finding, left.unread, {_FIXED: fixed, _UNASSIGNED: unassigned})


RULE = incident_rule(
    kind=KIND,
    title="a group does not read some partitions of a topic",
    about=f"""\
Groups that commit offsets of some partitions of a topic and never of others, to which records were written
for longer than `after` and twice the longest interval between its commits. With members, the
partitions must be assigned to none of them, for `assigned_after`. Left out are groups that together read all
partitions and whose names differ only at their ends. Files of the topic and of `{OFFSETS}` are needed.""",
    tables=("current_offsets", "log_ends", "lag", "groups", "assignments"),
    levels={
        Level.HIGH: "the partitions were added after the group had begun",
        Level.MODERATE: "no record shows that, and the group has members",
        Level.NOTE: "no record shows that, and the group assigns itself partitions; or other groups read all "
        "of these partitions",
    },
    find=_find,
    listing=Rows("current_offsets"),
    causes=(
        PossibleCause(
            _FIXED,
            "the application assigns itself a fixed list of partitions",
            "for: it commits without members",
        ),
        PossibleCause(
            _UNASSIGNED,
            "no member was assigned the partitions",
            "for: no assignment has them",
        ),
    ),
    thresholds=(
        Threshold(
            "after",
            "duration",
            "1m",
            "how long records must have waited, if the group has no members",
            "a job that has just begun commits its partitions one after another",
            "assigned_after",
        ),
        Threshold(
            "assigned_after",
            "duration",
            "10m",
            "the same, if it has members",
            "consumers look for new partitions every five minutes (metadata.max.age.ms)",
        ),
    ),
)

RULES = (RULE,)
