"""Members that fail because partitions assigned to them have no committed offset (NoOffsetForPartitionException, with
auto.offset.reset none)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.cleaned_loops import is_cut
from kafka_records_tables.report.facts.departures import SESSION_MS, session_timeout
from kafka_records_tables.report.facts.group_facts import (
    MemberLife,
    Offset,
    Place,
    Span,
    gains_of,
    log_ends,
    stopped_quickly,
)
from kafka_records_tables.report.facts.known_logs import known_ends
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Question, Verdict
from kafka_records_tables.report.rule_context import (
    MINUTE_MS,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.reset_steps import reset_from_file
from kafka_records_tables.report.rules.stuck_partitions import KIND, departures_shown, who_left
from kafka_records_tables.topics import METADATA, OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from kafka_records_tables.report.rules.stuck_partitions import StuckPartition

NAME: Final = "no_committed_offset"
CAUSE: Final = PossibleCause(
    NAME,
    "members get partitions without a committed offset, and auto.offset.reset=none",
    "for: almost all members that leave had such a partition; all other offsets stopped when the first got it",
)
QUESTIONS: Final = tuple(
    Question(
        NAME,
        other,
        "Does the log of the application show NoOffsetForPartitionException?",
        asked="if_undecided",
    )
    for other in ("fails_at_start", "poison_record", "does_not_commit", "polls_too_late")
)
_SOON_MS: Final = 10_000
"""How long a group may need beyond the session timeout until nothing moves: a rebalance, and the last commits."""
_YOUNG_MS: Final = 10 * MINUTE_MS
"""Clients see new partitions within metadata.max.age.ms, five minutes by default."""
_OTHERS: Final = 5
"""At most one of so many members that left may have had none of these partitions: some are stopped."""


@dataclass(frozen=True, slots=True)
class NoOffset:
    """A partition without a committed offset of a group."""

    place: Place
    given_ms: int
    """When a member was first assigned it without an offset."""
    given_at: tuple[int, int]
    """Partition and offset of the record that shows it."""
    former: Span | None
    """The last offset, if it was deleted."""
    made: Mapping[str, Any] | None
    """The row of `topic_changes` with the creation of the partition; None if it is unknown."""
    before: int | None
    """The number of partitions that the topic had before; None if it was new."""

    @property
    def is_young(self) -> bool:
        """Whether the metadata log shows that the partition cannot have had an offset for long."""
        made_ms = None if self.made is None else self.made["at_timestamp_ms"]
        return made_ms is not None and self.given_ms - made_ms <= _YOUNG_MS


@dataclass(frozen=True, slots=True)
class NoOffsets:
    """The partitions without offsets that may be the reason why members of a group fail."""

    group: str
    partitions: list[NoOffset]
    last_ms: int
    """The last commit of the group."""
    left: list[MemberLife]
    """The members that have left since the first of these partitions was assigned, in this order."""
    failed: list[MemberLife]
    """The members among them that had one of the partitions."""

    @property
    def places(self) -> list[Place]:
        """The partitions."""
        return [each.place for each in self.partitions]

    @property
    def first(self) -> NoOffset:
        """The one that was assigned first."""
        return min(self.partitions, key=lambda each: each.given_ms)

    @property
    def alone(self) -> MemberLife | None:
        """The first member that left, if it had no other partition."""
        had = _had_at_end(self.left[0])
        return self.left[0] if had and had <= set(self.places) else None


def no_offsets(
    context: RuleContext, group: str, spans: Mapping[Offset, Sequence[Span]], lives: Sequence[MemberLife]
) -> NoOffsets | None:
    """The partitions without a committed offset that members of a group had when they left, if none of its offsets has
    moved since these were assigned; None if there are none.

    A member that gets such a partition with auto.offset.reset=none fails in its next poll. So it leaves soon, and reads
    nothing of its other partitions either.
    """
    own = {key[1:]: of_place for key, of_place in spans.items() if key[0] == group}
    last_ms = max((each.from_ms or 0 for of_place in own.values() for each in of_place), default=0)
    left = sorted((each for each in lives if each.left_ms is not None), key=lambda each: (each.left_ms, each.left_at))
    had = {place for each in left if (each.left_ms or 0) >= last_ms for place in _had_at_end(each)}
    rows = context.rows_of_group("pending_offsets", group)
    had -= set(zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True))
    without = {place: own.get(place, []) for place in sorted(had)}
    without = {place: ended for place, ended in without.items() if not ended or ended[-1].to_ms is not None}
    # A group that went on to read its other partitions does not fail because of these.
    soon_ms = (session_timeout(context, group) or SESSION_MS) + _SOON_MS
    found = [each for each in _given(context, group, without) if last_ms <= each.given_ms + soon_ms]
    if not found:
        return None
    since_ms = min(each.given_ms for each in found)
    if not any((ended[0].from_ms or last_ms) < since_ms for place, ended in own.items() if place not in without):
        return None
    if is_cut(context, group, since_ms) and not all(each.is_young for each in found):
        return None
    places = {each.place for each in found}
    left = [each for each in left if (each.left_ms or 0) >= since_ms]
    failed = [each for each in left if places & _had_at_end(each)]
    if len(failed) < context.limit(f"{KIND}.attempts") or _OTHERS * (len(left) - len(failed)) > len(left):
        return None
    if median((each.left_ms or 0) - max(each.joined_ms or since_ms, since_ms) for each in failed) > soon_ms:
        return None
    return NoOffsets(group, found, last_ms, left, failed)


def _had_at_end(life: MemberLife) -> set[Place]:
    """The partitions that a member had when it left."""
    left_ms = life.left_ms or 0
    return {each for each in life.places if life.lost_ms.get(each, left_ms) >= left_ms}


def _given(context: RuleContext, group: str, without: Mapping[Place, Sequence[Span]]) -> list[NoOffset]:
    """When partitions were first assigned after they had lost their offsets, or at all if they never had one."""
    rows = context.rows_of_group("timeline", group)
    rows = kept(rows, equal(rows, "event", "assignment_changed"), pc.is_valid(rows["at_timestamp_ms"]))
    found: dict[Place, NoOffset] = {}
    for row in rows.to_pylist():
        at_ms = row["at_timestamp_ms"]
        for place in gains_of(context, row):
            if place not in without or place in found:
                continue
            former = without[place][-1] if without[place] else None
            if former is None or at_ms >= (former.to_ms or 0):
                given_at = row["log_partition"], row["log_offset"]
                found[place] = NoOffset(place, at_ms, given_at, former, *_made(context, place))
    return list(found.values())


def _made(context: RuleContext, place: Place) -> tuple[Mapping[str, Any] | None, int | None]:
    """The row of `topic_changes` that shows the creation of a partition, and how many partitions there were before."""
    before = None
    for each in changes_of(context, place[0]):
        if each["event"] == "created":
            before = None
        if each["event"] in ("created", "partitions_added"):
            if place[1] < (each["partition_count"] or 0):
                return each, before
            before = each["partition_count"]
    return None, None


def with_no_offsets(context: RuleContext, loop: Incident, none: NoOffsets, stuck: Sequence[StuckPartition]) -> Incident:
    """The incident of a crash loop, if members fail because of partitions without an offset."""
    verdicts = {**loop.verdicts, NAME: _verdict(context, none)}
    where = places_shown(none.places)
    if "poison_record" in verdicts:
        verdicts["poison_record"] = _of_record(none, verdicts["poison_record"], len(stuck))
    if "fails_at_start" in verdicts:
        start = verdicts["fails_at_start"]
        began = Evidence(f"it began when {where} had been assigned, which had no committed offset")
        verdicts["fails_at_start"] = replace(start, evidence_against=(*start.evidence_against, began))
    silent = verdicts.get("does_not_commit")
    if silent is not None and silent.evidence_against:
        verdicts["does_not_commit"] = replace(silent, refuted_by=silent.evidence_against[0])
    unread = [each for each in (_unread(context, each) for each in none.partitions) if each]
    waiting = loop.finding.scale["records_waiting"] + sum(unread)
    count = len(stuck) + len(unread)
    names = listed(list(dict.fromkeys(each.name for each in none.failed)))
    stays = [each for each in map(stopped_quickly, none.failed) if each is not None]
    finding = replace(
        loop.finding,
        title="members get partitions without a committed offset, leave and join again, endlessly",
        problem=(
            f"No offset of the group {shown(none.group)} has moved since its members got {where}, {_why(none)}, "
            "without a committed offset: "
            f"{counted(len(none.failed), 'member')} with one of these partitions left since, half of them within "
            f"{length(median(stays))} of joining ({names}). The offsets of "
            f"{places_shown((each.topic, each.partition) for each in stuck)} have stood still since "
            f"{moment(none.last_ms)}, the last commit."
        ),
        impact=(
            f"{counted(waiting, 'record')} of {counted(count, 'partition')} wait, and more come. Each restart "
            "rebalances the group."
        ),
        topics=tuple(sorted({*loop.finding.topics, *(topic for topic, _ in none.places)})),
        partitions=tuple(
            sorted({*loop.finding.partitions, *(each for topic, each in none.places if topic == stuck[0].topic)})
        ),
        who=who_left(none.group, none.failed),
        since_timestamp_ms=none.first.given_ms,
        scale={"records_waiting": waiting, "attempts": len(none.failed), "partitions": count},
        evidence=departures_shown(none.failed),
        evidence_count=len(none.failed),
        measured={**loop.finding.measured, "attempts": len(none.failed)},
    )
    return replace(loop, finding=finding, verdicts=verdicts)


def _why(none: NoOffsets) -> str:
    """Why the partitions have no offset, in words that follow their names."""
    one = none.first
    if one.former is not None:
        return f"whose offset{'' if len(none.places) == 1 else 's'} ended at {moment(one.former.to_ms or 0)}"
    if one.made is None or not one.is_young:
        return f"first assigned at {moment(one.given_ms)}"
    made_ms = one.made["at_timestamp_ms"]
    if one.before is None:
        return f"of a topic that was created at {moment(made_ms)}"
    return f"added at {moment(made_ms)} ({_counts(one)})"


def _counts(one: NoOffset) -> str:
    return f"{(one.made or {})['partition_count']} partitions in place of {one.before}"


def _unread(context: RuleContext, one: NoOffset) -> int:
    """The known number of records that wait in a partition."""
    end, start = known_ends(context).get(one.place), log_ends(context).start(one.place)
    if end is None:
        return 0
    return max(end - max(start or 0, 0 if one.former is None else one.former.offset), 0)


def _verdict(context: RuleContext, none: NoOffsets) -> Verdict:
    one, where = none.first, places_shown(none.places)
    made = one.made if one.former is None and one.is_young else None
    facts = (
        (
            Evidence(
                f"{shown(one.place[0])} "
                + ("was created" if one.before is None else f"got more partitions: {_counts(one)}"),
                METADATA,
                0,
                made["log_offset"],
                made["at_timestamp_ms"],
            )
            if made is not None
            else None
        ),
        Evidence(
            f"{where} {'was' if len(none.places) == 1 else 'were'} assigned without a committed offset, and the group "
            "never committed one for them",
            OFFSETS,
            *one.given_at,
            one.given_ms,
        ),
        Evidence(f"{len(none.failed)} of the {counted(len(none.left), 'member')} that left since had one of them"),
    )
    return Verdict(
        f"The members of {shown(none.group)} have auto.offset.reset=none, and fail with NoOffsetForPartitionException: "
        f"no offset is committed for {where}, {_why(none)}. A member that gets one of these partitions fails in its "
        "next poll, so it reads nothing of its other partitions either; then the next member gets them.",
        evidence_for=tuple(each for each in facts if each is not None),
        lacked=("auto.offset.reset of the members",),
        steps=_steps(context, none),
    )


def _steps(context: RuleContext, none: NoOffsets) -> tuple[NextStep, ...]:
    where = places_shown(none.places)
    stop = f"Stop all members of {shown(none.group)}, set its offsets for {where} only"
    start = "Then start it again: it reads its other partitions from their committed offsets"
    former = {each.place: each.former.offset for each in none.partitions if each.former is not None}
    if len(former) == len(none.partitions):
        what = f"{stop} to the last ones that were committed, and start it again. For that,"
        return (reset_from_file(context, none.group, what, former.items()),)
    topics: dict[str, list[int]] = {}
    for topic, partition in none.places:
        topics.setdefault(topic, []).append(partition)
    words = [f"{topic}:{','.join(map(str, sorted(numbers)))}" for topic, numbers in topics.items()]
    return (
        context.ask_kafka(
            f"{stop} to the start of their logs, with --execute in place of --dry-run",
            "kafka-consumer-groups",
            "--reset-offsets",
            *option("--group", none.group),
            *(word for each in words for word in option("--topic", each)),
            "--to-earliest",
            "--dry-run",
        ),
        NextStep(f"{start}. With auto.offset.reset=earliest, new partitions do not stop it"),
    )


def _of_record(none: NoOffsets, poison: Verdict, stopped: int) -> Verdict:
    """The verdict about a record on which members fail: not one that they did not read when the first of them left."""
    if none.alone is not None:
        first = none.alone
        return replace(
            poison,
            refuted_by=Evidence(
                f"{first.name} was the first to leave, and had only {places_shown(_had_at_end(first))}",
                OFFSETS,
                first.log_partition,
                first.left_at,
                first.left_ms,
            ),
        )
    at_once = Evidence(
        f"the offsets of {counted(stopped, 'partition')} stopped when {places_shown(none.places)} had been assigned"
        + (": a record in each of them would have to fail" if stopped > 1 else "")
    )
    return replace(poison, evidence_for=poison.evidence_for[:1], evidence_against=(*poison.evidence_against, at_once))
