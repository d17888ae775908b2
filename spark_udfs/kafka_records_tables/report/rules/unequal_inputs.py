"""Streams groups that get no tasks because topics that must have the same number of partitions differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, MemberLife, member_lives
from kafka_records_tables.report.facts.known_logs import known_ends, partition_count
from kafka_records_tables.report.facts.stream_topologies import TABLE as TOPOLOGIES
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.topics import METADATA, OFFSETS

KIND: Final = "streams_partitions_differ"
_INPUTS, _INTERNAL = "inputs_differ", "internal_topic_differs"

Counts = dict[str, int]
"""The number of partitions by topic."""


@dataclass(frozen=True, slots=True)
class _Change:
    """The change since which the partition counts have differed."""

    topic: str
    count: int
    is_growth: bool
    at_ms: int
    log_offset: int


@dataclass(frozen=True, slots=True)
class _Unequal:
    """A streams group with topics that must have the same number of partitions but do not."""

    group: str
    inputs: tuple[str, ...]
    """The topics that the application reads, without those that Kafka Streams creates."""
    counts: Counts
    """The topics with different partition counts."""
    changelogs: tuple[str, ...]
    """The changelogs of the part of the application that reads them."""
    is_of_inputs: bool
    """Whether input topics differ from each other, as opposed to an internal topic differing from them."""
    change: _Change | None
    row: Mapping[str, Any]


def _find(context: RuleContext) -> list[Incident]:
    groups = _without_tasks(context)
    rows = context.look(TOPOLOGIES, groups).to_pylist() if groups else []
    found = [_unequal(context, row) for row in rows if row["was_valid"] is not None]
    return [_incident(context, each) for each in found if each is not None and _has_settled(context, each)]


def _without_tasks(context: RuleContext) -> list[str]:
    """The streams groups in which no member has a task or is about to get one."""
    groups = context.table("groups")
    names = kept(groups, equal(groups, "group_kind", "streams"))["group_id"].to_pylist()
    rows = context.table("assignments")
    rows = kept(rows, equal(rows, "group_kind", "streams"), equal(rows, "role", "current", "target"))
    busy = set(rows["group_id"].unique().to_pylist())
    return [each for each in names if each not in busy][:MOST_GROUPS]


def _has_settled(context: RuleContext, found: _Unequal) -> bool:
    """Whether the counts have differed for a while. Partitions are not added to all topics at the same moment."""
    since_ms = _since(found)
    return since_ms is not None and context.at_ms - since_ms >= context.limit("report.group_settles_within")


def _since(found: _Unequal) -> int | None:
    """When the application was hit: at the change, or later if it was started later."""
    if found.change is None or (not found.row["was_valid"] and found.row["invalid_timestamp_ms"] is not None):
        invalid_ms: int | None = found.row["invalid_timestamp_ms"]
        return invalid_ms if found.change is None or invalid_ms is None else max(invalid_ms, found.change.at_ms)
    return found.change.at_ms


# -- numbers of partitions ---------------------------------------------------------------------------------------------


def _unequal(context: RuleContext, row: Mapping[str, Any]) -> _Unequal | None:
    """The topics of a group with different partition counts: input topics or, if those agree, internal topics that
    differ from them."""
    parts = row["subtopologies"]
    inputs = tuple(sorted({topic for part in parts for topic in part["sources"]}))
    for part in parts:
        for joined in part["joined"]:
            counts = _counts(context, joined["sources"])
            if len(set(counts.values())) > 1:
                change = _change(context, counts)
                return _Unequal(row["group_id"], inputs, counts, _changelogs(part), True, change, row)
    for part in parts:
        for internal, sources in _internal(part):
            own, of_sources = _counts(context, [internal]), _counts(context, sources)
            most = max(of_sources, key=lambda each: of_sources[each], default=None)
            if own and most is not None and len(of_sources) == len(sources) and of_sources[most] != own[internal]:
                counts = own | {most: of_sources[most]}
                change = _change(context, counts)
                return _Unequal(row["group_id"], inputs, counts, _changelogs(part), False, change, row)
    return None


def _internal(part: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The internal topics of a part of an application, each with the topics whose largest partition count it must have
    (`ChangelogTopics` and `CopartitionedTopicsEnforcer` of the group coordinator)."""
    for joined in part["joined"]:
        for topic in joined["repartitions"] if joined["sources"] else ():
            yield topic, joined["sources"]
    for topic in _changelogs(part):
        yield topic, [*part["sources"], *part["repartitions"]]


def _changelogs(part: Mapping[str, Any]) -> tuple[str, ...]:
    """The changelogs that are not input topics."""
    return tuple(topic for topic in part["changelogs"] if topic not in part["sources"])


def _counts(context: RuleContext, topics: Iterable[str]) -> Counts:
    counts = {topic: partition_count(context, topic) for topic in topics}
    return {topic: count for topic, count in counts.items() if count is not None}


def _change(context: RuleContext, counts: Counts) -> _Change | None:
    """The change since which all of these topics have existed, with different partition counts."""
    rows = [row for topic in counts for row in changes_of(context, topic)]
    rows = [row for row in rows if row["event"] in ("created", "deleted", "partitions_added")]
    now: Counts = {}
    found: dict[str, Any] | None = None
    for row in sorted(rows, key=lambda each: (each["at_timestamp_ms"] is not None, each["log_offset"])):
        if row["event"] == "deleted":
            now.pop(row["topic"], None)
        else:
            now[row["topic"]] = row["partition_count"]
        differ = len(now) == len(counts) and len(set(now.values())) > 1
        found = (found or row) if differ else None
    if found is None or found["at_timestamp_ms"] is None:
        return None
    is_growth = found["event"] == "partitions_added"
    return _Change(found["topic"], found["partition_count"], is_growth, found["at_timestamp_ms"], found["log_offset"])


# -- the finding -------------------------------------------------------------------------------------------------------


def _waiting(context: RuleContext, found: _Unequal) -> dict[str, int]:
    """By topic, how many offsets the group has not consumed, as far as log ends are known."""
    rows = context.rows_of_group("current_offsets", found.group).to_pylist()
    committed = {(row["topic"], row["partition"]): row["offset"] for row in rows}
    logs = context.table("log_ends")
    logs = kept(logs, equal(logs, "topic", *found.inputs), pc.is_valid(logs["log_start_offset"]))
    starts = {(row["topic"], row["partition"]): row["log_start_offset"] for row in logs.to_pylist()}
    waiting: dict[str, int] = {}
    for place, end in known_ends(context).items():
        if place in starts:
            left = end - max(starts[place], committed.get(place, 0))
            waiting[place[0]] = waiting.get(place[0], 0) + max(left, 0)
    return {topic: left for topic, left in sorted(waiting.items()) if left}


def _incident(context: RuleContext, found: _Unequal) -> Incident:
    row, since_ms = found.row, _since(found)
    waiting = _waiting(context, found)
    lives = member_lives(context, (found.group,)).get(found.group, [])
    came = [each for each in lives if (each.joined_ms or 0) > (since_ms or 0)]
    left = sum(each.left_at is not None for each in came)
    who = sorted(lives, key=lambda each: each.joined_at)[-2:]
    evidence = tuple(_evidence(found))
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if waiting or who else Level.MODERATE,
        title=(
            RULE.title
            if found.is_of_inputs
            else "an internal topic of a Streams application has another number of partitions than its inputs"
        ),
        problem=f"{_problem(found)}{_of_members(came, left)}",
        impact=_impact(waiting),
        consequence="work_stopped",
        group_ids=(found.group,),
        topics=tuple(sorted(found.counts)),
        who=tuple(Actor("gets no tasks", found.group, each.member_id, each.client_id, each.host) for each in who),
        since_timestamp_ms=since_ms,
        since_note=_since_note(found, since_ms),
        is_going_on=True,
        scale=({"records_waiting": sum(waiting.values())} if waiting else {})
        | ({"joins_since": len(came)} if came else {}),
        evidence=evidence[:MOST_EVIDENCE],
        evidence_count=len(evidence),
        rows=(Rows("timeline", of_group(found.group)), Rows("lag", of_group(found.group))),
        next=_steps(context, found),
        measured={f"partitions of {topic}": count for topic, count in sorted(found.counts.items())},
        thresholds=context.limits_of("report.group_settles_within"),
    )
    verdict = Verdict(_statement(found), evidence, is_certain=bool(row["was_valid"]))
    return Incident(finding, sum(waiting.values()), {_INPUTS if found.is_of_inputs else _INTERNAL: verdict})


def _evidence(found: _Unequal) -> Iterator[Evidence]:
    change, row = found.change, found.row
    if change is not None:
        shows = f"{shown(change.topic)} has {counted(change.count, 'partition')} from then on"
        yield Evidence(shows, METADATA, 0, change.log_offset, change.at_ms)
    place = OFFSETS, row["log_partition"]
    yield Evidence(f"the topology of {found.group}: {_must(found)}", *place, row["log_offset"])
    if row["was_valid"]:
        shows = f"from then on, the record of {found.group} has no valid topology"
        yield Evidence(shows, *place, row["invalid_log_offset"], row["invalid_timestamp_ms"])


def _must(found: _Unequal) -> str:
    names = listed(sorted(found.counts))
    return f"{names} must have the same number of partitions"


def _numbers(counts: Counts) -> str:
    return ", ".join(f"{shown(topic)} has {count}" for topic, count in sorted(counts.items()))


def _problem(found: _Unequal) -> str:
    change, row = found.change, found.row
    others = {topic: count for topic, count in found.counts.items() if change is None or topic != change.topic}
    if change is None:
        numbers = f"The numbers of partitions differ: {_numbers(others)}."
    else:
        did = "got more partitions" if change.is_growth else "was created"
        now = found.counts[change.topic]
        numbers = (
            f"{shown(change.topic)} {did} at {moment(change.at_ms)}, and has {counted(now, 'partition')} now, but "
            f"{_numbers(others)}."
        )
    needs = (
        "joins them, so they need the same number (co-partitioning)"
        if found.is_of_inputs
        else "needs as many in its internal topics as in its inputs"
    )
    stopped = f" since {moment(row['invalid_timestamp_ms'])}" if row["was_valid"] else ""
    return (
        f"{numbers} The Streams application {shown(found.group)} {needs}: the coordinator has no valid topology for "
        f"it{stopped}, and gives its members no tasks."
    )


def _of_members(came: Sequence[MemberLife], left: int) -> str:
    if not came:
        return ""
    all_left = "" if not left else ", and all left again" if left == len(came) else f", and {left} left again"
    return f" {counted(len(came), 'member')} joined since{all_left}."


def _impact(waiting: Mapping[str, int]) -> str:
    each = [f"{counted(left, 'record')} of {shown(topic)}" for topic, left in waiting.items()]
    wait = f" {' and '.join(each)} wait, and more come." if each else ""
    return (
        f"The application processes nothing.{wait} Nothing is lost as long as the topics keep their records. A "
        "restart does not help."
    )


def _since_note(found: _Unequal, since_ms: int | None) -> str:
    if found.change is None:
        return "the first record of the group that has no valid topology"
    if since_ms != found.change.at_ms:
        return "the group was without a valid topology when its log begins"
    return "the partitions were added then" if found.change.is_growth else "the topic was created then"


def _statement(found: _Unequal) -> str:
    what = (
        f"The inputs that {shown(found.group)} joins have different numbers of partitions"
        if found.is_of_inputs
        else f"An internal topic of {shown(found.group)} does not have as many partitions as its inputs"
    )
    return f"{what}: {_numbers(found.counts)}."


def _steps(context: RuleContext, found: _Unequal) -> tuple[NextStep, ...]:
    most = max(found.counts.values())
    fewer = sorted(topic for topic, count in found.counts.items() if count < most)
    changelogs = [each for each in found.changelogs if (partition_count(context, each) or most) < most]
    changelogs = [each for each in changelogs if each not in fewer]
    too = f", then to the changelog {listed(changelogs)}" if changelogs else ""
    recreate = (
        "recreate its inputs with equal numbers of partitions, copy their records into them, "
        if found.is_of_inputs
        else ""
    )
    return (
        context.ask_kafka(
            f"Give {counted(most, 'partition')} to {listed(fewer)}, too{too}, and start the application. Keys are then "
            "in other partitions than before: joins and state miss what was written under the same key before. If "
            "that matters, take the next step instead. Partitions cannot be removed, and a restart alone does not help",
            "kafka-topics",
            *("--alter", *option("--topic", fewer[0]), "--partitions", str(most)),
        ),
        NextStep(
            f"Or stop {shown(found.group)}, {recreate}reset the application (its internal topics and its state), and "
            "let it read its inputs from the start"
        ),
        NextStep(
            f"Look into the log of {shown(found.group)}: it names these topics (TopologyException, "
            "INCORRECTLY_PARTITIONED_TOPICS)"
        ),
        context.see("List what is waiting", Rows("lag", of_group(found.group))),
    )


RULE = incident_rule(
    kind=KIND,
    title="inputs of a Streams application have different numbers of partitions",
    about="""\
Streams groups (KIP-1071) without tasks, with an invalid topology, whose joined inputs (`copartitionGroups`) differ in
their numbers of partitions, or whose internal topics have other numbers than their inputs. The metadata log, or running
brokers, must show the numbers. Groups of the classic protocol do not record their topology.""",
    tables=("groups", "assignments", "current_offsets", "log_ends", "timeline", "lag"),
    levels={
        Level.HIGH: "records wait, or the application has been started",
        Level.MODERATE: "neither is known",
    },
    find=_find,
    listing=Rows("groups", ("group_kind=streams",)),
    causes=(
        PossibleCause(
            _INPUTS,
            "inputs that are joined have different numbers of partitions",
            "certain if the topology was valid before",
        ),
        PossibleCause(
            _INTERNAL,
            "a changelog or repartition topic has another number than the inputs that it belongs to",
            "the same; only if the inputs do not differ",
        ),
    ),
    folds=(
        Folds("crash_loop"),
        Folds("endless_rebalances"),
        Folds("group_stands_still"),
        Folds("too_slow"),
        Folds("group_emptied"),
        Folds("members_unsettled"),
        Folds("partitions_unassigned"),
        Folds("partitions_left_out"),
    ),
)

RULES = (RULE,)
