"""Offsets that point to where their log is not: below its start or beyond its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka_records_tables.report.report_parts import Evidence, Level, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.rule_context import RuleContext

_LIVELY = Threshold(
    "alive_within",
    "duration",
    "24h",
    "how lately a group without members has committed that may come back",
    "jobs that assign themselves partitions run once a day at least",
)


def _cases_of(kind: str, problem: str, at_work: Level) -> Callable[[RuleContext], pa.Table]:
    def cases(context: RuleContext) -> pa.Table:
        from kafka_records_tables.report.case_columns import equal, grouped, kept, level_by, numbers, ranked, true_where
        from kafka_records_tables.report.rules.group_spans import with_life

        rows = context.table("lag")
        rows = with_life(context, kept(rows, equal(rows, "problem", problem)), context.limit(f"{kind}.alive_within"))
        lists = ("partition", "offset", "log_start_offset", "end_offset", "commit_timestamp_ms", "lost")
        found = grouped(
            rows,
            ["topic"],
            [
                *((name, "list") for name in ("group_id", *lists, "members", "last_ms", "works")),
                ("lost", "sum"),
                ("works", "any"),
            ],
        )
        return ranked(
            found, level_by((true_where(found["works_any"]), at_work), default=Level.LOW), numbers(found, "lost_sum")
        )

    return cases


def _tell_of(kind: str, problem: str) -> Callable[[RuleContext, dict[str, Any]], ReportFinding]:
    def tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
        from kafka_records_tables.report.command_lines import condition_of, option
        from kafka_records_tables.report.rule_context import MOST_EVIDENCE, counted, places_shown, shown

        topic = case["topic"]
        columns = {name.removesuffix("_list"): values for name, values in case.items() if name.endswith("_list")}
        places = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        groups = {each["group_id"]: each for each in places}
        first = max(groups.values(), key=lambda each: (each["works"], each["last_ms"] or 0))
        partitions = sorted({each["partition"] for each in places})
        rows = Rows("lag", (condition_of("topic", topic), f"problem={problem}"))
        others = len(groups) - 1
        return ReportFinding(
            kind=kind,
            level=Level(case["level"]),
            title=_RULES_BY_KIND[kind].title,
            problem=_WHAT[kind].format(
                who=_who(context, groups),
                whole=places_shown((topic, partition) for partition in partitions),
                lost=counted(case["lost_sum"] or 0, "offset"),
                its="Its" if not others else "Their",
            ),
            group_ids=tuple(groups),
            topics=(topic,),
            partitions=tuple(partitions),
            since_note=_since(kind, places),
            evidence=tuple(
                Evidence(
                    f"{shown(each['group_id'])} committed {each['offset']}, and the log has {each['log_start_offset']}"
                    f" to {each['end_offset']}",
                    topic,
                    each["partition"],
                    each["offset"],
                    each["commit_timestamp_ms"],
                )
                for each in places[:MOST_EVIDENCE]
            ),
            evidence_count=len(places),
            rows=(rows,),
            next=(
                *_PREVENTION.get(kind, ()),
                context.see("See the offsets and the ends of their logs", rows),
                context.describe_group(first["group_id"]),
                context.ask_kafka(
                    f"{'Stop' if first['members'] else 'Before'} the consumers of {shown(first['group_id'])}"
                    f"{', and' if first['members'] else ' start again,'} choose where they go on: this shows what"
                    f" --to-{_GO_TO[kind]} would be, and does it with --execute in the place of --dry-run"
                    + (f" (the same for {counted(others, 'other group')})" if others else ""),
                    "kafka-consumer-groups",
                    "--reset-offsets",
                    *option("--group", first["group_id"]),
                    *option("--topic", topic),
                    f"--to-{_GO_TO[kind]}",
                    "--dry-run",
                ),
            ),
            measured={"lost_offsets": case["lost_sum"] or 0, "partitions": len(partitions), "groups": len(groups)},
            thresholds=context.limits_of(f"{kind}.alive_within"),
        )

    return tell


def _who(context: RuleContext, groups: dict[str, dict[str, Any]]) -> str:
    """Whose offsets they are, and whether somebody consumes for these groups."""
    from kafka_records_tables.report.rule_context import counted, listed, shown
    from kafka_records_tables.report.rules.group_spans import life_words

    if len(groups) == 1:
        ((group, each),) = groups.items()
        return f"The group {shown(group)} {life_words(context, group, each['members'], each['last_ms'])}."
    works = [group for group, each in groups.items() if each["works"]]
    alive = f"{len(works)} of them with members or lately at work" if works else "none of them at work lately"
    named = [*works, *(group for group in groups if group not in set(works))]
    return f"It hits {counted(len(groups), 'group')}, {alive}: {listed(named, 8)}."


def _since(kind: str, places: list[dict[str, Any]]) -> str:
    """What commits tell of when it happened: the records of an offset were there before it was committed."""
    from kafka_records_tables.report.rule_context import moment

    what = "the records were deleted" if kind == "offsets_below_log_start" else "the log was cut or made anew"
    # A group at work commits what it has fetched, and may be behind the deletion that it meets.
    still = [each["commit_timestamp_ms"] for each in places if not each["works"] and each["commit_timestamp_ms"]]
    after = f"; most likely after {moment(min(still))}, when the oldest of these offsets was committed" if still else ""
    return f"no record tells when {what}{after}"


_WHAT = {
    "offsets_below_log_start": (
        "{who} {its} offsets for {whole} stand below the start of the log, which has lost {lost} that were not "
        "consumed. A consumer that fetches there goes where auto.offset.reset says."
    ),
    "offsets_beyond_end": (
        "{who} {its} offsets for {whole} stand beyond the end of the log: it was cut when its leader was lost, or the "
        "topic was deleted and made anew. Consumers go where auto.offset.reset says, and may read everything again."
    ),
}
_GO_TO = {"offsets_below_log_start": "earliest", "offsets_beyond_end": "latest"}

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
        tables=("lag", "groups", "current_offsets", "timeline"),
        levels={
            at_work: "one of the groups has members, or has committed within `alive_within`",
            Level.LOW: "none has members, and none has committed anything for longer",
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
        "Offsets below the start of the log that they point into: retention has deleted records that were not "
        "consumed. One finding for a topic, with all groups. Only a source that holds the topic itself can tell (a "
        "data directory, running brokers).",
    ),
    _rule(
        "offsets_beyond_end",
        "beyond_end",
        Level.HIGH,
        "offsets stand beyond the end of their log",
        "Offsets above the end of the log that they point into: the topic was made anew under its name, or its log was "
        "cut when a leader was lost. One finding for a topic, with all groups.",
    ),
)
_RULES_BY_KIND = {rule.kind: rule for rule in RULES}
