"""Offsets that are not in their log, because they are below its start or beyond its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from kafka_records_tables.report.case_columns import (
    equal,
    grouped,
    kept,
    level_by,
    numbers,
    ranked,
    true_where,
    with_columns,
)
from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts.beginnings import has_all_records
from kafka_records_tables.report.facts.gone_offsets import GoneOffset, place_of
from kafka_records_tables.report.facts.group_facts import ends_of_topic
from kafka_records_tables.report.facts.log_deletions import LogDeletions, log_deletions
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Hypothesis, Question, ReportRule, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MINUTE_MS,
    MOST_EVIDENCE,
    RuleContext,
    counted,
    listed,
    moment,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules import crash_loops
from kafka_records_tables.report.rules.deletion_causes import weigh_early_times, weigh_request
from kafka_records_tables.report.rules.group_spans import life_words, with_life
from kafka_records_tables.report.rules.mixed_offsets import mixed_places
from kafka_records_tables.tables.lag import BEYOND_END

_LIVELY = Threshold(
    "alive_within",
    "duration",
    "24h",
    "a group without members that has committed this recently may come back",
    "jobs that assign themselves partitions run at least once a day",
)


_BELOW: Final = "offsets_below_log_start"
_COPY_MS: Final = MINUTE_MS
"""How long it may take to copy the files of a running broker."""


def _cases_of(kind: str, problem: str, at_work: Level) -> Callable[[RuleContext], pa.Table]:
    def cases(context: RuleContext) -> pa.Table:
        rows = context.table("lag")
        rows = kept(rows, equal(rows, "problem", problem))
        if problem == BEYOND_END and context.is_stored and rows.num_rows:
            rows = rows.filter(pa.array([not _was_copied_later(context, each) for each in rows.to_pylist()]))
        if problem != BEYOND_END and rows.num_rows:
            rows = mixed_places(context).rows_without_present(rows)
        rows = with_life(context, rows, context.limit(f"{kind}.alive_within"))
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
        columns = [found[name].to_pylist() for name in ("topic", "group_id_list", "partition_list")]
        gone = [
            [place_of(group, topic, partition) for group, partition in zip(groups, partitions, strict=True)]
            for topic, groups, partitions in zip(*columns, strict=True)
        ]
        found = with_columns(found, gone_list=pa.array(gone, pa.list_(pa.string())))
        return ranked(
            found, level_by((true_where(found["works_any"]), at_work), default=Level.LOW), numbers(found, "lost_sum")
        )

    return cases


def _was_copied_later(context: RuleContext, row: dict[str, Any]) -> bool:
    """Whether an offset may be beyond the end only because the files of a running broker were copied one after another,
    the topic before the commit. If so, it was committed last, and the topic can grow that far while files are
    copied."""
    at_ms, end = row["commit_timestamp_ms"], row["end_offset"]
    if at_ms is None or end is None or context.at_ms - at_ms > _COPY_MS:
        return False
    before = ends_of_topic(context, row["group_id"], row["topic"]).end_at(
        (row["topic"], row["partition"]), at_ms - _COPY_MS
    )
    return before is not None and row["offset"] - end <= end - before


def _tell_of(kind: str, problem: str) -> Callable[[RuleContext, dict[str, Any]], ReportFinding]:
    def tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
        topic = case["topic"]
        places = _places_of(case)
        groups = {each["group_id"]: each for each in places}
        first = max(groups.values(), key=lambda each: (each["works"], each["last_ms"] or 0))
        partitions = sorted({each["partition"] for each in places})
        rows = Rows("lag", (condition_of("topic", topic), f"problem={problem}"))
        loops = gone_in_loops(context, case) if kind == _BELOW else []
        return ReportFinding(
            kind=kind,
            level=Level(case["level"]),
            title=_RULES_BY_KIND[kind].title,
            problem=_PROBLEM[kind].format(
                who=_who(context, groups),
                whole=places_shown((topic, partition) for partition in partitions),
                lost=counted(case["lost_sum"] or 0, "offset"),
                its="Its" if len(groups) == 1 else "Their",
            ),
            impact=_IMPACT[kind] + _failing(loops),
            consequence="data_lost",
            scale={"records_lost": case["lost_sum"] or 0, "groups": len(groups), "partitions": len(partitions)},
            group_ids=tuple(groups),
            topics=(topic,),
            partitions=tuple(partitions),
            since_timestamp_ms=min((each.failed_ms for each in loops), default=None),
            since_note=_since_failures(loops) if loops else _since(kind, places),
            is_going_on=True if loops else None,
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
                context.see("List the offsets and the ends of their logs", rows),
                context.describe_group(first["group_id"]),
                _reset(context, kind, case),
            ),
            measured={"lost_offsets": case["lost_sum"] or 0, "partitions": len(partitions), "groups": len(groups)},
            thresholds=context.limits_of(f"{kind}.alive_within"),
        )

    return tell


def _reset(context: RuleContext, kind: str, case: dict[str, Any]) -> NextStep:
    """The step of choosing where a group continues in those partitions only."""
    places = _places_of(case)
    first = max(places, key=lambda each: (each["works"], each["last_ms"] or 0))
    group, others = first["group_id"], len({each["group_id"] for each in places}) - 1
    own = sorted(each["partition"] for each in places if each["group_id"] == group)
    return context.ask_kafka(
        f"{'Stop' if first['members'] else 'Before'} the consumers of "
        f"{shown(group)}{', and' if first['members'] else ' start again,'} choose where they "
        f"continue: this shows what --to-{_GO_TO[kind]} would do, and sets it with --execute in place "
        "of --dry-run" + (f" (the same for {counted(others, 'other group')})" if others else ""),
        "kafka-consumer-groups",
        "--reset-offsets",
        *option("--group", group),
        *option("--topic", f"{case['topic']}:{','.join(map(str, own[:_MOST_PARTITIONS]))}"),
        f"--to-{_GO_TO[kind]}",
        "--dry-run",
    )


def gone_in_loops(context: RuleContext, case: dict[str, Any]) -> list[GoneOffset]:
    """The offsets in a case that members repeatedly try to read from."""
    places = set(case["gone_list"])
    return [gone for loop in context.once(crash_loops.find) for gone in loop.gone if gone.place in places]


def _failing(loops: list[GoneOffset]) -> str:
    if not loops:
        return ""
    members = counted(max(each.attempts for each in loops), "member")
    return f" With none the consumer fails and ends: {members} took the partition and left since."


def _since_failures(loops: list[GoneOffset]) -> str:
    first = min(loops, key=lambda each: each.failed_ms)
    return (
        f"the first member failed then; the records were deleted before, probably after {moment(first.committed_ms)}, "
        f"when {first.offset} was committed for {first.topic}-{first.partition}"
    )


def _who(context: RuleContext, groups: dict[str, dict[str, Any]]) -> str:
    """The groups that the offsets belong to, and whether they have consumers."""
    if len(groups) == 1:
        ((group, each),) = groups.items()
        return f"The group {shown(group)} {life_words(context, group, each['members'], each['last_ms'])}."
    works = [group for group, each in groups.items() if each["works"]]
    alive = f"{len(works)} of them with members or recently active" if works else "none of them recently active"
    named = [*works, *(group for group in groups if group not in set(works))]
    return f"It affects {counted(len(groups), 'group')}, {alive}: {listed(named, 8)}."


def _since(kind: str, places: list[dict[str, Any]]) -> str:
    """The time of the loss, from commits: an offset's records existed before it was committed."""
    what = "the records were deleted" if kind == "offsets_below_log_start" else "the log was cut or recreated"
    # An active group commits offsets of records that it has fetched, possibly after they were deleted.
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
    """Judges whether a commit has the topic's present id. With another id, it would be `topic_recreated`."""
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
    """The verdict for a group that had no member before the commit, and therefore did not consume up to that offset."""

    def first_members() -> dict[str, int | None]:
        rows = context.table("timeline")
        rows = kept(rows, equal(rows, "event", "member_joined"), equal(rows, "group_id", *case["group_id_list"]))
        found = grouped(rows, ["group_id"], [("at_timestamp_ms", "min")])
        return dict(zip(found["group_id"].to_pylist(), found["at_timestamp_ms_min"].to_pylist(), strict=True))

    def groups_in_part() -> set[str]:
        """The groups whose earlier records may be gone, because a member seems to have joined at the first remaining
        record."""
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


def _deletions(context: RuleContext, case: dict[str, Any]) -> LogDeletions:
    ends = ends_of_topic(context, case["group_id_list"][0], case["topic"])
    return log_deletions(context, case["topic"], sorted(set(case["partition_list"])), ends)


def _first_steps(context: RuleContext, case: dict[str, Any]) -> tuple[NextStep, ...]:
    """The first steps. If members fail at the offset, it must be set first."""
    return (_reset(context, _BELOW, case),) if gone_in_loops(context, case) else ()


def _weigh_retention(context: RuleContext, case: dict[str, Any]) -> Verdict:
    found, topic = _deletions(context, case), case["topic"]
    by_size = found.never_by_age is not None
    return Verdict(
        (
            f"The size limit of the partitions of {topic} (retention.bytes) deleted records before they were consumed."
            if by_size
            else f"Retention deleted records of {topic} faster than they were consumed."
        ),
        evidence_for=(
            ()
            if by_size and found.size is None
            else tuple(
                Evidence(
                    f"{each['group_id']} is at {each['offset']}, and the log begins at {each['log_start_offset']}",
                    topic,
                    each["partition"],
                    each["offset"],
                    each["commit_timestamp_ms"],
                )
                for each in _places_of(case)[:3]
            )
        ),
        refuted_by=found.never_by_age if by_size and found.is_size_unlimited else found.below_size,
        evidence_against=found.inside_files if found.has_one_replica is None else (),
        lacked=("requests to brokers",),
        steps=(
            *_first_steps(context, case),
            NextStep(
                f"To stop this, raise {'retention.bytes' if by_size else 'retention.ms or retention.bytes'} of the "
                "topic above the lag of the group until its consumers have caught up, and give the group more "
                "consumers if it cannot keep up"
            ),
        ),
    )


def _weigh_deleted(context: RuleContext, case: dict[str, Any]) -> Verdict:
    found, topic = _deletions(context, case), case["topic"]
    verdict = weigh_request(
        found,
        f"Somebody deleted records of {topic} (kafka-delete-records)"
        f"{f': {found.inside_files[0].shows}' if found.inside_files else ''}.",
        (
            *_first_steps(context, case),
            NextStep(
                f"Get the deleted records of {topic} from their origin if they are needed, and find who deleted them "
                "(kafka-delete-records)"
            ),
        ),
        (found.never_by_age,) if found.never_by_age else (),
    )
    return verdict if verdict.is_certain else replace(verdict, lacked=(*verdict.lacked, "requests to brokers"))


def _weigh_early_times(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    return weigh_early_times(context, _deletions(context, case))


_CAUSES = {
    "offsets_below_log_start": (
        Hypothesis(
            "retention",
            "retention deleted records that had not been consumed yet",
            "Refuted if the topic is younger than its retention.ms.",
            _weigh_retention,
        ),
        Hypothesis(
            "records_deleted",
            "somebody deleted records with DeleteRecords",
            "Certain if logs with a single replica begin in the middle of a file.",
            _weigh_deleted,
        ),
        Hypothesis(
            "early_timestamps",
            "a producer writes timestamps far in the past, such as seconds instead of milliseconds",
            "certain if the records left have timestamps from long before the topic was created",
            _weigh_early_times,
        ),
    ),
    "offsets_beyond_end": (
        Hypothesis(
            "offsets_from_elsewhere",
            "offsets of another cluster or topic were written for the group",
            "",
            _weigh_foreign,
        ),
        Hypothesis(
            "log_cut",
            "the log lost its end when a replica that lacked it became leader",
            "only the present end of the log is known",
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
_MOST_PARTITIONS = 100
"""The maximum number of partitions to name in a command."""
_GO_TO = {"offsets_below_log_start": "earliest", "offsets_beyond_end": "latest"}


def _rule(kind: str, problem: str, at_work: Level, title: str, about: str) -> ReportRule:
    return ReportRule(
        kind=kind,
        title=title,
        about=about,
        tables=("lag", "groups", "current_offsets", "timeline", "members", "log_ends", "regressions"),
        levels={
            at_work: "one of the groups has members, or has committed within `alive_within`",
            Level.LOW: "otherwise",
        },
        cases=_cases_of(kind, problem, at_work),
        tell=_tell_of(kind, problem),
        listing=lambda _: Rows("lag", (f"problem={problem}",)),
        thresholds=(_LIVELY,),
        folds=(Folds("crash_loop", ("gone",)),) if kind == _BELOW else (),
        causes=_CAUSES[kind],
        questions=_QUESTIONS[kind],
    )


RULES = (
    _rule(
        "offsets_below_log_start",
        "below_log_start",
        Level.CRITICAL,
        "records were deleted before a group consumed them",
        "Committed offsets below the start of their log. If members take such a partition and leave, one after "
        "another, they probably fail there (auto.offset.reset=none). Needs a source with the topic itself (a data "
        "directory, running brokers).",
    ),
    _rule(
        "offsets_beyond_end",
        "beyond_end",
        Level.HIGH,
        "offsets are beyond the end of their log",
        "Committed offsets above the end of their log. In copied files, commits of the last minute may be newer than "
        "the copy of the topic.",
    ),
)
_RULES_BY_KIND = {rule.kind: rule for rule in RULES}
