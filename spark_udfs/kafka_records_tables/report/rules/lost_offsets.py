"""Offsets that point to where their log is not: below its start, beyond its end, or into a topic that is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka_records_tables.report.report_parts import Evidence, Level, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.sight import Sight

_LIVELY = Threshold(
    "alive_within",
    "duration",
    "24h",
    "how lately a group without members has committed that is at work",
    "jobs that assign themselves partitions run once a day at least",
)


def _cases_of(kind: str, problem: str, at_work: Level) -> Callable[[Sight], pa.Table]:
    def cases(sight: Sight) -> pa.Table:
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
        from kafka_records_tables.report.rules.group_spans import last_commits

        rows = sight.table("lag")
        found = grouped(
            kept(rows, equal(rows, "problem", problem)),
            ["group_id", "topic"],
            [
                ("partition", "list"),
                ("lost", "sum"),
                ("offset", "list"),
                ("log_start_offset", "list"),
                ("end_offset", "list"),
                ("commit_timestamp_ms", "min"),
                ("log_partition", "first"),
            ],
        )
        ids = found["group_id"]
        members = looked_up(ids, sight.table("groups"), "group_id", "member_count")
        last = looked_up(ids, last_commits(sight), "group_id", "last")
        found = with_columns(found, members=pc.fill_null(members, 0), last_ms=last)
        works = numbers(found, "members") > 0
        works |= numbers(found, "last_ms", -(2**62)) > sight.at_ms - sight.limit(f"{kind}.alive_within")
        size = numbers(found, "lost_sum")
        return ranked(with_columns(found, works=works), level_by((works, at_work), default=Level.LOW), size)

    return cases


def _tell_of(kind: str, problem: str) -> Callable[[Sight, dict[str, Any]], ReportFinding]:
    def tell(sight: Sight, case: dict[str, Any]) -> ReportFinding:
        from kafka_records_tables.report.command_lines import condition_of, option
        from kafka_records_tables.report.sight import MOST_EVIDENCE, counted, numbers_shown, of_group, shown

        group, topic = case["group_id"], case["topic"]
        partitions = sorted(case["partition_list"])
        rows = Rows("lag", of_group(group, condition_of("topic", topic), f"problem={problem}"))
        who = f"The group {shown(group)} {'is at work' if case['works'] else 'has no members and commits nothing'}"
        whole = f"{shown(topic)} ({counted(len(partitions), 'partition')}: {numbers_shown(partitions)})"
        places = zip(case["partition_list"], case["offset_list"], strict=True)
        ends = zip(case["log_start_offset_list"], case["end_offset_list"], strict=True)
        return ReportFinding(
            kind=kind,
            level=Level(case["level"]),
            title=_RULES_BY_KIND[kind].title,
            what=f"{who}. {_WHAT[kind].format(whole=whole, lost=counted(case['lost_sum'] or 0, 'offset'))}",
            group_ids=(group,),
            topics=(topic,),
            partitions=tuple(partitions),
            since_timestamp_ms=case["commit_timestamp_ms_min"],
            evidence=tuple(
                Evidence(f"offset {offset} is committed, and the log has {start} to {end}", topic, partition, offset)
                for (partition, offset), (start, end) in list(zip(places, ends, strict=True))[:MOST_EVIDENCE]
            ),
            evidence_count=len(partitions),
            rows=(rows,),
            next=(
                sight.describe_group(group),
                sight.see("See the offsets and the ends of their logs", rows),
                sight.ask_kafka(
                    f"Stop its consumers and choose where they go on: this shows what --to-{_GO_TO[kind]} would be, "
                    "and does it with --execute in the place of --dry-run",
                    "kafka-consumer-groups",
                    "--reset-offsets",
                    *option("--group", group),
                    *option("--topic", topic),
                    f"--to-{_GO_TO[kind]}",
                    "--dry-run",
                ),
            ),
            measured={"lost_offsets": case["lost_sum"] or 0, "partitions": len(partitions)},
            thresholds=sight.limits_of(f"{kind}.alive_within"),
        )

    return tell


_WHAT = {
    "offsets_below_log_start": (
        "Its offsets for {whole} stand below the start of the log: {lost} are deleted that it has "
        "not consumed, and nothing brings them back. Its consumers go where auto.offset.reset says."
    ),
    "offsets_beyond_end": (
        "Its offsets for {whole} stand beyond the end of the log, which was cut or made anew. Its "
        "consumers go where auto.offset.reset says, and may read everything again."
    ),
    "offsets_of_older_topic": (
        "Its offsets for {whole} were committed for a topic of this name that is gone; the one that "
        "is there is another. A consumer that asks by the new id is given none of them."
    ),
}
_GO_TO = {
    "offsets_below_log_start": "earliest",
    "offsets_beyond_end": "latest",
    "offsets_of_older_topic": "earliest",
}


def _rule(kind: str, problem: str, at_work: Level, title: str, about: str) -> ReportRule:
    return ReportRule(
        kind=kind,
        title=title,
        about=about,
        tables=("lag", "groups", "current_offsets"),
        levels={
            at_work: "the group has members, or has committed within `alive_within`",
            Level.LOW: "nobody is at work for the group",
        },
        cases=_cases_of(kind, problem, at_work),
        tell=_tell_of(kind, problem),
        listing=lambda _: Rows("lag", (f"problem={problem}",)),
        thresholds=(_LIVELY,),
    )


RULES = (
    _rule(
        "offsets_below_log_start",
        "below_log_start",
        Level.CRITICAL,
        "records were deleted before a group consumed them",
        "Offsets below the start of the log that they point into: retention has deleted records that the group has not "
        "consumed. Only a source that holds the topic itself can tell (a data directory, running brokers).",
    ),
    _rule(
        "offsets_beyond_end",
        "beyond_end",
        Level.HIGH,
        "offsets stand beyond the end of their log",
        "Offsets above the end of the log that they point into: the topic was made anew under its name, or its log was "
        "cut when a leader was lost.",
    ),
    _rule(
        "offsets_of_older_topic",
        "topic_recreated",
        Level.HIGH,
        "offsets belong to a topic that is gone, and another has its name",
        "Offsets that name another topic id than the topic has now (Kafka 4.1 and later write it).",
    ),
)
_RULES_BY_KIND = {rule.kind: rule for rule in RULES}
