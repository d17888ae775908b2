"""Offsets that point to where their log is not: below its start, beyond its end, or into a topic that is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka_records_tables.report.report_parts import Evidence, Level, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.sight import Sight

_LIVELY = Threshold(
    "alive_within",
    "duration",
    "24h",
    "how lately a group without members has committed that may come back",
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
                ("commit_timestamp_ms", "list"),
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
        from kafka_records_tables.report.sight import MOST_EVIDENCE, counted, of_group, partitions_shown, shown

        group, topic = case["group_id"], case["topic"]
        partitions = sorted(case["partition_list"])
        rows = Rows("lag", of_group(group, condition_of("topic", topic), f"problem={problem}"))
        lost = counted(case["lost_sum"] or 0, "offset")
        first = "Stop its consumers, and" if case["members"] else "Before its consumers start again,"
        whole = f"{shown(topic)} ({partitions_shown(partitions)})"
        places = zip(
            case["partition_list"],
            case["offset_list"],
            case["log_start_offset_list"],
            case["end_offset_list"],
            case["commit_timestamp_ms_list"],
            strict=True,
        )
        return ReportFinding(
            kind=kind,
            level=Level(case["level"]),
            title=_RULES_BY_KIND[kind].title,
            what=f"{_who(sight, case)} {_WHAT[kind].format(whole=whole, lost=lost)}",
            group_ids=(group,),
            topics=(topic,),
            partitions=tuple(partitions),
            since_timestamp_ms=_made_anew_at(sight, topic) if kind == "offsets_of_older_topic" else None,
            evidence=tuple(
                Evidence(
                    f"offset {offset} was committed, and the log has {start} to {end}", topic, partition, offset, at
                )
                for partition, offset, start, end, at in list(places)[:MOST_EVIDENCE]
            ),
            evidence_count=len(partitions),
            rows=(rows,),
            next=(
                sight.describe_group(group),
                sight.see("See the offsets and the ends of their logs", rows),
                sight.ask_kafka(
                    f"{first} choose where they go on: this shows what --to-{_GO_TO[kind]} would be, and does it with "
                    "--execute in the place of --dry-run",
                    "kafka-consumer-groups",
                    "--reset-offsets",
                    *option("--group", group),
                    *option("--topic", topic),
                    f"--to-{_GO_TO[kind]}",
                    "--dry-run",
                ),
                *_PREVENTION.get(kind, ()),
            ),
            measured={"lost_offsets": case["lost_sum"] or 0, "partitions": len(partitions)},
            thresholds=sight.limits_of(f"{kind}.alive_within"),
        )

    return tell


def _who(sight: Sight, case: dict[str, Any]) -> str:
    """Whether somebody consumes for the group, as a sentence."""
    from kafka_records_tables.report.rules.group_spans import emptied_at
    from kafka_records_tables.report.sight import counted, moment, shown

    who, last = f"The group {shown(case['group_id'])}", case["last_ms"]
    committed = "" if last is None else f", and last committed at {moment(last)}"
    if case["members"]:
        return f"{who} has {counted(case['members'], 'member')}{committed}."
    emptied = emptied_at(sight, case["group_id"])
    return f"{who} has {'no members' if emptied is None else f'had no members since {moment(emptied)}'}{committed}."


def _made_anew_at(sight: Sight, topic: str) -> int | None:
    """When the first commit named the new topic; null where no group that went on with it tells."""
    import pyarrow.compute as pc

    from kafka_records_tables.report.case_columns import equal, kept

    rows = sight.table("regressions")
    at: int | None = pc.min(
        kept(rows, equal(rows, "kind", "topic_recreated"), equal(rows, "topic", topic))["commit_timestamp_ms"]
    ).as_py()
    return at


_WHAT = {
    "offsets_below_log_start": (
        "Its offsets for {whole} stand below the start of the log: {lost} are deleted that it has "
        "not consumed. A consumer that fetches there goes where auto.offset.reset says. When the records were deleted, "
        "the logs do not tell."
    ),
    "offsets_beyond_end": (
        "Its offsets for {whole} stand beyond the end of the log, which was cut or made anew. Its "
        "consumers go where auto.offset.reset says, and may read everything again."
    ),
    "offsets_of_older_topic": (
        "Its offsets for {whole} were committed for a topic of this name that is gone; the one that "
        "is there is another. What the group had not consumed of the old one is gone, and a consumer that starts from "
        "these offsets leaves out records of the new one, or goes where auto.offset.reset says."
    ),
}
_GO_TO = {
    "offsets_below_log_start": "earliest",
    "offsets_beyond_end": "latest",
    "offsets_of_older_topic": "earliest",
}

_PREVENTION = {
    "offsets_below_log_start": (
        NextStep(
            "So that it does not go on: raise retention.ms or retention.bytes of the topic above what the group is"
            " behind, until its consumers have caught up, and give the group more consumers when it cannot keep up"
        ),
    )
}


def _rule(kind: str, problem: str, at_work: Level, title: str, about: str) -> ReportRule:
    return ReportRule(
        kind=kind,
        title=title,
        about=about,
        tables=("lag", "groups", "current_offsets", "timeline", "regressions"),
        levels={
            at_work: "the group has members, or has committed within `alive_within`",
            Level.LOW: "it has no members, and has committed nothing for longer",
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
