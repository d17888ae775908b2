"""Records that a share group archived at any time, even if its present state no longer contains them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from kafka_records_tables.report.case_columns import equal, kept, numbers
from kafka_records_tables.report.command_lines import command_line, condition_of, option
from kafka_records_tables.report.facts.cluster_settings import delivery_limits, lacking_settings
from kafka_records_tables.report.facts.group_facts import log_ends
from kafka_records_tables.report.facts.known_logs import members_known
from kafka_records_tables.report.facts.record_locks import TOO_LATE, lock_verdict
from kafka_records_tables.report.facts.share_deliveries import ARCHIVED, TABLE
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, command_of, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MINUTE_MS,
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    partitions_shown,
    shown,
)
from kafka_records_tables.topics import SHARE_STATE

KIND: Final = "share_records_archived"
_SKIPS: Final = "a share group skips offsets at their first delivery"
_NOT_IN_TIME: Final = "a share group archived records that no consumer acknowledged in time"
_LEAST_LIMIT: Final = 2
"""The lowest `share.delivery.count.limit` that brokers accept."""


def _find(context: RuleContext) -> list[Incident]:
    # Without share partitions, there is nothing to read a second time.
    if not context.table("share_partitions").num_rows:
        return []
    rows = context.look(TABLE, context.request.groups)
    rows = kept(rows, equal(rows, "delivery_state", ARCHIVED))
    # A record that a consumer rejects is archived before the delivery limit is reached, so such a record is not a
    # failure.
    limits = delivery_limits(context, rows["group_id"].to_pylist(), context.limit(f"{KIND}.deliveries"))
    is_late = numbers(rows, "delivery_count") >= limits
    given_up = set(zip(*(kept(rows, is_late)[name].to_pylist() for name in ("group_id", "topic_id")), strict=True))
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        found.setdefault((row["group_id"], row["topic_id"]), []).append(row)
    least = context.limit(f"{KIND}.rejected")
    return [
        _incident(context, *key, ranges, is_rejected=key not in given_up)
        for key, ranges in found.items()
        if key in given_up or len(ranges) >= least
    ]


def _usual_gap(ranges: list[dict[str, Any]]) -> int | None:
    """The distance between their offsets, if it is mostly the same in every partition."""
    gaps: Counter[int] = Counter()
    places: dict[int, list[int]] = {}
    for each in ranges:
        places.setdefault(each["partition"], []).append(each["first_offset"])
    for offsets in places.values():
        ordered = sorted(offsets)
        gaps.update(later - earlier for earlier, later in pairwise(ordered))
    if not gaps:
        return None
    gap, count = gaps.most_common(1)[0]
    return gap if count >= 3 and 2 * count > sum(gaps.values()) else None


def _incident(
    context: RuleContext, group: str, topic_id: str, ranges: list[dict[str, Any]], *, is_rejected: bool
) -> Incident:
    ranges = sorted(ranges, key=lambda each: (each["log_timestamp_ms"] or 0, each["log_offset"]))
    first, last = ranges[0], ranges[-1]
    names = {each["topic_id"]: each["topic"] for each in context.table("share_group_topics").to_pylist()}
    name = first["topic"] or names.get(topic_id)
    topic = name or topic_id
    count = sum(each["last_offset"] - each["first_offset"] + 1 for each in ranges)
    partitions = sorted({each["partition"] for each in ranges})
    deliveries: Counter[int] = Counter()
    for each in ranges:
        deliveries[each["delivery_count"]] += each["last_offset"] - each["first_offset"] + 1
    usual = deliveries.most_common(1)[0][0] if is_rejected else max(deliveries)
    others = count - deliveries[usual]
    times = [each["log_timestamp_ms"] for each in ranges if each["log_timestamp_ms"] is not None]
    since, until = (times[0], times[-1]) if times else (None, None)
    lasts = times[-1] - times[0] if times else 0
    goes_on = until is not None and until >= context.at_ms - max(MINUTE_MS, 3 * lasts // max(len(ranges), 1))
    gap = _usual_gap(ranges)
    locks = None if is_rejected else lock_verdict(context, group, topic_id, ranges)
    runs_out = locks is not None and bool(locks.evidence_for)
    pattern = (
        ""
        if not gap
        else (
            " Most of them follow one another."
            if gap == 1
            else (f" Most of them are {gap} offsets apart, so the same kind of record probably fails each time.")
        )
    )
    members = [each for each in context.table("members").to_pylist() if each["group_id"] == group]
    clients = list(dict.fromkeys(each["client_id"] or each["member_id"] for each in members))
    none = "none is there now" if members_known(context, group) else "who they are is unknown here: ask the brokers"
    who = listed(clients) if clients else none
    unnamed = context.ask_kafka(
        "Ask the brokers for the name of the topic: no file of the source contains it",
        "kafka-topics",
        "--describe",
        "--topic-id",
        topic_id,
    )
    look = context.ask_kafka(
        f"Look at such a record, and find out from the logs of the consumers ({who}) what fails",
        "kafka-console-consumer",
        *_printing(name, last),
    )
    words = [
        "kafka-records",
        "dump",
        *context.request.source_arguments,
        "--topic",
        SHARE_STATE,
        *option("--group", group),
    ]
    how = (
        f"after {usual} deliveries, without {'an acknowledgement in time' if runs_out else 'being processed'}"
        + (f" ({others} of them after fewer, as consumers requested)" if others else "")
        if not is_rejected
        else "at the first deliveries, as consumers requested"
    )
    evidence = (
        Evidence(
            f"offset {first['first_offset']} of partition {first['partition']} is archived at delivery"
            f" {first['delivery_count']}",
            SHARE_STATE,
            first["log_partition"],
            first["log_offset"],
            since,
        ),
    )
    records = _records_among(context, name, ranges) if is_rejected else None
    is_usual = is_rejected and count < context.limit(f"{KIND}.rejected_share") * _delivered(ranges)
    # If the configs are unknown, the group's limit may be as low as 2, the minimum that brokers accept.
    unknown = lacking_settings(context) if is_rejected and usual >= _LEAST_LIMIT else ()
    rejected = Verdict(
        f"The consumers of {shown(group)} reject these records (acknowledge with REJECT) at their first deliveries.",
        evidence_for=(*evidence, *([records] if records else [])) if is_rejected else (),
        refuted_by=None if is_rejected else evidence[0],
        lacked=unknown,
    )
    no_records = Verdict(
        "There are no records at these offsets: they are transaction markers, or gaps that compaction left, and "
        "consumers acknowledge each as GAP. Then nothing is lost.",
        refuted_by=records if is_rejected else evidence[0],
        lacked=("the share state does not say whether an offset has a record",) if is_rejected else (),
    )
    verdict = Verdict(
        f"The consumers of {shown(group)} cannot process these records: they "
        f"{'hang or fail without releasing them' if runs_out else 'release them, or do not acknowledge them in time'}, "
        "until the limit of deliveries is reached.",
        evidence_for=() if is_rejected else evidence,
        refuted_by=evidence[0] if is_rejected and not unknown else None,
        lacked=unknown,
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.NOTE if is_usual else Level.MODERATE if is_rejected else Level.CRITICAL if goes_on else Level.HIGH,
        title=_SKIPS if is_rejected else _NOT_IN_TIME if runs_out else RULE.title,
        problem=(
            f"The share group {shown(group)} archived {counted(count, 'record')} of {shown(topic)} "
            f"({partitions_shown(partitions)}): {how}.{pattern}"
            + (f" The last one was at {moment(until)}, {length(lasts)} after the first." if until is not None else "")
        ),
        impact=(
            "The group will not get these records again: it has moved on. They are still in the topic until its "
            "retention deletes them."
            if not is_rejected
            else f"{'The' if records else 'If they are records, the'} group will not get them again; they are in the "
            "topic until its retention deletes them."
        ),
        consequence="work_repeated" if runs_out else "data_lost",
        group_ids=(group,),
        topics=(topic,),
        partitions=tuple(partitions),
        who=tuple(Actor("is a member", group, None, each, None) for each in clients[:5]),
        since_timestamp_ms=since,
        is_going_on=goes_on,
        scale={f"records_{'possibly_' * runs_out}lost": count, "partitions": len(partitions), "deliveries": usual},
        symptom_confidence="medium",
        why_not_sure=(
            (
                "the share state does not say why a consumer rejected a record"
                if records
                else "transaction markers and gaps are archived in the same way"
            )
            if is_rejected
            else "a consumer may have rejected a record at its last delivery"
        ),
        evidence=tuple(
            Evidence(
                f"offsets {each['first_offset']} to {each['last_offset']} of partition {each['partition']}: archived at"
                f" delivery {each['delivery_count']}",
                SHARE_STATE,
                each["log_partition"],
                each["log_offset"],
                each["log_timestamp_ms"],
            )
            for each in ranges[:MOST_EVIDENCE]
        ),
        evidence_count=len(ranges),
        rows=(Rows("share_partitions", of_group(group, condition_of("topic_id", topic_id))),),
        next=(
            *(() if name else (unnamed,)),
            look,
            NextStep(
                "Fix the consumers, or have them reject what they cannot process (acknowledge with REJECT) and "
                "store it elsewhere. If they only take too long, raise share.record.lock.duration.ms of the "
                "group; if more deliveries help, raise share.delivery.count.limit"
            ),
            *(
                [NextStep("List each change of its state, with its time", command_line(words))]
                if context.request.source_arguments
                else []
            ),
        ),
        measured={"archived": count, "deliveries": usual},
        thresholds=context.limits_of(f"{KIND}.deliveries", *((f"{KIND}.rejected_share",) if is_rejected else ())),
    )
    verdicts = {"cannot_be_processed": verdict, "rejected": rejected, "no_records": no_records}
    if locks is not None:
        follow = (
            (Evidence("the archived records follow one another: it is not a single record that fails"),)
            if gap == 1 and runs_out
            else ()
        )
        verdicts["locks_run_out"] = replace(locks, evidence_for=(*locks.evidence_for, *follow))
    return Incident(finding, count, verdicts, look.command)


def _delivered(ranges: list[dict[str, Any]]) -> int:
    """The number of offsets in each partition from the first to the last archived one, added up."""
    places: dict[int, list[int]] = {}
    for each in ranges:
        places.setdefault(each["partition"], []).extend((each["first_offset"], each["last_offset"]))
    return sum(max(offsets) - min(offsets) + 1 for offsets in places.values())


def _printing(name: str | None, last: dict[str, Any]) -> tuple[str, ...]:
    """Arguments for a command that prints the record at an offset, or the next one, with its offset."""
    place = ("--partition", str(last["partition"]), "--offset", str(last["first_offset"]))
    return (*option("--topic", name or "TOPIC"), *place, "--max-messages", "1", "--property", "print.offset=true")


def _records_among(context: RuleContext, name: str | None, ranges: list[dict[str, Any]]) -> Evidence | None:
    """Evidence that some of the offsets have records, because batches in the topic's log end with them."""
    if name is None:
        return None
    ends = log_ends(context)
    found = [each for each in ranges if ends.ends_batch((name, each["partition"]), each["last_offset"])]
    if not found:
        return None
    last = found[-1]
    return Evidence(
        f"there are records at these offsets: {len(found)} of the {len(ranges)} ranges end with the last record "
        "of a batch",
        name,
        last["partition"],
        last["last_offset"],
    )


RULE = incident_rule(
    kind=KIND,
    title="a share group archived records that no consumer accepted",
    about="""\
Ranges of offsets that were archived after `deliveries` deliveries (or the group's share.delivery.count.limit, if the
metadata log has it), and `rejected` or more that consumers rejected earlier.""",
    tables=("share_partitions", "share_group_topics", "members", "timeline"),
    levels={
        Level.CRITICAL: "it goes on",
        Level.HIGH: "the last one was a while ago",
        Level.MODERATE: "consumers rejected them",
        Level.NOTE: "they rejected less than `rejected_share` of the records from the first one to the last",
    },
    find=_find,
    listing=Rows("share_partitions"),
    causes=(
        PossibleCause(
            "locks_run_out",
            "processing takes longer than the record lock (`share.record.lock.duration.ms`)",
            "for: deliveries last as long as the lock; certain if the lock was shortened just before deliveries began "
            "to fail; refuted if most end sooner",
        ),
        PossibleCause(
            "cannot_be_processed",
            "consumers release the records, or let their locks run out, at each delivery",
            "",
        ),
        PossibleCause(
            "rejected", "consumers reject the records", "for: archived at the first deliveries; refuted otherwise"
        ),
        PossibleCause(
            "no_records",
            "the offsets are markers of transactions or gaps (`AcknowledgeType.GAP`)",
            "for: archived at the first deliveries; refuted if batches of the topic end with such offsets",
        ),
    ),
    questions=(
        Question(
            "locks_run_out",
            "cannot_be_processed",
            TOO_LATE,
        ),
        Question(
            "rejected",
            "no_records",
            "Is there a record at such an offset? If the command prints another offset than it asks for, there is none",
            command_of(_find),
        ),
    ),
    thresholds=(
        Threshold("rejected", "count", 10, "ranges that consumers rejected", "a few bad records are usual"),
        Threshold(
            "rejected_share",
            "share",
            0.05,
            "share of rejected records from which it is more than a note",
            "consumers reject what is malformed on purpose",
        ),
        Threshold(
            "deliveries",
            "count",
            3,
            "how many deliveries make a record count as failed, not rejected",
            "share.delivery.count.limit is 5, and brokers allow no less than 2",
        ),
    ),
    folds=(Folds("share_redelivery"),),
)

RULES = (RULE,)
