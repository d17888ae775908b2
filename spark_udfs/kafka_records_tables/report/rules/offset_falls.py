"""Offsets that moved backwards, by explanation, and two committers that take turns.

Partitions of recreated topics are in `remade_topics`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
from kafka_records_tables.report.command_lines import condition_of
from kafka_records_tables.report.facts.known_logs import ends_of_logs
from kafka_records_tables.report.facts.recreated_topics import is_old_position, recreation_of
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Confidence, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.fall_causes import CAUSES, QUESTIONS, not_in_logs, places_of
from kafka_records_tables.report.rules.group_spans import stands_now
from kafka_records_tables.report.rules.mixed_offsets import groups_with_mixed_offsets
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import Offset, Place


_WORDS = {
    "offsets_reset": ("reset_while_empty",),
    "offsets_rewound": ("rewind_by_member",),
    "offsets_began_again": ("after_deletion",),
    "two_committers": ("sawtooth",),
}


def with_causes(context: RuleContext) -> pa.Table:
    """`regressions` with `cause`. It is the kind, with two exceptions: sawtooth also for the fall before a partition's
    first sawtooth, which looks like any other fall in `regressions`, and topic_recreated for a fall from a position in
    an older topic.
    """

    places = ("group_id", "topic", "partition")
    rows = context.table("regressions").sort_by(
        [(name, "ascending") for name in (*places, "log_partition", "log_offset")]
    )
    is_tooth = true_where(equal(rows, "kind", "sawtooth"))
    leads = np.zeros(rows.num_rows, bool)
    if rows.num_rows > 1:
        same = [true_where(pc.equal(rows[name].slice(1), rows[name].slice(0, rows.num_rows - 1))) for name in places]
        leads[:-1] = is_tooth[1:] & np.logical_and.reduce(same)
    leads &= true_where(equal(rows, "kind", "reset_while_empty", "rewind_by_member"))
    cause = pc.if_else(pa.array(leads), "sawtooth", rows["kind"])
    is_old = np.zeros(rows.num_rows, bool)
    recreated = [each for each in rows["topic"].unique().to_pylist() if recreation_of(context, each) is not None]
    some = np.flatnonzero(true_where(pc.and_(pc.equal(cause, "rewind_by_member"), equal(rows, "topic", *recreated))))
    is_old[some] = [is_old_position(context, each) for each in rows.take(pa.array(some)).to_pylist()]
    return with_columns(rows, cause=pc.if_else(pa.array(is_old), "topic_recreated", cause))


def _cases_of(kind: str, lately: Level, earlier: Level) -> Callable[[RuleContext], pa.Table]:
    def cases(context: RuleContext) -> pa.Table:

        rows = context.once(with_causes)
        rows = kept(rows, equal(rows, "cause", *_WORDS[kind]))
        rows = with_columns(rows, distance=numbers(rows, "from_offset") - numbers(rows, "to_offset"))
        found = grouped(
            rows,
            ["group_id"],
            [
                ("group_kind", "first"),
                ("topic", "list"),
                ("kind", "distinct"),
                ("partition", "list"),
                ("from_offset", "list"),
                ("to_offset", "list"),
                ("distance", "sum"),
                ("commit_timestamp_ms", "min"),
                ("commit_timestamp_ms", "max"),
                ("commit_timestamp_ms", "list"),
                ("from_commit_timestamp_ms", "list"),
                ("from_log_offset", "list"),
                ("confidence", "min"),
                ("confidence", "max"),
                ("log_partition", "list"),
                ("log_offset", "list"),
            ],
        )
        last = numbers(found, "commit_timestamp_ms_max")
        is_new = last >= context.at_ms - context.limit(f"{kind}.lately")
        is_old = last < context.at_ms - context.limit(f"{kind}.of_the_past")
        choices = [(is_old, Level.NOTE)]
        if kind == "offsets_reset":
            # If a group assigns partitions itself, a seek backwards is as likely as a reset by an administrator.
            choices.append((true_where(equal(found, "group_kind_first", "simple")), Level.NOTE))
            choices.append((np.array([_has_caught_up(context, each) for each in found.to_pylist()], bool), Level.NOTE))
        levels = level_by(*choices, (is_new, lately), default=earlier)
        found = with_columns(found, since_ms=found["commit_timestamp_ms_min"])
        return ranked(found, levels, numbers(found, "distance_sum"))

    return cases


def _has_caught_up(context: RuleContext, case: dict[str, Any]) -> bool:
    """Whether a group has recommitted all offsets from which it fell, so it has reread those records."""
    now = context.once(_offsets_now)
    places = zip(places_of(case), case["from_offset_list"], strict=True)
    return all(now.get((case["group_id"], *place), -1) >= offset for place, offset in places)


def _offsets_now(context: RuleContext) -> dict[Offset, int]:
    rows = context.table("current_offsets").select(["group_id", "topic", "partition", "offset"])
    rows = kept(rows, pc.is_in(rows["group_id"], context.once(with_causes)["group_id"].unique()))
    return {(each["group_id"], each["topic"], each["partition"]): each["offset"] for each in rows.to_pylist()}


def _tell_of(kind: str) -> Callable[[RuleContext, dict[str, Any]], ReportFinding]:
    def tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:

        group = case["group_id"]
        places = places_of(case)
        topics = sorted(set(case["topic_list"]))
        about = of_group(group, *([condition_of("topic", topics[0])] if len(topics) == 1 else []))
        rows = tuple(Rows("regressions", (*about, f"kind={word}")) for word in sorted(case["kind_distinct"]))
        confidence, why_not_sure = _how_sure(kind, case)
        unknown, beyond = not_in_logs(context, case)
        repeated = sum(
            before - after
            for place, before, after in zip(places, case["from_offset_list"], case["to_offset_list"], strict=True)
            if place not in unknown and place not in beyond
        )
        if kind == "two_committers":
            repeated = min(repeated, _read_by_both(case))
        is_over = kind == "offsets_reset" and _has_caught_up(context, case)
        # Such offsets do not show what a group has read.
        is_mixed = group in groups_with_mixed_offsets(context)
        first, last = case["commit_timestamp_ms_min"], case["commit_timestamp_ms_max"]
        when = "" if last is None else f", {'last ' if len(places) > len(set(places)) else ''}at {moment(last)}"
        steps = zip(
            places,
            case["from_offset_list"],
            case["to_offset_list"],
            case["commit_timestamp_ms_list"],
            case["log_partition_list"],
            case["log_offset_list"],
            strict=True,
        )
        return ReportFinding(
            kind=kind,
            level=Level(case["level"]),
            title=_WITHOUT_CAUSE if kind == "offsets_rewound" and (unknown or beyond) else _RULES_BY_KIND[kind].title,
            problem=(
                f"The offsets of the group {shown(group)} for {places_shown(places)}"
                f" {_FELL.get(kind, 'went backwards')} {_times(places)}{when},"
                f" by {_distance(case['distance_sum'], len(places), kind != 'two_committers')}."
                f" {'' if is_mixed else stands_now(context, group, topics)}"
            ).rstrip()
            + (_CAUGHT_UP if is_over else ""),
            impact=_impact(kind, places, unknown, beyond),
            consequence="work_repeated" if repeated else "none",
            scale={"records_repeated": repeated, "jumps": len(places)},
            group_ids=(group,),
            topics=tuple(topics),
            partitions=tuple(sorted({partition for _, partition in places})) if len(topics) == 1 else (),
            since_timestamp_ms=first,
            is_going_on=False if is_over else None,
            symptom_confidence=confidence,
            why_not_sure=why_not_sure,
            evidence=tuple(
                Evidence(f"{topic}-{partition}: from {before} to {after}", OFFSETS, log_partition, log_offset, at)
                for (topic, partition), before, after, at, log_partition, log_offset in list(steps)[:MOST_EVIDENCE]
            ),
            evidence_count=len(places),
            rows=rows,
            next=(
                *map(NextStep, _FIRST.get(kind, ())),
                *(
                    context.see(f"List each fall, with the records that show it{_of_kind(rows, each)}", each)
                    for each in rows
                ),
                context.see("List what else the group committed, and when", Rows("history", about)),
                context.see(_LOOK[kind][0], Rows(_LOOK[kind][1], of_group(group))),
                context.describe_group(group),
                *(() if is_over else map(NextStep, _DECIDE[kind])),
            ),
            measured={"falls": len(places), "offsets": case["distance_sum"], "partitions": len(set(places))},
            thresholds=context.limits_of(f"{kind}.lately", f"{kind}.of_the_past"),
        )

    return tell


def _impact(kind: str, places: Sequence[Place], unknown: Sequence[Place], beyond: Sequence[Place]) -> str:
    """What a fall means for the users of the topics, as far as the log ends show it."""

    if not unknown and not beyond:
        return _IMPACT[kind]
    rest = [place for place in dict.fromkeys(places) if place not in unknown and place not in beyond]
    parts = [f"{places_shown(rest)}: {_IMPACT[kind]}"] if rest else []
    if beyond:
        parts.append(
            f"The higher offsets of {places_shown(beyond)} are beyond the end of the log: what consumers skip or "
            "repeat depends on where auto.offset.reset sends them."
        )
    if unknown:
        parts.append(
            f"Whether records are repeated is unknown, because the source lacks {ends_of_logs(unknown)}. If consumers "
            "had reached the higher offsets, they read the records from the lower ones on again. If these offsets were "
            "beyond the end of the log (a tool wrote them, or the log was cut), they repeat nothing, and may have "
            "skipped records."
        )
    return " ".join(parts)


def _of_kind(rows: Sequence[Rows], one: Rows) -> str:
    """The kind of falls that one of several commands lists."""
    return f" ({one.where[-1].partition('=')[2]})" if len(rows) > 1 else ""


def _read_by_both(case: dict[str, Any]) -> int:
    """The number of records that two committers have both read: those between the first and the last offset of the
    committer that lags. After a fall, each continues from its own position, so falls do not add up."""
    lower: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in zip(
        case["topic_list"], case["partition_list"], case["to_offset_list"], strict=True
    ):
        lower.setdefault((topic, partition), []).append(offset)
    return sum(max(each) - min(each) for each in lower.values())


def _distance(offsets: int, falls: int, adds_up: bool = True) -> str:
    """The distance of several falls in words: `431 offsets`, `about 10 offsets each time, 1406 in all`."""

    if falls == 1:
        return counted(offsets, "offset")
    total = f", {offsets} in all" if adds_up else ""
    return f"about {counted(round(offsets / falls), 'offset')} each time{total}"


def _times(places: list[tuple[str, int]]) -> str:
    """The number of falls in words, given the place of each: `once`, `34 times on each of 4 partitions`."""
    counts = Counter(places)
    least, most = min(counts.values()), max(counts.values())
    each = ("once" if most == 1 else f"{most} times") if least == most else f"{least} to {most} times"
    return each if len(counts) == 1 else f"{each} on each of {len(counts)} partitions"


def _how_sure(kind: str, case: dict[str, Any]) -> tuple[Confidence, str | None]:
    if not case["confidence_min"] == case["confidence_max"] == "high":
        return "low", (
            "the explanation of the fall depends on the members that the group had, and the records that would show "
            "them are missing"
        )
    if kind == "two_committers":
        return "medium", "no record shows which clients commit; that the offsets rise and fall in turns is certain"
    if kind == "offsets_reset":
        return "medium", (
            "no record shows whether a tool or a consumer committed; that the group had no members is certain"
        )
    return "high", None


_WITHOUT_CAUSE: Final = "offsets of a group went backwards"
_CAUGHT_UP: Final = " It has read all of these records again since."
_FELL = {
    "two_committers": "rose and fell in turns: they fell",
}
_IMPACT = {
    "offsets_reset": "The records from the lower offset to the higher one are consumed a second time.",
    "offsets_rewound": "The records from the lower offset to the higher one are consumed a second time.",
    "offsets_began_again": "It began as auto.offset.reset says, and consumes old records again.",
    "two_committers": (
        "Records are consumed twice, and after a restart each of the two continues from the offset of the other."
    ),
}


_LOOK = {
    "offsets_reset": ("List what happened to the group at that time", "timeline"),
    "offsets_rewound": ("List which members it had at that time", "timeline"),
    "offsets_began_again": ("Find out what deleted the offsets, and how certain that is", "disappearances"),
    "two_committers": (
        "List when the group had members: a client that commits without being a member assigns itself partitions",
        "timeline",
    ),
}
_DECIDE = {
    "offsets_reset": (
        "If it was not planned: stop the consumers, and set the offsets to the earlier values, which are in the "
        "evidence (kafka-consumer-groups --reset-offsets --to-offset)",
    ),
    "offsets_rewound": (),
    "offsets_began_again": (),
    "two_committers": (),
}

_FIRST = {
    "offsets_reset": (
        "Ask who reset the group at that time, and whether that was planned (a replay): no record shows it, and "
        "results of the group may be duplicated",
    ),
    "two_committers": (
        "Find the second program: look for the group id (group.id, or the Kafka options of a Spark or Flink job) in all"
        " deployments and environments that reach these brokers",
        "Stop one of the two, or give it a group id of its own; then check that the remaining offsets are right for "
        "the other one",
    ),
}
"""Steps that do not depend on the results of others."""

LATELY = Threshold(
    "lately", "duration", "24h", "incidents within this time are new", "since the last shift", "of_the_past"
)
PAST = Threshold("of_the_past", "duration", "7d", "older falls are notes", "those affected have noticed by then")


def _rule(kind: str, lately: Level, earlier: Level, title: str, about: str) -> ReportRule:
    levels = {
        lately: "within `lately`",
        earlier: "older",
        Level.NOTE: "older than `of_the_past`",
    }
    if kind == "offsets_reset":
        levels[Level.NOTE] += (
            "; or the group has read all of it again; or it is one that assigns itself partitions, which may go back "
            "by itself"
        )
    return ReportRule(
        kind=kind,
        title=title,
        about=f"{about} (`regressions`, {_WORDS[kind][0]}).",
        tables=("regressions", "groups", "lag", "log_ends", "current_offsets", "assignments", "timeline"),
        levels=levels,
        cases=_cases_of(kind, lately, earlier),
        tell=_tell_of(kind),
        listing=lambda _: Rows("regressions", (f"kind={_WORDS[kind][0]}",)),
        thresholds=(LATELY, PAST),
        causes=CAUSES[kind],
        questions=QUESTIONS.get(kind, ()),
        effect_title=_WITHOUT_CAUSE,
    )


RULES = (
    _rule(
        "two_committers",
        Level.HIGH,
        Level.MODERATE,
        "two committers take turns in one group",
        "Offsets of a partition that rise in two sequences in turns, and the fall before the first of them",
    ),
    _rule(
        "offsets_began_again",
        Level.HIGH,
        Level.MODERATE,
        "a group lost its offsets and started over",
        "Lower offsets that were committed after the offsets had been deleted",
    ),
    _rule(
        "offsets_reset",
        Level.MODERATE,
        Level.LOW,
        "offsets were moved backwards while a group had no members",
        "Lower offsets that were committed while the group had no members. Most likely an administrator reset them, "
        "possibly for a planned replay",
    ),
    _rule(
        "offsets_rewound",
        Level.MODERATE,
        Level.LOW,
        "a member moved its offsets backwards",
        "Lower offsets that a member of the group has committed",
    ),
)
_RULES_BY_KIND = {rule.kind: rule for rule in RULES}
