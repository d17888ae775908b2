"""A topic that a group began to read, and that brings more records than it can handle, as the cause of its backlogs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.incident_rule import Incident, PossibleCause
from kafka_records_tables.report.report_parts import Effect, Evidence, NextStep
from kafka_records_tables.report.rule import Question, Verdict
from kafka_records_tables.report.rule_context import (
    counted,
    length,
    listed,
    moment,
    places_shown,
    shown,
)
from kafka_records_tables.topics import METADATA, OFFSETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.facts.new_topics import NewTopic

NAME: Final = "new_topic"
CAUSE: Final = PossibleCause(
    NAME,
    "the group began to read another topic, which brings more records than it can handle",
    "for: it got the topic when the backlog began to grow, and would keep up without it; certain if its members are "
    "older than the topic",
)
QUESTIONS: Final = (
    Question(
        NAME,
        "work_slower",
        "Does the work for each record of its other topics take as long as before it read the new topic?",
        asked="if_undecided",
    ),
)


def with_new_topic(group: str, found: Incident, new: NewTopic, is_even: bool) -> Incident:
    """The incident of a group that reads too slowly, if it got a topic then. `is_even` says whether the records wait in
    all partitions, so that neither a member nor a partition is special."""
    verdict = _verdict(group, new, is_even)
    verdicts = {**found.verdicts, NAME: verdict}
    if not new.is_proved:
        return replace(found, verdicts=verdicts)
    finding = found.finding
    slower = verdicts.get("work_slower")
    if slower is not None:
        verdicts["work_slower"] = replace(slower, evidence_against=(*slower.evidence_against, _speed(new)))
    if finding.topics == (new.topic,):
        # It is already known that more is written to the topic than the group reads.
        verdicts.pop("more_written", None)
    elsewhere = new.waiting_in_others
    more = {"records_waiting_in_other_topics": elsewhere} if finding.topics == (new.topic,) else {}
    return replace(
        found,
        verdicts=verdicts,
        finding=replace(
            finding,
            title="a group reads a new topic with more records than it can handle, and its backlog grows",
            problem=(
                f"The group {shown(group)} has read {places_shown(new.places)} since {moment(new.given_ms)}: "
                f"{_how(new)}. {new.written:.1f} records per second are written to it, and the group handles "
                f"{new.handled:.1f} in all ({new.handled_before:.1f} before). {counted(new.waiting, 'record')} wait "
                f"there, and {elsewhere} in its other topics, {places_shown(new.others)}, to which only "
                f"{new.written_to_others:.1f} are written."
            ),
            impact=(
                f"It handles {new.handled_of_it:.1f} records per second of the new topic, and the records of its other "
                "topics wait longer and longer meanwhile. What its topics delete by age before it is read is lost."
            ),
            who=tuple(replace(each, did="reads the new topic") for each in finding.who),
            since_timestamp_ms=new.given_ms,
            scale={**finding.scale, **more},
            evidence=(*_given(new), *finding.evidence),
            evidence_count=len(_given(new)) + finding.evidence_count,
            next=tuple(each for each in finding.next if each.command) if verdict.is_certain else finding.next,
        ),
    )


def _how(new: NewTopic) -> str:
    """How the group came to the topic."""
    made = ""
    if new.made is not None:
        before = new.given_ms - new.made["at_timestamp_ms"]
        made = f"the topic was created at {moment(new.made['at_timestamp_ms'])}, {length(before)} before, and "
    if new.regex is not None:
        return f"{made}the regular expression {new.regex} of its subscription matches it"
    if new.is_of_old_members and new.made is not None:
        return f"{made}its members got it without a restart, as subscriptions to a pattern do"
    if new.is_of_old_members:
        return f"{made}its members got it without a restart"
    return f"{made}members that joined then subscribe to it, as after a release or another config"


def _given(new: NewTopic) -> tuple[Evidence, ...]:
    """The records that show when the topic was created, and when the group got it."""
    given = Evidence(f"the group got {places_shown(new.places)}", OFFSETS, *new.given_at, new.given_ms)
    if new.made is None:
        return (given,)
    made = Evidence(f"{shown(new.topic)} was created", METADATA, 0, new.made["log_offset"], new.made["at_timestamp_ms"])
    return made, given


def _speed(new: NewTopic) -> Evidence:
    return Evidence(
        f"in all, the group handles {new.handled:.1f} records per second since, and {new.handled_before:.1f} before"
    )


def _verdict(group: str, new: NewTopic, is_even: bool) -> Verdict:
    rates = Evidence(
        f"{new.written:.1f} records per second are written to {shown(new.topic)}, and {new.written_to_others:.1f} to "
        "the other topics of the group"
    )
    others = (
        f", and would keep up with the {new.written_to_others:.1f} of its other topics"
        if new.is_proved
        else f", and {new.written_to_others:.1f} are written to its other topics"
    )
    is_certain = new.is_proved and is_even and new.is_of_old_members and new.made is not None
    return Verdict(
        f"{shown(group)} reads the new topic {shown(new.topic)}: {_how(new)}. {new.written:.1f} records per second are "
        f"written to it; the group handles {new.handled:.1f} in all{others} ({listed(new.other_topics)}).",
        evidence_for=(*_given(new), *((rates, _speed(new)) if new.is_proved else ())),
        evidence_against=() if new.is_proved else (_speed(new), rates),
        is_certain=is_certain,
        steps=_steps(group, new),
    )


def _steps(group: str, new: NewTopic) -> tuple[NextStep, ...]:
    named = f"subscribe to {listed(new.other_topics)} by name"
    if new.regex is not None or (new.is_of_old_members and new.made is not None):
        pattern = f"the regular expression {new.regex}" if new.regex is not None else "a pattern"
        out = f"{named}, not by {pattern}"
    else:
        out = f"take it out of the list of topics of {shown(group)}"
    return (
        NextStep(
            f"If the records of {shown(new.topic)} are not for {shown(group)}, stop what writes them, or {out}. The "
            "group then catches up with its other topics by itself"
        ),
        NextStep(
            f"If they are for it, give {shown(new.topic)} a group of its own, so that the other topics do not wait"
        ),
        NextStep(
            f"Find out what the work on {new.handled_in_all} records of {shown(new.topic)} has done, such as messages "
            "sent to others, if they are not for this group"
        ),
    )


def by_new_topic(found: Sequence[tuple[Incident, NewTopic | None]]) -> list[Incident]:
    """The incidents of groups that read too slowly, each with the new topic that may be its cause. The incidents of a
    group in its other topics become effects of the one in its new topic, or of the first one if there is none."""
    kept: dict[str | int, Incident] = {}
    first = sorted(found, key=lambda each: each[1] is None or each[0].finding.topics != (each[1].topic,))
    for number, (each, new) in enumerate(first):
        key = each.finding.group_ids[0] if new is not None and new.is_proved else number
        cause = kept.get(key)
        if cause is None:
            kept[key] = each
        else:
            effects = (*cause.finding.effects, Effect.of(each.finding))
            kept[key] = replace(cause, finding=replace(cause.finding, effects=effects), rank=cause.rank + each.rank)
    return list(kept.values())
