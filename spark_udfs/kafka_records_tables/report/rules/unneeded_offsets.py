"""Offsets and groups that are no longer needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept, level_by, numbers, ranked
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.report.rules.dropped_topics import dropped_topics
from kafka_records_tables.report.rules.group_spans import emptied_at, settled
from kafka_records_tables.topics import OFFSETS


def _cases(context: RuleContext) -> pa.Table:
    rows = context.table("deletable_offsets")
    rows = kept(rows, equal(rows, "kind", "offset"), equal(rows, "reason", "not_subscribed"))
    rows = kept(rows, settled(context, rows))
    # Topics that are still written to are separate incidents, because their lag means that records are not read.
    dropped = {(each.group, each.topic) for each in context.once(dropped_topics)}
    if dropped:
        places = zip(rows["group_id"].to_pylist(), rows["topic"].to_pylist(), strict=True)
        rows = rows.filter(pa.array([place not in dropped for place in places]))
    cases = grouped(
        rows,
        ["group_id"],
        [
            ("topic", "list"),
            ("partition", "list"),
            ("commit_timestamp_ms", "min"),
            ("commit_timestamp_ms", "max"),
            ("log_partition", "list"),
            ("log_offset", "list"),
        ],
    )
    count = numbers(cases.append_column("count", _lengths(cases)), "count")
    return ranked(
        cases, level_by((count >= context.limit("offsets_unneeded.many"), Level.LOW), default=Level.NOTE), count
    )


def _lengths(cases: pa.Table) -> Any:
    return pc.list_value_length(cases["partition_list"])


def _tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    group = case["group_id"]
    topics = tuple(sorted(set(case["topic_list"])))
    count = len(case["partition_list"])
    rows = Rows("deletable_offsets", of_group(group, "kind=offset", "reason=not_subscribed"))
    places = zip(
        case["topic_list"], case["partition_list"], case["log_partition_list"], case["log_offset_list"], strict=True
    )
    newest = case["commit_timestamp_ms_max"]
    return ReportFinding(
        kind="offsets_unneeded",
        level=Level(case["level"]),
        title=RULE.title,
        problem=(
            f"The group {shown(group)} has members, and {counted(count, 'offset')} of topics that they do not subscribe"
            f" to: {listed(topics)}. "
            + (f"The last of them was committed at {moment(newest)}. " if newest is not None else "")
            + "If the topics were removed on purpose, the lag that monitors show for these offsets until they "
            "expire means nothing."
        ),
        group_ids=(group,),
        topics=topics,
        partitions=tuple(sorted(case["partition_list"])) if len(topics) == 1 else (),
        since_timestamp_ms=newest,
        since_note="or later: the last commit for them; no record shows when the subscription changed",
        evidence=tuple(
            Evidence(f"the commit for {topic}-{partition}", OFFSETS, log_partition, log_offset)
            for topic, partition, log_partition, log_offset in list(places)[:MOST_EVIDENCE]
        ),
        evidence_count=count,
        rows=(rows,),
        next=(
            context.see("See them", rows),
            context.ask_records(
                "This shows what deleting them would do; --execute does it, and writes a file that can restore them",
                "delete-offsets",
                *option("--group", group),
                *(word for topic in topics for word in option("--topic", topic)),
            ),
        ),
        measured={"offsets": count, "topics": len(topics)},
        thresholds=context.limits_of("offsets_unneeded.many"),
    )


RULE = ReportRule(
    kind="offsets_unneeded",
    title="a group keeps offsets of topics that it does not subscribe to",
    about="""\
Offsets of topics to which a group with members does not subscribe, and nothing is written (otherwise
`subscription_dropped`). A broker deletes them on request (KIP-496), or when their retention ends.""",
    tables=("deletable_offsets", "timeline", "log_ends", "expirations", "current_offsets", "share_group_topics"),
    levels={Level.LOW: "a group has `many` of them", Level.NOTE: "otherwise"},
    cases=_cases,
    tell=_tell,
    listing=lambda _: Rows("deletable_offsets", ("kind=offset", "reason=not_subscribed")),
    thresholds=(Threshold("many", "count", 1000, "offsets of one group", "so many make listings hard to read"),),
)


# -- groups that nothing takes away ------------------------------------------------------------------------------------


def _group_cases(context: RuleContext) -> pa.Table:
    groups = context.table("groups")
    is_empty = pc.equal(groups["member_count"], 0)
    rows = kept(groups, equal(groups, "group_kind", "share"), is_empty, settled(context, groups))
    return ranked(rows, np.full(rows.num_rows, int(Level.NOTE)), np.zeros(rows.num_rows))


def _tell_group(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    group = case["group_id"]
    emptied = emptied_at(context, group)
    rows = Rows("groups", of_group(group))
    return ReportFinding(
        kind="share_groups_empty",
        level=Level(case["level"]),
        title=EMPTY.title,
        problem=(
            f"The share group {shown(group)} has no members. Share groups do not expire: it and its state remain "
            "until somebody deletes it."
        ),
        group_ids=(group,),
        since_timestamp_ms=emptied,
        since_note="the records that would show this are missing" if emptied is None else None,
        evidence=(Evidence("the record of the group", OFFSETS, case["log_partition"], case["log_offset"]),),
        evidence_count=1,
        rows=(rows,),
        next=(
            context.see("Find out when its last member left", Rows("timeline", of_group(group, "event=emptied"))),
            context.ask_kafka(
                "If no consumer will use it again, delete it with its state",
                "kafka-share-groups",
                "--delete",
                *option("--group", group),
            ),
        ),
    )


EMPTY = ReportRule(
    kind="share_groups_empty",
    title="a share group has no members",
    about="""\
Share groups without members, for `report.group_settles_within` or longer. Nothing deletes them (`expirations`,
share_group).""",
    tables=("groups", "timeline"),
    levels={Level.NOTE: "always"},
    cases=_group_cases,
    tell=_tell_group,
    listing=lambda _: Rows("groups", ("group_kind=share", "member_count=0")),
)

RULES = (RULE, EMPTY)
