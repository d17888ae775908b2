"""Consumers that fail because the log no longer has the offset they read from (OffsetOutOfRangeException, with
auto.offset.reset none)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.facts.gone_offsets import GoneOffset
from kafka_records_tables.report.facts.group_facts import stopped_quickly
from kafka_records_tables.report.incident_rule import Incident, PossibleCause
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, ReportFinding, Rows
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    listed,
    of_group,
    shown,
)
from kafka_records_tables.report.rules.stuck_partitions import KIND, StuckPartition, departures_shown, who_left
from kafka_records_tables.topics import OFFSETS

TITLE = "members leave and join again, endlessly: the log no longer has their offset"

OUT_OF_RANGE = PossibleCause(
    "offset_out_of_range",
    "the log no longer has the committed offset, and auto.offset.reset=none",
    "for: the offset is below the start of the log",
)


def gone_offsets(
    group: str, stuck: Sequence[StuckPartition], rows: Iterable[Mapping[str, Any]]
) -> list[tuple[StuckPartition, GoneOffset]]:
    """The partitions of a loop whose committed offset is below the start of the log, given rows of `lag`. Only members
    that joined after the commit count, because the member that committed had not failed."""
    starts = {
        (row["topic"], row["partition"]): row["log_start_offset"] for row in rows if row["problem"] == "below_log_start"
    }
    found = []
    for each in stuck:
        start, since = starts.get((each.topic, each.partition)), each.span.from_ms or 0
        failed = [x.left_ms for x in each.attempts if x.left_ms is not None and (x.joined_ms or 0) >= since]
        if start is not None and failed:
            gone = GoneOffset(group, each.topic, each.partition, each.offset, start, since, min(failed), len(failed))
            found.append((each, gone))
    return found


def out_of_range_incident(
    context: RuleContext, stuck: Sequence[StuckPartition], gone: list[tuple[StuckPartition, GoneOffset]]
) -> Incident:
    """The finding about members that repeatedly try to read from an offset that the log no longer has.

    It is an effect of the deletion, unless the loop has lasted as long as the topic keeps records. In that case,
    members failed before the deletion, on a record that has since been deleted.
    """
    one, first = gone[0]
    group, tries = first.group, [each for each in one.attempts if (each.joined_ms or 0) >= first.committed_ms]
    usual = median([each for each in map(stopped_quickly, tries) if each is not None] or [0])
    clients = Counter(each.name for each in tries)
    kept_ms = cluster_settings(context).retention_ms(first.topic)
    outlasted = kept_ms is not None and context.at_ms - first.failed_ms >= kept_ms
    others = [each for each in stuck if each is not one]
    along = (
        f" {', '.join(f'{each.place} at {each.offset}' for each in others[:4])}"
        f" {'has' if len(others) == 1 else 'have'} not moved since either."
        if others
        else ""
    )
    below = Evidence(
        f"{one.place} is committed at {first.offset}, and the log starts at {first.log_start}",
        OFFSETS,
        one.span.log_partition,
        one.span.log_offset,
        first.committed_ms,
    )
    causes = {
        OUT_OF_RANGE.name: Verdict(
            f"The log of {one.place} no longer has offset {first.offset}: a consumer with auto.offset.reset none fails "
            "there with OffsetOutOfRangeException each time, no matter what the records are.",
            evidence_for=(below,),
            lacked=("auto.offset.reset of the members",),
        ),
        "fails_at_start": Verdict("The application fails before it has processed anything, for another reason."),
    }
    if outlasted:
        causes["poison_record"] = Verdict(
            f"The application failed on a record at or after offset {first.offset} of {one.place}, and the retention "
            "has deleted it since."
        )
    waiting = sum(each.lag for each in stuck)
    goes_on = max(each.left_ms or 0 for each in tries) >= context.at_ms - max(10 * usual, 60_000)
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if goes_on else Level.MODERATE,
        title=TITLE,
        problem=(
            f"The group {shown(group)} does not get past offset {first.offset} of {shown(first.topic)} partition "
            f"{first.partition}, which the log no longer has: it starts at {first.log_start}. "
            f"{counted(len(tries), 'member')} took the partition since and left, half of them within {length(usual)} "
            f"({listed(list(clients))}).{along}"
        ),
        impact=f"{counted(waiting, 'record')} of {counted(len(stuck), 'partition')} wait, and more come.",
        consequence="work_stopped",
        group_ids=(group,),
        topics=tuple(sorted({each.topic for each in stuck})),
        partitions=tuple(sorted({each.partition for each in stuck if each.topic == first.topic})),
        who=who_left(group, tries),
        since_timestamp_ms=first.failed_ms,
        is_going_on=goes_on,
        scale={"records_waiting": waiting, "attempts": len(tries), "partitions": len(stuck)},
        evidence=(below, *departures_shown(tries, MOST_EVIDENCE - 1)),
        evidence_count=1 + len(tries),
        rows=(Rows("timeline", of_group(group)), Rows("lag", of_group(group))),
        next=(
            context.see("List where logs start, and where the group is", Rows("lag", of_group(group))),
            context.see("List who joined, what each member had and when it left", Rows("timeline", of_group(group))),
        ),
        measured={"attempts": len(tries), "stay_ms": round(usual)},
        thresholds=context.limits_of(f"{KIND}.attempts"),
    )
    return Incident(finding, len(tries), causes, gone=() if outlasted else tuple(each for _, each in gone))
