"""Problems in the table `checks`: records that a coordinator cannot load or does not read, broken assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept, level_by, numbers, ranked, true_where
from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts.known_logs import absent_partitions, unreadable_partitions
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule
from kafka_records_tables.report.rule_context import (
    HOUR_MS,
    MOST_EVIDENCE,
    RuleContext,
    counted,
    listed,
    moment,
    partitions_shown,
    shown,
)
from kafka_records_tables.report.rules.group_spans import SETTLES, last_commits, settled
from kafka_records_tables.topics import OFFSETS, SHARE_STATE, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa


def _cases_of(kind: str) -> Callable[[RuleContext], pa.Table]:
    def cases(context: RuleContext) -> pa.Table:
        words, places, worst = _CHECKS[kind]
        rows = context.table("checks")
        found = grouped(
            kept(rows, equal(rows, "check", *words), ~_may_be_over(context, rows)),
            list(places),
            [
                ("detail", "list"),
                ("group_id", "list"),
                ("transactional_id", "list"),
                ("topic", "list"),
                ("partition", "list"),
                ("log_topic", "list"),
                ("log_partition", "list"),
                ("log_partition", "distinct"),
                ("log_offset", "list"),
                ("log_timestamp_ms", "list"),
                ("log_timestamp_ms", "min"),
            ],
        )
        choices = [(~true_where(equal(found, "level", "broken")), Level.NOTE)]
        if "log_topic" in places:
            choices.append((true_where(equal(found, "log_topic", TRANSACTIONS)), Level.HIGH))
        count = np.asarray(pc.list_value_length(found["detail_list"]).to_numpy(), np.int64)
        if kind == _STATE_BROKEN and found.num_rows and _unread_state(context):
            worst = Level.NOTE
        as_cases = found.rename_columns(["check_level" if name == "level" else name for name in found.column_names])
        return ranked(as_cases, level_by(*choices, default=worst), count)

    return cases


def _unread_state(context: RuleContext) -> str | None:
    """Why missing state may exist on the broker; None if the whole topic was read."""
    unread = {each.partition or 0 for each in context.reading if each.topic == SHARE_STATE and each.bytes}
    unread |= {each.partition for each in context.ends if each.topic == SHARE_STATE}
    unread |= unreadable_partitions(context, SHARE_STATE)
    absent = absent_partitions(context, SHARE_STATE)
    if not unread:
        return f"{logs_shown(SHARE_STATE, absent)} is not in the source: the state may be there" if absent else None
    unread.update(absent)
    return f"{logs_shown(SHARE_STATE, sorted(unread))} could not be read to the end: the state may be there"


def _may_be_over(context: RuleContext, rows: pa.Table) -> Any:
    """Flags rows of `checks` about work in progress that is done in a moment in a healthy cluster."""
    is_young = numbers(rows, "log_timestamp_ms", -(2**62)) > context.at_ms - context.limit(SETTLES)
    return true_where(equal(rows, "level", "transient")) & (is_young | ~settled(context, rows))


def _tell_of(kind: str) -> Callable[[RuleContext, dict[str, Any]], ReportFinding]:
    def tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
        _, places, _ = _CHECKS[kind]
        details = case["detail_list"]
        groups = tuple(dict.fromkeys(each for each in case["group_id_list"] if each is not None))
        transactional = tuple(dict.fromkeys(each for each in case["transactional_id_list"] if each is not None))
        topics = tuple(sorted({each for each in case["topic_list"] if each is not None}))
        numbers = sorted({each for each in case["partition_list"] if each is not None})
        chosen = [
            f"{place} is null" if case[_column(place)] is None else condition_of(place, case[_column(place)])
            for place in places
        ]
        rows = Rows("checks", tuple(chosen))
        of_many = f" of {counted(len(groups), 'group')} ({listed(groups)})"
        who = "" if not groups else f" of the group {shown(groups[0])}" if len(groups) == 1 else of_many
        logs = sorted(each for each in case["log_partition_distinct"] if each is not None)
        where = f" in {logs_shown(case['log_topic'], logs)}" if "log_topic" in places else ""
        places_found = zip(
            details,
            case["log_topic_list"],
            case["log_partition_list"],
            case["log_offset_list"],
            case["log_timestamp_ms_list"],
            strict=True,
        )
        is_passing = case["check_level"] == "transient"
        stops = kind == "coordinator_cannot_load"
        stopped = groups_of_logs(context, case["log_topic"], logs) if stops else ()
        stand = f" {groups_shown(stopped)}{_stopped_since(context, stopped, case)}".rstrip()
        why_not_sure = _unread_state(context) if kind == _STATE_BROKEN else _NOT_SURE.get(kind)
        is_unread = kind == _STATE_BROKEN and why_not_sure is not None
        if is_unread:
            said = f"No state was found for {counted(len(details), 'share partition')}{who}: {why_not_sure}."
        else:
            # A row about several records contains their number.
            many = "Records" if case["check"] in _GATHERED else counted(len(details), _NOUNS.get(kind, "problem"))
            said = (
                f"{many}{who}{where}"
                f"{', for instance' if len(details) > 1 else ''}: {details[0].rstrip('.')}. "
                + (
                    "This finding disappears when the change that is under way ends."
                    if is_passing
                    else f"{_what(kind, case)}{stand}"
                )
            )
        return ReportFinding(
            kind=kind,
            level=Level(case["level"]),
            title=_RULES_BY_KIND[kind].title if not is_unread else "the state of a share group was not found",
            problem=said,
            group_ids=tuple(dict.fromkeys((*groups, *stopped))),
            topics=topics,
            partitions=tuple(numbers) if len(topics) == 1 else (),
            transactional_ids=transactional,
            since_timestamp_ms=case["log_timestamp_ms_min"],
            since_note=_since_note(kind, case["log_timestamp_ms_min"]),
            confidence="high" if why_not_sure is None else "medium",
            why_not_sure=why_not_sure,
            evidence=tuple(
                Evidence(detail.partition(_NO_STATE)[0] if is_unread else detail, topic, partition, offset, at)
                for detail, topic, partition, offset, at in list(places_found)[:MOST_EVIDENCE]
            ),
            evidence_count=len(details),
            rows=(rows,),
            next=(context.see("List all of them", rows), *_more(context, kind, case)),
            measured={"problems": len(details), **({"logs": len(logs)} if "log_topic" in places else {})},
        )

    return tell


def unloaded_partitions(context: RuleContext) -> list[int]:
    """The partitions of `__consumer_offsets` that no coordinator loads, so that their groups are not cleaned up."""
    rows = context.table("checks")
    rows = kept(rows, equal(rows, "check", *LOADS), equal(rows, "level", "broken"), equal(rows, "log_topic", OFFSETS))
    return sorted(filter(lambda number: number is not None, rows["log_partition"].unique().to_pylist()))


def _since_note(kind: str, first_ms: int | None) -> str | None:
    """How exact the time of the first problematic record is."""
    if first_ms is None:
        return "the evidence has no time"
    if kind == "records_misplaced":
        return "the first of these records; if partitions were added later, it was in the right one until then"
    return None


def _what(kind: str, case: dict[str, Any]) -> str:
    """The impact as a sentence."""
    return _NOT_LOADED[case["log_topic"]] if kind == "coordinator_cannot_load" else _WHAT[kind]


def groups_of_logs(context: RuleContext, topic: str | None, partitions: Sequence[int]) -> tuple[str, ...]:
    """The groups with records in the given logs of the offsets topic, if these could be read."""
    if topic != OFFSETS:
        return ()
    rows = context.table("groups")
    return tuple(kept(rows, equal(rows, "log_partition", *partitions))["group_id"].to_pylist())


def _stopped_since(context: RuleContext, groups: Sequence[str], case: dict[str, Any]) -> str:
    """A sentence that says whether a coordinator has already read the records, judged by whether anything was committed
    since."""
    newest = context.once(last_commits)
    last: int | None = pc.max(kept(newest, equal(newest, "group_id", *groups))["last"]).as_py()
    written = max((each for each in case["log_timestamp_ms_list"] if each is not None), default=None)
    if last is None or written is None or last > written or context.at_ms - written < HOUR_MS:
        return ""
    return f"None of them has a readable commit after {moment(last)}, so this seems to have happened already."


def groups_shown(groups: Sequence[str]) -> str:
    """The affected groups as a sentence with a trailing space; empty if there are none."""
    if not groups:
        return ""
    has, all_of = ("has its", "it is affected") if len(groups) == 1 else ("have their", "all of them are affected")
    return f"{counted(len(groups), 'group')} {has} records there, and {all_of}: {listed(groups, 8)}. "


def logs_shown(topic: str | None, partitions: Sequence[int]) -> str:
    """Log partitions of a topic in a sentence: `__consumer_offsets-4`, `__consumer_offsets (partitions 0-3, 7)`."""
    if topic is None:
        return "the log"
    if not partitions:
        return topic
    return f"{topic}-{partitions[0]}" if len(partitions) == 1 else f"{topic} ({partitions_shown(partitions)})"


def _column(place: str) -> str:
    return "check_level" if place == "level" else place


def _more(context: RuleContext, kind: str, case: dict[str, Any]) -> tuple[Any, ...]:
    offset = case["log_offset_list"][0]
    steps = []
    if kind == "coordinator_cannot_load":
        log = f"{case['log_topic']}-{case['log_partition_list'][0]}"
        steps.append(NextStep(f"Copy the folder {log} with all its segments before anything changes it"))
    if offset is not None and context.request.source_arguments:
        place = ["--topic", case["log_topic_list"][0], "--offset", str(offset)]
        if case["group_id_list"][0] is not None:
            place += option("--group", case["group_id_list"][0])
        line = context.reading_command("dump", *place)
        steps.append(NextStep("Look at the first record that shows it", line))
    if kind == "coordinator_cannot_load":
        steps.append(
            context.ask_kafka(
                f"Ask which broker leads {log}, and look in the log of that broker for an error while loading it",
                "kafka-topics",
                "--describe",
                "--topic",
                case["log_topic"],
            )
        )
        steps.append(NextStep(_ASK_FOR_RELEASES))
        if case["log_topic"] == OFFSETS:
            steps.append(NextStep(_GIVE_BACK))
    elif kind == "records_misplaced":
        steps.append(
            context.ask_kafka(
                "Ask the brokers how many partitions the topic has: somebody may have added some, which moves groups",
                "kafka-topics",
                "--describe",
                "--topic",
                case["log_topic"],
            )
        )
    elif kind in ("assignments_broken", "partitions_unassigned") and case["group_id_list"][0] is not None:
        steps.append(context.describe_group(case["group_id_list"][0]))
    return tuple(steps)


_STATE_BROKEN: Final = "share_state_broken"
LOADS: Final = ("undecodable_record", "replay_conflict", "not_loaded_by_release")
_OF_LOGS: Final = ("level", "check", "log_topic")
_OF_GROUP: Final = ("level", "check", "group_id")

_CHECKS: Final = {
    "coordinator_cannot_load": (LOADS, _OF_LOGS, Level.CRITICAL),
    "records_misplaced": (("wrong_partition",), _OF_LOGS, Level.HIGH),
    "records_unknown": (("unknown_record_type", "passed_over_by_release"), _OF_LOGS, Level.NOTE),
    "assignments_broken": (("assigned_twice", "unknown_member", "unknown_task"), _OF_GROUP, Level.HIGH),
    "partitions_unassigned": (("unassigned",), _OF_GROUP, Level.HIGH),
    _STATE_BROKEN: (("share_state_missing",), _OF_GROUP, Level.HIGH),
    "share_state_left": (
        ("share_state_unnamed", "share_state_initializing", "share_state_deleting"),
        _OF_GROUP,
        Level.LOW,
    ),
}
"""For each kind of finding: its names in `checks`, the columns that group rows into one finding, and its level."""

_NOUNS: Final = {"coordinator_cannot_load": "record"}
_GATHERED: Final = frozenset(
    ("wrong_partition", "unknown_record_type", "passed_over_by_release", "not_loaded_by_release")
)
"""Checks with rows that are about several records each."""
_NOT_SURE: Final = {
    "coordinator_cannot_load": ("no release of Kafka that this package knows can read past them; a newer one may")
}
_ASK_FOR_RELEASES: Final = (
    "Find out whether a newer broker was in the cluster, or brokers were rolled back to an older release: a broker of "
    "the newer release can load these records"
)
_GIVE_BACK: Final = (
    "If no newer broker can be run: docs/rescue.md shows how to read the offsets, let the broker load and restore the "
    "offsets"
)
_WHAT: Final = {
    "records_misplaced": (
        "The coordinator of such a group or transactional id reads another partition, so these records have no "
        "effect. It happens when partitions are added to the topic."
    ),
    "records_unknown": "Most likely a newer release wrote them.",
    "assignments_broken": "Two members may consume the same partition, or a partition may be assigned to a member that "
    "has left.",
    "partitions_unassigned": (
        "No member of the group consumes these partitions, although it has members: their lag grows."
    ),
    "share_state_broken": (
        "No member of the group can consume these partitions: the leader's request to read the state is rejected."
    ),
    "share_state_left": "A new group with this name may fail to initialize its state (FENCED_STATE_EPOCH).",
}
_NOT_LOADED: Final = {
    OFFSETS: (
        "As soon as a coordinator has to load it (a broker starts again, or another one becomes leader), no client "
        "can join a group of such a partition, and none of its offsets can be read or committed, until that is "
        "fixed."
    ),
    SHARE_STATE: (
        "As soon as a coordinator has to load it (a broker starts again, or another one becomes leader), the share "
        "partitions with their state in it cannot be consumed, until that is fixed."
    ),
    TRANSACTIONS: (
        "Its coordinator continues without the records after it: it does not know the transactions there, and nothing "
        "ends them."
    ),
}
"""The impact, by the topic of the log that cannot be loaded."""


_NO_STATE: Final = ", but it has no state"


_MORE_TABLES: Final = {"coordinator_cannot_load": ("groups",), "share_state_broken": ("log_ends",)}
"""Tables that only one of these rules uses."""


def _checks_rule(kind: str, title: str, about: str, levels: dict[Level, str]) -> ReportRule:
    words = _CHECKS[kind][0]
    return ReportRule(
        kind=kind,
        title=title,
        about=f"{about} In `checks`: {', '.join(words)}.",
        tables=("checks", "timeline", "current_offsets", *_MORE_TABLES.get(kind, ())),
        levels=levels,
        cases=_cases_of(kind),
        tell=_tell_of(kind),
        listing=lambda _: Rows("checks", (f"check={words[0]}",) if len(words) == 1 else ()),
    )


RULES = (
    _checks_rule(
        "coordinator_cannot_load",
        "a coordinator cannot load its log",
        "Records at which a coordinator stops loading.",
        {
            Level.CRITICAL: "in the log of a group or share coordinator",
            Level.HIGH: "in `__transaction_state`, whose coordinator continues without the records after it",
        },
    ),
    _checks_rule(
        "records_misplaced",
        "records are in a partition that their coordinator does not read",
        "Records whose key belongs in another partition. For files, give the number of partitions with "
        "`--partitions`.",
        {Level.HIGH: "always"},
    ),
    _checks_rule(
        "partitions_unassigned",
        "some partitions of a group with members are assigned to nobody",
        "Partitions that exist but are in no target assignment.",
        {Level.HIGH: "no change is under way", Level.NOTE: "otherwise"},
    ),
    _checks_rule(
        "assignments_broken",
        "assignments of a group contradict one another",
        "Assignments to a member that does not exist, or of one partition to two members.",
        {Level.HIGH: "no change is under way", Level.NOTE: "otherwise"},
    ),
    _checks_rule(
        "share_state_broken",
        "a share group lacks the state of partitions",
        "Share partitions that count as initialized but have no state.",
        {
            Level.HIGH: "no change is under way",
            Level.NOTE: "a change may be under way, or a log with state is incomplete",
        },
    ),
    _checks_rule(
        "share_state_left",
        "share state is left over, or is being created or deleted",
        "Share state that no group lists, or that is being created or deleted.",
        {
            Level.LOW: "no group lists it",
            Level.NOTE: "it is being created or deleted",
        },
    ),
    _checks_rule(
        "records_unknown",
        "records of an unknown type",
        "No release of Kafka knows their type.",
        {Level.NOTE: "always"},
    ),
)
_RULES_BY_KIND = {rule.kind: rule for rule in RULES}
