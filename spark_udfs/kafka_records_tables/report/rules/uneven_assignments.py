"""Members that have far more partitions than others."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import (
    equal,
    grouped,
    kept,
    level_by,
    looked_up,
    numbers,
    ranked,
    true_where,
    with_columns,
)
from kafka_records_tables.report.facts.group_facts import Place
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Hypothesis, ReportRule, Threshold, Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, of_group, shown
from kafka_records_tables.report.rules.group_spans import settled
from kafka_records_tables.topics import OFFSETS

_RANGE: Final = "range"
"""The name of the range assignor in group metadata."""


def _cases(context: RuleContext) -> pa.Table:
    groups = context.table("groups")
    groups = kept(
        groups, equal(groups, "state", "Stable"), equal(groups, "group_kind", "classic", "consumer", "streams")
    )
    assigned = context.table("assignments")
    assigned = kept(
        assigned.select(["group_id", "member_id", "partition", "log_partition", "log_offset", "log_timestamp_ms"]),
        equal(assigned, "role", "current"),
        pc.fill_null(pc.not_equal(assigned["task_type"], "standby"), True),
        pc.fill_null(pc.not_equal(assigned["task_type"], "warmup"), True),
        pc.is_in(assigned["group_id"], groups["group_id"].combine_chunks()),
    )
    by_member = grouped(
        assigned,
        ["group_id", "member_id"],
        [("partition", "count"), ("log_partition", "first"), ("log_offset", "first"), ("log_timestamp_ms", "max")],
    )
    cases = grouped(
        by_member,
        ["group_id"],
        [
            ("partition_count", "sum"),
            ("partition_count", "max"),
            ("partition_count", "min"),
            ("partition_count", "count"),
            ("log_partition_first", "first"),
            ("log_offset_first", "max"),
            ("log_timestamp_ms_max", "max"),
        ],
    )
    members = context.table("members")
    wishes = pc.binary_join(
        pc.if_else(
            pc.is_valid(members["subscribed_topics"]),
            members["subscribed_topics"],
            pa.scalar([], pa.list_(pa.string())),
        ),
        "\n",
    )
    members = with_columns(
        members, wishes=pc.binary_join_element_wise(wishes, pc.fill_null(members["subscribed_regex"], ""), "\r")
    )
    alike = grouped(members, ["group_id"], [("wishes", "count_distinct"), ("member_id", "count")])
    ids = cases["group_id"]
    cases = with_columns(
        cases,
        members=looked_up(ids, alike, "group_id", "member_id_count"),
        kinds=looked_up(ids, alike, "group_id", "wishes_count_distinct"),
        protocol=looked_up(ids, groups, "group_id", "protocol"),
        group_kind=looked_up(ids, groups, "group_id", "group_kind"),
    )
    number = np.maximum(numbers(cases, "members"), numbers(cases, "partition_count_count"))
    most = numbers(cases, "partition_count_max")
    least = np.where(number > numbers(cases, "partition_count_count"), 0, numbers(cases, "partition_count_min"))
    mean = numbers(cases, "partition_count_sum") / np.maximum(number, 1)
    cases = with_columns(cases, least=least, mean=mean, member_number=number)
    uneven = (
        true_where(pc.equal(cases["kinds"], 1))
        & (most - least >= context.limit("uneven_assignments.difference"))
        & (most >= context.limit("uneven_assignments.times_mean") * mean)
        & settled(context, cases)
    )
    cases = cases.filter(uneven)
    cases = with_columns(cases, topic_list=pa.array(_burdened_topics(context, cases), pa.list_(pa.string())))
    much = numbers(cases, "partition_count_max") - numbers(cases, "least")
    levels = level_by(
        (much >= context.limit("uneven_assignments.moderate_difference"), Level.MODERATE), default=Level.LOW
    )
    return ranked(cases, levels, much)


def _burdened_topics(context: RuleContext, cases: pa.Table) -> list[list[str]]:
    """For each group, the topics whose partitions all belong to members with far more partitions than the mean."""
    found = []
    columns = (cases[name].to_pylist() for name in ("group_id", "mean"))
    for group, mean in zip(*columns, strict=True):
        own, others = set[str](), set[str]()
        for owned in owned_by_member(context, group).values():
            is_much = len(owned) >= context.limit("uneven_assignments.times_mean") * mean
            (own if is_much else others).update(topic for topic, _ in owned)
        found.append(sorted(own - others))
    return found


def owned_by_member(context: RuleContext, group: str) -> dict[str, set[Place]]:
    """The partitions that members of a group have now, by member id. Members without partitions are left out."""
    rows = context.rows_of_group("assignments", group)
    rows = kept(rows, equal(rows, "role", "current"), pc.is_valid(rows["topic"]), pc.is_valid(rows["partition"]))
    found: dict[str, set[Place]] = {}
    columns = (rows[name].to_pylist() for name in ("member_id", "topic", "partition"))
    for member, topic, partition in zip(*columns, strict=True):
        found.setdefault(member, set()).add((topic, partition))
    return found


def _waiting(context: RuleContext, case: dict[str, Any]) -> tuple[int, int]:
    """The known number of unread records in the partitions of the members with the most partitions, and in those of the
    other members."""
    owned = owned_by_member(context, case["group_id"])
    least = context.limit("uneven_assignments.times_mean") * case["mean"]
    burdened = {place for places in owned.values() if len(places) >= least for place in places}
    of_burdened = of_others = 0
    for row in context.rows_of_group("lag", case["group_id"]).to_pylist():
        if (row["topic"], row["partition"]) in burdened:
            of_burdened += row["lag"] or 0
        else:
            of_others += row["lag"] or 0
    return of_burdened, of_others


def _weigh_range(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    """Whether the range assignor is the cause: it assigns each topic separately, starting with the first member
    (`RangeAssignor.assign`)."""
    if case["protocol"] != _RANGE:
        return None
    owned = owned_by_member(context, case["group_id"])
    counts = Counter(topic for places in owned.values() for topic, _ in places)
    few = sum(number < case["member_number"] for number in counts.values())
    proof = Evidence(
        f"the assignor of the group is {_RANGE}, and {few} of its {counted(len(counts), 'topic')} have fewer "
        f"partitions than the group has members ({case['member_number']})",
        OFFSETS,
        case["log_partition_first_first"],
        case["log_offset_first_max"],
    )
    return Verdict(
        f"The range assignor of {shown(case['group_id'])} assigns the partitions of each topic separately, and begins "
        "with the same members each time.",
        evidence_for=(proof,),
        is_certain=few == len(counts),
        steps=(
            NextStep(
                "Change partition.assignment.strategy of all members to the CooperativeStickyAssignor (first both, "
                "then without range) or the RoundRobinAssignor, or group.protocol to consumer"
            ),
        ),
    )


def _tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    group = case["group_id"]
    rows = Rows("assignments", of_group(group, "role=current"))
    of_it = context.rows_of_group("assignments", group)
    of_it = kept(of_it, equal(of_it, "role", "current"))
    by_member = grouped(
        of_it, ["member_id"], [("partition", "count"), ("log_partition", "first"), ("log_offset", "first")]
    ).sort_by([("partition_count", "descending")])
    first = by_member.slice(0, 3).to_pylist()
    waiting, others = _waiting(context, case)
    backlog = "" if not waiting else f" Its partitions have {counted(waiting, 'unread record')}, all others {others}."
    by = f" by the assignor {case['protocol']}" if case["protocol"] else ""
    return ReportFinding(
        kind="uneven_assignments",
        level=Level(case["level"]),
        title=RULE.title,
        problem=(
            f"In the group {shown(group)} one member has {case['partition_count_max']} partitions and another "
            f"{case['least']}, where {case['mean']:.1f} would be even; all {counted(case['member_number'], 'member')} "
            f"subscribe to the same{by}.{backlog}"
        ),
        impact="The member with the most partitions sets the pace, and more members do not help.",
        group_ids=(group,),
        topics=tuple(case["topic_list"]),
        scale={"records_waiting": waiting} if waiting else {},
        since_timestamp_ms=case["log_timestamp_ms_max_max"],
        since_note="the last change of an assignment; it may have been uneven before",
        evidence=tuple(
            Evidence(
                f"{each['member_id']} has {counted(each['partition_count'], 'partition')}",
                OFFSETS,
                each["log_partition_first"],
                each["log_offset_first"],
            )
            for each in first
        ),
        evidence_count=by_member.num_rows,
        confidence="medium",
        why_not_sure="an assignor may weigh partitions by something that no record shows",
        rows=(rows,),
        next=(
            context.see("List which member has which partitions", rows),
            context.describe_members(group),
        ),
        measured={
            "most_partitions": case["partition_count_max"],
            "least_partitions": case["least"],
            "mean_partitions": round(case["mean"], 2),
            "members": case["member_number"],
        },
        thresholds=context.limits_of(
            "uneven_assignments.difference",
            "uneven_assignments.moderate_difference",
            "uneven_assignments.times_mean",
        ),
    )


RULE = ReportRule(
    kind="uneven_assignments",
    title="members of a group have very different numbers of partitions",
    about="""\
Stable groups whose members subscribe to the same and have very different numbers of partitions or active tasks, as with
classic members in a converted group. Connect and share groups are left out.""",
    tables=("assignments", "members", "groups", "timeline", "lag"),
    levels={
        Level.MODERATE: "the most and the fewest differ by `moderate_difference`",
        Level.LOW: "the most and the fewest differ by `difference`, and the most is `times_mean` the mean",
    },
    cases=_cases,
    tell=_tell,
    causes=(
        Hypothesis(
            "range_assignor",
            "the range assignor assigns each topic separately: the first members get most partitions",
            "certain if all topics have fewer partitions than the group has members",
            _weigh_range,
        ),
    ),
    folds=(Folds("too_slow", ("group_id", "topic")),),
    listing=lambda _: Rows("assignments", ("role=current",)),
    thresholds=(
        Threshold(
            "difference",
            "count",
            4,
            "difference between the most and the fewest partitions",
            "smaller differences do not matter",
            "moderate_difference",
        ),
        Threshold(
            "moderate_difference", "count", 20, "the same for the higher level", "a member does the work of others"
        ),
        Threshold(
            "times_mean",
            "count",
            2,
            "the most partitions of a member, as a multiple of the mean",
            "half of the machines are idle",
        ),
    ),
)

RULES = (RULE,)
