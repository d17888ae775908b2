"""Offsets that are not in their log: below its start or beyond its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka_records_tables.report.case_columns import equal, grouped, kept, level_by, numbers, ranked, true_where
from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts.beginnings import has_all_records
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Hypothesis, Question, ReportRule, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    listed,
    moment,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.group_spans import life_words, with_life

if TYPE_CHECKING:
    import pyarrow as pa

_LIVELY = Threshold(
    "alive_within",
    "duration",
    "24h",
    "a group without members that has committed this recently may come back",
    "jobs that assign themselves partitions run at least once a day",
)


def _cases_of(kind: str, problem: str, at_work: Level) -> Callable[[RuleContext], pa.Table]:
    def cases(context: RuleContext) -> pa.Table:
        rows = context.table("lag")
        rows = with_life(context, kept(rows, equal(rows, "problem", problem)), context.limit(f"{kind}.alive_within"))
        lists = ("partition", "offset", "log_start_offset", "end_offset", "topic_id", "commit_timestamp_ms", "lost")
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
        topic = case["topic"]
        places = _places_of(case)
        groups = {each["group_id"]: each for each in places}
        first = max(groups.values(), key=lambda each: (each["works"], each["last_ms"] or 0))
        partitions = sorted({each["partition"] for each in places})
        rows = Rows("lag", (condition_of("topic", topic), f"problem={problem}"))
        others = len(groups) - 1
        return ReportFinding(
            kind=kind,
            level=Level(case["level"]),
            title=_RULES_BY_KIND[kind].title,
            problem=_PROBLEM[kind].format(
                who=_who(context, groups),
                whole=places_shown((topic, partition) for partition in partitions),
                lost=counted(case["lost_sum"] or 0, "offset"),
                its="Its" if not others else "Their",
            ),
            impact=_IMPACT[kind],
            consequence="data_lost",
            scale={"records_lost": case["lost_sum"] or 0, "groups": len(groups), "partitions": len(partitions)},
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
                context.see("List the offsets and the ends of their logs", rows),
                context.describe_group(first["group_id"]),
                context.ask_kafka(
                    f"{'Stop' if first['members'] else 'Before'} the consumers of "
                    f"{shown(first['group_id'])}{', and' if first['members'] else ' start again,'} choose where they "
                    f"continue: this shows what --to-{_GO_TO[kind]} would do, and sets it with --execute in place "
                    "of --dry-run" + (f" (the same for {counted(others, 'other group')})" if others else ""),
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
    """The groups that the offsets belong to, and whether somebody consumes for these."""
    if len(groups) == 1:
        ((group, each),) = groups.items()
        return f"The group {shown(group)} {life_words(context, group, each['members'], each['last_ms'])}."
    works = [group for group, each in groups.items() if each["works"]]
    alive = f"{len(works)} of them with members or recently active" if works else "none of them recently active"
    named = [*works, *(group for group in groups if group not in set(works))]
    return f"It affects {counted(len(groups), 'group')}, {alive}: {listed(named, 8)}."


def _since(kind: str, places: list[dict[str, Any]]) -> str:
    """The time of the loss as commits show it: records of an offset existed before it was committed."""
    what = "the records were deleted" if kind == "offsets_below_log_start" else "the log was cut or recreated"
    # An active group commits what it has fetched, possibly after the deletion that affects it.
    still = [each["commit_timestamp_ms"] for each in places if not each["works"] and each["commit_timestamp_ms"]]
    after = f"; most likely after {moment(min(still))}, when the oldest of these offsets was committed" if still else ""
    return f"no record shows when {what}{after}"


_PROBLEM = {
    "offsets_below_log_start": (
        "{who} {its} offsets for {whole} are below the start of the log, which has lost {lost} that were not consumed."
    ),
    "offsets_beyond_end": "{who} {its} offsets for {whole} are beyond the end of the log.",
}
_IMPACT = {
    "offsets_below_log_start": (
        "These records are lost for the group. A consumer that fetches there starts over as auto.offset.reset says."
    ),
    "offsets_beyond_end": (
        "A consumer that starts there follows auto.offset.reset: it goes to the end and skips what it had not "
        "consumed, or to the beginning and consumes everything again."
    ),
}


def _places_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    columns = {name.removesuffix("_list"): values for name, values in case.items() if name.endswith("_list")}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _weigh_recreated(_: RuleContext, case: dict[str, Any]) -> Verdict:
    """Whether a commit has the present id of the topic: with another id it would be `topic_made_anew`."""
    known = [each for each in _places_of(case) if each["topic_id"] is not None]
    return Verdict(
        f"The topic {case['topic']} was deleted and created again with fewer records.",
        refuted_by=(
            Evidence(
                f"the commit names the id that the topic has now, {known[0]['topic_id']}",
                case["topic"],
                known[0]["partition"],
                known[0]["offset"],
                known[0]["commit_timestamp_ms"],
            )
            if known
            else None
        ),
        lacked=() if known else ("commits name no topic ids (Kafka 4.1 and later write them)",),
    )


def _weigh_foreign(context: RuleContext, case: dict[str, Any]) -> Verdict:
    """A group that never had a member before the commit did not consume up to that offset."""

    def first_members() -> dict[str, int | None]:
        rows = context.table("timeline")
        rows = kept(rows, equal(rows, "event", "member_joined"), equal(rows, "group_id", *case["group_id_list"]))
        found = grouped(rows, ["group_id"], [("at_timestamp_ms", "min")])
        return dict(zip(found["group_id"].to_pylist(), found["at_timestamp_ms_min"].to_pylist(), strict=True))

    def groups_in_part() -> set[str]:
        """The groups whose earlier records may be gone: a member seems to have joined at the first record that is
        left."""
        rows = context.table("current_offsets")
        rows = kept(rows, equal(rows, "group_id", *case["group_id_list"]))
        pairs = grouped(rows, ["group_id", "log_partition"], []).select(["group_id", "log_partition"]).to_pylist()
        return {each["group_id"] for each in pairs if not has_all_records(context, each["log_partition"])}

    joined, in_part = first_members(), groups_in_part()
    absent = [
        each
        for each in _places_of(case)
        if each["commit_timestamp_ms"] is not None
        and (joined.get(each["group_id"]) or 2**62) > each["commit_timestamp_ms"]
    ]
    before = [each for each in absent if each["group_id"] not in in_part]
    return Verdict(
        "The offsets were not reached by consuming: a tool or a script wrote them, with offsets of another cluster or"
        " topic.",
        evidence_for=tuple(
            Evidence(
                f"{each['group_id']} had no member yet when {each['offset']} was committed",
                case["topic"],
                each["partition"],
                each["offset"],
                each["commit_timestamp_ms"],
            )
            for each in before[:3]
        ),
        steps=(
            (
                NextStep(
                    "Before its consumers start, set the offsets by time (kafka-consumer-groups --reset-offsets"
                    " --to-datetime) or to the earliest; ask who wrote these offsets"
                ),
            )
            if before
            else ()
        ),
        lacked=("earlier records of the group",) if len(absent) > len(before) else (),
    )


def _weigh_cut(_: RuleContext, case: dict[str, Any]) -> Verdict:
    return Verdict(
        f"The log of {case['topic']} lost its end: a replica that lacked it became leader.",
        lacked=("how far the log reached at the time of the commit",),
    )


def _weigh_retention(_: RuleContext, case: dict[str, Any]) -> Verdict:
    return Verdict(
        f"Retention deleted records of {case['topic']} faster than they were consumed.",
        evidence_for=tuple(
            Evidence(
                f"{each['group_id']} is at {each['offset']}, and the log begins at {each['log_start_offset']}",
                case["topic"],
                each["partition"],
                each["offset"],
                each["commit_timestamp_ms"],
            )
            for each in _places_of(case)[:3]
        ),
        lacked=("requests to brokers",),
    )


def _weigh_deleted(_: RuleContext, case: dict[str, Any]) -> Verdict:
    return Verdict(
        f"Somebody deleted records of {case['topic']} (kafka-delete-records).", lacked=("requests to brokers",)
    )


_CAUSES = {
    "offsets_below_log_start": (
        Hypothesis(
            "retention",
            "retention deleted records that had not been consumed yet",
            "For: offsets below the start of the log.",
            _weigh_retention,
        ),
        Hypothesis(
            "records_deleted",
            "somebody deleted records with DeleteRecords",
            "No record shows this.",
            _weigh_deleted,
        ),
    ),
    "offsets_beyond_end": (
        Hypothesis(
            "offsets_from_elsewhere",
            "offsets of another cluster or topic were written for the group",
            "For: the group had no member before the commit.",
            _weigh_foreign,
        ),
        Hypothesis(
            "log_cut",
            "the log lost its end when a replica that lacked it became leader",
            "Only the present end of the log is known, not its end at the commit.",
            _weigh_cut,
        ),
        Hypothesis(
            "topic_recreated",
            "the topic was deleted and created again",
            "Against: the commit names the id that the topic has now.",
            _weigh_recreated,
        ),
    ),
}
_QUESTIONS = {
    "offsets_below_log_start": (
        Question(
            "retention",
            "records_deleted",
            "Has the log reached the age or size at which the retention of the topic deletes records?",
            lambda context, case: context.ask_kafka(
                "", "kafka-configs", "--describe", "--entity-type", "topics", *option("--entity-name", case["topic"])
            ).command,
        ),
    ),
    "offsets_beyond_end": (
        Question(
            "offsets_from_elsewhere",
            "log_cut",
            "Did a tool or a script write these offsets?",
            lambda context, case: context.command(Rows("history", (condition_of("topic", case["topic"]),))),
        ),
    ),
}
_GO_TO = {"offsets_below_log_start": "earliest", "offsets_beyond_end": "latest"}

_PREVENTION = {
    "offsets_below_log_start": (
        NextStep(
            "To stop this, raise retention.ms or retention.bytes of the topic above the lag of the group until its "
            "consumers have caught up, and give the group more consumers if it cannot keep up"
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
            Level.LOW: "no group has members, and none has committed anything for longer",
        },
        cases=_cases_of(kind, problem, at_work),
        tell=_tell_of(kind, problem),
        listing=lambda _: Rows("lag", (f"problem={problem}",)),
        thresholds=(_LIVELY,),
        causes=_CAUSES[kind],
        questions=_QUESTIONS[kind],
    )


RULES = (
    _rule(
        "offsets_below_log_start",
        "below_log_start",
        Level.CRITICAL,
        "records were deleted before a group consumed them",
        "Committed offsets below the start of their log: retention has deleted records that were not consumed. One "
        "finding for a topic, with all groups. This needs a source with the topic itself (a data directory, running "
        "brokers).",
    ),
    _rule(
        "offsets_beyond_end",
        "beyond_end",
        Level.HIGH,
        "offsets are beyond the end of their log",
        "Committed offsets above the end of their log: the topic was recreated under its name, or its log was cut when "
        "a leader was lost. One finding for a topic, with all groups.",
    ),
)
_RULES_BY_KIND = {rule.kind: rule for rule in RULES}
