"""Records of share groups that are delivered repeatedly, or were archived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import (
    equal,
    grouped,
    kept,
    level_by,
    looked_up,
    numbers,
    ranked,
    with_columns,
)
from kafka_records_tables.report.command_lines import command_line, condition_of, option
from kafka_records_tables.report.facts.cluster_settings import delivery_limits
from kafka_records_tables.report.facts.known_logs import members_known
from kafka_records_tables.report.facts.record_locks import TOO_LATE, lock_verdict, repeats_of
from kafka_records_tables.report.facts.share_deliveries import TABLE
from kafka_records_tables.report.facts.share_repeats import QUIET_MS
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Hypothesis, Question, ReportRule, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    moment,
    of_group,
    partitions_shown,
    shown,
)
from kafka_records_tables.topics import SHARE_STATE

if TYPE_CHECKING:
    import pyarrow as pa

_AVAILABLE, _ARCHIVED = 0, 4


def _ranges(context: RuleContext) -> pa.Table:
    """One row for each range of offsets of a share partition, with its deliveries."""
    rows = context.table("share_partitions").combine_chunks()
    parents = pc.list_parent_indices(rows["batches"]).combine_chunks()
    ranges = rows["batches"].combine_chunks().flatten()
    found = rows.select(["group_id", "topic_id", "partition", "log_partition", "log_offset"]).take(parents)
    for name in ("first_offset", "last_offset", "delivery_state", "delivery_count"):
        found = found.append_column(name, ranges.field(name))
    return found


def _cases(context: RuleContext) -> pa.Table:
    ranges = _ranges(context)
    limit = context.limit("share_redelivery.delivery_limit")
    most = delivery_limits(context, ranges["group_id"].to_pylist(), limit)
    state, count = numbers(ranges, "delivery_state"), numbers(ranges, "delivery_count")
    given_up = (state == _ARCHIVED) & (count >= most)
    again = (state == _AVAILABLE) & (count >= context.limit("share_redelivery.deliveries"))
    last_chance = (state == _AVAILABLE) & (count >= most - 1)
    size = numbers(ranges, "last_offset") - numbers(ranges, "first_offset") + 1
    ranges = with_columns(
        ranges, given_up=size * given_up, again=size * again, last_chance=size * last_chance, deliveries=count
    )
    cases = grouped(
        kept(ranges, given_up | again),
        ["group_id", "topic_id"],
        [
            ("given_up", "sum"),
            ("again", "sum"),
            ("last_chance", "sum"),
            ("deliveries", "max"),
            ("partition", "list"),
            ("first_offset", "list"),
            ("last_offset", "list"),
            ("delivery_state", "list"),
            ("delivery_count", "list"),
            ("log_partition", "list"),
            ("log_offset", "list"),
        ],
    )
    names = context.table("share_group_topics")
    cases = with_columns(cases, topic=looked_up(cases["topic_id"], names, "topic_id", "topic"))
    urgent = (numbers(cases, "given_up_sum") > 0) | (numbers(cases, "last_chance_sum") > 0)
    levels = level_by((urgent, Level.HIGH), default=Level.MODERATE)
    return ranked(cases, levels, numbers(cases, "given_up_sum") * 1000 + numbers(cases, "again_sum"))


def _tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    group, topic_id, topic = case["group_id"], case["topic_id"], case["topic"]
    partitions = sorted(set(case["partition_list"]))
    rows = Rows("share_partitions", of_group(group, condition_of("topic_id", topic_id)))
    given_up, again, last = case["given_up_sum"], case["again_sum"], case["last_chance_sum"]
    parts = []
    if given_up:
        parts.append(f"{counted(given_up, 'record')} archived, after as many deliveries as the limit allows")
    if again:
        also = f" (for {last} of them the next one is the last)" if last else ""
        parts.append(f"{counted(again, 'record')} waiting to be delivered again, after several deliveries{also}")
    repeats = repeats_of(context, group, topic_id)
    members = _member_count(context, group)
    locks = _weigh_locks(context, case)
    is_lock = locks is not None and locks.is_certain
    look = context.ask_kafka(
        "Look at such a record itself",
        "kafka-console-consumer",
        "--topic",
        topic or topic_id,
        "--partition",
        str(case["partition_list"][0]),
        "--offset",
        str(case["first_offset_list"][0]),
        "--max-messages",
        "1",
    )
    batches = zip(
        case["partition_list"],
        case["first_offset_list"],
        case["last_offset_list"],
        case["delivery_state_list"],
        case["delivery_count_list"],
        case["log_partition_list"],
        case["log_offset_list"],
        strict=True,
    )
    return ReportFinding(
        kind="share_redelivery",
        level=Level(case["level"]),
        title=RULE.title if not given_up else "a share group archived records that no consumer accepted",
        problem=(
            f"In the share group {shown(group)}, topic {shown(topic or topic_id)}, {partitions_shown(partitions)}: "
            f"{'; '.join(parts)}. "
            f"{_now(context, group, members)}{' Archived records are not delivered again.' if given_up else ''}"
        ),
        group_ids=(group,),
        topics=(topic,) if topic else (),
        partitions=tuple(partitions),
        impact=(
            ""
            if repeats is None
            else f"Since {moment(repeats.since_ms)}, {counted(repeats.records, 'record')} "
            f"{'was' if repeats.records == 1 else 'were'} delivered more than once, and {repeats.deliveries} of their "
            "deliveries were repeats, as far as the log shows."
        ),
        consequence="work_repeated" if is_lock else "none",
        since_timestamp_ms=None if repeats is None else repeats.since_ms,
        since_note=(
            "the state does not have the times of deliveries, but its records do: see the second step"
            if repeats is None
            else "the end of the first delivery that failed, as far back as the log goes"
        ),
        is_going_on=True if repeats is not None and members and repeats.until_ms >= context.at_ms - QUIET_MS else None,
        scale=(
            {}
            if repeats is None
            else {"records_delivered_again": repeats.records, "repeated_deliveries": repeats.deliveries}
        ),
        confidence="high" if not given_up else "medium",
        why_not_sure=None if not given_up else "a consumer may have rejected a record at its last delivery",
        evidence=tuple(
            Evidence(
                f"offsets {first} to {last_offset} of partition {partition}: {deliveries} deliveries, "
                f"{'given up' if state == _ARCHIVED else 'waiting'}",
                SHARE_STATE,
                log_partition,
                log_offset,
            )
            for partition, first, last_offset, state, deliveries, log_partition, log_offset in list(batches)[
                :MOST_EVIDENCE
            ]
        ),
        evidence_count=len(case["partition_list"]),
        rows=(rows,),
        next=(
            context.see("List the ranges of offsets, with the state of each", rows),
            *_records(context, group),
            *(() if is_lock else (look,)),
            context.ask_kafka(
                "Ask the brokers who consumes",
                "kafka-share-groups",
                "--describe",
                "--members",
                *option("--group", group),
            ),
        ),
        measured={
            "given_up_records": given_up,
            "redelivered_records": again,
            "most_deliveries": case["deliveries_max"],
        },
        thresholds=context.limits_of("share_redelivery.deliveries", "share_redelivery.delivery_limit"),
    )


def _weigh_locks(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    rows = context.look(TABLE, (case["group_id"],))
    rows = kept(rows, equal(rows, "topic_id", case["topic_id"]))
    return lock_verdict(context, case["group_id"], case["topic_id"], rows.to_pylist())


def _weigh_failures(context: RuleContext, case: dict[str, Any]) -> Verdict:
    locks = _weigh_locks(context, case)
    runs_out = locks is not None and bool(locks.evidence_for)
    return Verdict(
        f"The consumers of {shown(case['group_id'])} cannot process these records: they "
        + (
            "hang, or fail without releasing them." if runs_out else "release them, or do not acknowledge them in time."
        ),
        evidence_for=() if locks is None or locks.refuted_by is None else (locks.refuted_by,),
        steps=(
            NextStep(
                "Find out from the logs of the consumers what fails at these offsets. Fix it, or have them reject "
                "such records (acknowledge with REJECT)"
            ),
        ),
    )


def _records(context: RuleContext, group: str) -> list[NextStep]:
    if not context.request.source_arguments:
        return []
    words = ["dump", *context.request.source_arguments, "--topic", SHARE_STATE, *option("--group", group)]
    return [NextStep("List each change of its state, with its time", command_line(["kafka-records", *words]))]


def _member_count(context: RuleContext, group: str) -> int:
    rows = context.rows_of_group("groups", group)
    return (rows["member_count"][0].as_py() or 0) if rows.num_rows else 0


def _now(context: RuleContext, group: str, members: int) -> str:
    """Whether it continues, as a sentence."""
    if not members and not members_known(context, group):
        return "Whether it has members is unknown: the log that has them is not here, or not read to its end."
    return f"The group has {counted(members, 'member')} and continues." if members else "The group has no members now."


RULE = ReportRule(
    kind="share_redelivery",
    title="a share group delivers records again and again, or archived them",
    about="""\
Ranges of offsets that were delivered `deliveries` times or more and wait to be delivered again, or were archived after
`delivery_limit` deliveries, or the group's limit, if the metadata log has it. Archived records before the start offset
are not counted.""",
    tables=("share_partitions", "share_group_topics", "groups", "timeline"),
    levels={
        Level.HIGH: "records were archived, or their next delivery is the last one",
        Level.MODERATE: "records were delivered `deliveries` times",
    },
    cases=_cases,
    tell=_tell,
    listing=lambda _: Rows("share_partitions"),
    causes=(
        Hypothesis(
            "locks_run_out",
            "processing takes longer than the record lock (`share.record.lock.duration.ms`)",
            "for: deliveries last as long as the lock; certain if the lock was shortened just before deliveries began "
            "to fail; refuted if most end sooner",
            _weigh_locks,
        ),
        Hypothesis(
            "cannot_be_processed",
            "consumers release the records, or let their locks run out, at each delivery",
            "for: deliveries end sooner than the lock",
            _weigh_failures,
        ),
    ),
    questions=(Question("locks_run_out", "cannot_be_processed", TOO_LATE),),
    thresholds=(
        Threshold(
            "deliveries",
            "count",
            3,
            "deliveries that are more than chance",
            "a consumer that is restarted causes a second one",
        ),
        Threshold(
            "delivery_limit",
            "count",
            5,
            "share.delivery.count.limit of the groups",
            "the brokers' default",
        ),
    ),
)

RULES = (RULE,)
