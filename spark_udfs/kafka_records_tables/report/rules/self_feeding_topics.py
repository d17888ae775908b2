"""Topics that have grown many times faster since a group began to consume them, as if its application wrote to them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafka_records_tables.report.case_columns import equal, grouped, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    LogEnds,
    commit_spans,
    gains_of,
    log_ends,
    member_lives,
    names_of,
)
from kafka_records_tables.report.facts.known_logs import known_ends
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, command_of, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    HOUR_MS,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.topics import OFFSETS

KIND: Final = "grows_since_consumed"
_OF_FAILURES: Final = re.compile(
    r"(?<![a-z])(retr(y|ies)|re-?try|dlq|dlt|dead-?letters?|errors?|fail(ed|ures?)?)(?![a-z])", re.I
)
"""Words in the names of topics to which consumers write records that they could not process."""
_STEADY: Final = 2
"""A topic that grows at most this many times faster counts as steady."""
_LONGEST_MS: Final = HOUR_MS
"""Topics are compared over at most this time before and after."""


@dataclass(frozen=True, slots=True)
class _Growth:
    """The number of records written to topics before and after a given time, in two time spans."""

    before: int
    after: int
    last: int
    """The number in the second half of the time span after it."""
    before_ms: int
    after_ms: int

    @property
    def times(self) -> float:
        """How many times faster the topics grew after that time; infinite if they did not grow before."""
        rate = self.before / self.before_ms
        return (self.after / self.after_ms) / rate if rate else float("inf") if self.after else 1

    @property
    def is_lasting(self) -> bool:
        """Whether about half of the growth was in the second half of the time span."""
        return 3 * self.last >= self.after


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("timeline")
    rows = kept(rows, equal(rows, "event", "first_commit"))
    counts = grouped(rows, ["group_id"], [("event", "count")])
    several = [
        group
        for group, count in zip(counts["group_id"].to_pylist(), counts["event_count"].to_pylist(), strict=True)
        if count > 1
    ]
    least = context.limit(f"{KIND}.lasts")
    found, suspects = [], list[tuple[str, str, int, tuple[str, ...]]]()
    for group, firsts in _firsts(rows, several).items():
        began = min(firsts.values())
        for topic, at_ms in firsts.items():
            others = tuple(sorted(each for each in firsts if firsts[each] <= began + least // 2 and each != topic))
            # Topics with a Kafka Streams application's id are its own.
            is_later = at_ms - began >= least // 2 and context.at_ms - at_ms >= least
            if is_later and others and not topic.startswith(f"{group}-"):
                suspects.append((group, topic, at_ms, others))
    for each in suspects[:MOST_GROUPS]:
        incident = _incident(context, *each)
        found += [incident] if incident is not None else []
    return found


def _firsts(rows: Any, groups: Sequence[str]) -> dict[str, dict[str, int]]:
    """When groups made their first commits for each of their topics."""
    found: dict[str, dict[str, int]] = {}
    for row in kept(rows, equal(rows, "group_id", *groups)).to_pylist():
        if row["at_timestamp_ms"] is not None:
            topic = json.loads(row["detail"])["topic"]
            found.setdefault(row["group_id"], {}).setdefault(topic, row["at_timestamp_ms"])
    return found


def _incident(context: RuleContext, group: str, topic: str, first_ms: int, others: tuple[str, ...]) -> Incident | None:
    since, client, event = _assigned(context, group, topic, first_ms)
    ends = log_ends(context)
    growth, of_others = (_growth(context, ends, names, since) for names in ((topic,), others))
    is_of_failures = _OF_FAILURES.search(topic) is not None
    if growth is None or growth.times < context.limit(f"{KIND}.times") or not growth.is_lasting:
        return None
    # A topic without earlier records may be new, like its consumer.
    if not growth.before and not is_of_failures:
        return None
    consumed = _consumed(context, group, topic, since)
    if 2 * consumed < growth.after:
        return None
    is_steady = of_others is not None and of_others.before > 0 and of_others.times <= _STEADY
    if not is_steady and not is_of_failures:
        return None
    faster = "" if not growth.before else f", at least {growth.times:.0f} times as many as in the same time before"
    proof = Evidence(
        f"{topic} is assigned to {client or 'a member'}", OFFSETS, event["log_partition"], event["log_offset"], since
    )
    named = Evidence(f"{topic} is, by its name, a topic for records that could not be processed")
    keeps_up = Evidence(f"{group} consumed {consumed} of them, so it consumes as fast as they are written")
    steady = Evidence(f"{listed(others)} did not grow faster")
    readers = _other_readers(context, group, topic)
    whose = "" if client is None else f" (first by {shown(client)})"
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if is_of_failures and is_steady else Level.MODERATE,
        title=RULE.title,
        problem=(
            f"{shown(group)} consumes {listed(others)} and, since {moment(since)}{whose}, also {shown(topic)}. Since "
            f"then, {counted(growth.after, 'record')} were written to {shown(topic)} in {length(growth.after_ms)}"
            f"{faster}."
        ),
        impact=(
            "If the application itself writes what it consumes, each of these records comes back until somebody stops "
            "it; the lag does not show it"
            + (f". {listed(readers)} {'reads' if len(readers) == 1 else 'read'} the same topic" if readers else "")
            + "."
        ),
        consequence="waste",
        group_ids=(group,),
        topics=(topic,),
        partitions=tuple(sorted(number for name, number in known_ends(context) if name == topic)),
        who=(Actor("was the first to consume it", group, event["member_id"], client),),
        since_timestamp_ms=since,
        is_going_on=True,
        scale={"records_written": growth.after},
        evidence=(proof,),
        evidence_count=1,
        rows=(Rows("timeline", of_group(group)), Rows("log_ends", (f"topic={topic}",))),
        next=(
            NextStep(
                f"If so, take {shown(topic)} out of the subscription of {shown(group)} (a list of topics, or a "
                "pattern that leaves it out), or go back to the release before; more members make it worse"
            ),
            NextStep(
                f"Then skip or remove the copies in {shown(topic)}, before "
                f"{listed(readers) if readers else 'others'} process them"
            ),
            context.see("List when the group got each topic", Rows("timeline", of_group(group))),
        ),
        measured={"records": growth.after, "records_before": growth.before},
        thresholds=context.limits_of(*(f"{KIND}.{each.name}" for each in RULE.thresholds)),
    )
    verdicts = {
        "writes_to_its_topic": Verdict(
            f"The application of {shown(group)} writes to {shown(topic)}, which it has also consumed since then: an "
            "endless loop.",
            evidence_for=(proof, keeps_up, *((steady,) if is_steady else ()), *((named,) if is_of_failures else ())),
        ),
        "more_is_written": Verdict(
            f"Other producers have written more to {shown(topic)} since about that time, for example because of the "
            "same release.",
            evidence_against=(steady,) if is_steady else (),
        ),
    }
    copies = context.ask_kafka(
        "Look for the same records again and again",
        "kafka-console-consumer",
        *option("--topic", topic),
        *("--max-messages", "50", "--property", "print.key=true", "--property", "print.timestamp=true"),
    )
    return Incident(finding, growth.after, verdicts, copies.command)


def _assigned(context: RuleContext, group: str, topic: str, first_ms: int) -> tuple[int, str | None, Mapping[str, Any]]:
    """When a topic was first assigned to a member of a group, that member's client id, and the event. Without an
    assignment, the time of the first commit."""
    rows = context.rows_of_group("timeline", group)
    rows = kept(rows, equal(rows, "event", "assignment_changed", "first_commit")).to_pylist()
    first = next(each for each in rows if each["event"] == "first_commit" and each["at_timestamp_ms"] == first_ms)
    gains = [
        each
        for each in rows
        if each["event"] == "assignment_changed"
        and any(name == topic for name, _ in gains_of(context, each))
        and (each["at_timestamp_ms"] or first_ms) <= first_ms
    ]
    event = min(gains, key=lambda each: (each["at_timestamp_ms"] or 0, each["log_offset"]), default=first)
    lives = member_lives(context, (group,)).get(group, [])
    client = names_of(each for each in lives if each.member_id == event["member_id"])
    return event["at_timestamp_ms"] or first_ms, client[0] if client else None, event


def _growth(context: RuleContext, ends: LogEnds, topics: Sequence[str], since_ms: int) -> _Growth | None:
    """The growth of topics before and after a given time; None if files do not show it for long enough."""
    places = [each for each in known_ends(context) if each[0] in topics]
    after_ms = min(context.at_ms - since_ms, _LONGEST_MS)
    created = [
        row["created_timestamp_ms"]
        for row in context.look("topics").to_pylist()
        if row["topic"] in topics and row["deleted_timestamp_ms"] is None and row["created_timestamp_ms"] is not None
    ]
    before_ms = min(since_ms - max(created, default=0), after_ms)
    if not places or before_ms < after_ms // 4:
        return None
    begins = [ends.end_at(each, since_ms - before_ms) for each in places]
    # No record has been deleted from logs that start at 0, so all were written since the topic was created.
    if None in begins and not any(ends.start(each) for each in places) and len(created) == len(topics):
        begins, before_ms = [0] * len(places), since_ms - min(created)
    at = [begins, *([ends.most_at(each, since_ms + ms) for each in places] for ms in (0, after_ms // 2, after_ms))]
    if any(None in each for each in at):
        return None
    begin, there, half, last = (sum(each or 0 for each in of_time) for of_time in at)
    return _Growth(there - begin, last - there, last - half, before_ms, after_ms)


def _consumed(context: RuleContext, group: str, topic: str, since_ms: int) -> int:
    """The number of records of a topic that a group has consumed since a given time, according to its commits."""
    total = 0
    for (_, name, _), spans in commit_spans(context, (group,)).items():
        later = [each.offset for each in spans if name == topic and (each.from_ms or 0) >= since_ms]
        total += later[-1] - later[0] if later else 0
    return total


def _other_readers(context: RuleContext, group: str, topic: str) -> list[str]:
    rows = context.table("current_offsets")
    found = kept(rows, equal(rows, "topic", topic))["group_id"].unique().to_pylist()
    return sorted(each for each in found if each != group)


RULE = incident_rule(
    kind=KIND,
    title="a topic has grown many times faster since a group began to consume it too",
    about="""\
A topic that a group began to consume later than others, and that has grown `times` times as fast since, for `lasts` or
longer. The group's other topics did not, or its name contains a word such as retry, dlq or error.""",
    tables=("timeline", "current_offsets", "log_ends"),
    levels={
        Level.HIGH: "the topic is for records that could not be processed, and the other topics did not grow faster",
        Level.MODERATE: "otherwise",
    },
    find=_find,
    listing=Rows("timeline", ("event=first_commit",)),
    causes=(
        PossibleCause(
            "writes_to_its_topic",
            "the application of the group writes to the topic, for example because its subscription pattern "
            "also matches its retry topic",
            "for: its start, and the name",
        ),
        PossibleCause(
            "more_is_written",
            "other producers write more, for example because of the same release",
            "against: the group's other topics are steady",
        ),
    ),
    questions=(
        Question(
            "writes_to_its_topic",
            "more_is_written",
            "Does the application of the group write to the topic? Then it has the same records again and again, and "
            "the topic stops growing when the group is stopped",
            command_of(_find),
        ),
    ),
    thresholds=(
        Threshold("times", "count", 10, "how many times faster it must grow", "the load of a day varies by less"),
        Threshold("lasts", "duration", "60s", "how long it must grow", "peaks of a minute are common"),
    ),
)

RULES = (RULE,)
