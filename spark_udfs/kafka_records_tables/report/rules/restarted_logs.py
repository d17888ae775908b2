"""Groups of one `__consumer_offsets` log that all started over after leader changes, because the log was lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import kept
from kafka_records_tables.report.facts.beginnings import has_all_records
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, commit_spans, log_ends
from kafka_records_tables.report.facts.known_logs import partition_count
from kafka_records_tables.report.facts.leader_epochs import EpochStart, epochs_of
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    listed,
    moment,
)
from kafka_records_tables.topics import OFFSETS

KIND: Final = "coordinator_log_restarted"
_LOST, _FIRST = "log_lost", "first_groups"
_SEVERAL: Final = 2
"""If this many groups begin at once in one log, they are unlikely to be its first groups."""


@dataclass(frozen=True, slots=True)
class _Began:
    """The first record of a group."""

    group_id: str
    log_partition: int
    at_ms: int
    log_offset: int


@dataclass(frozen=True, slots=True)
class _Restart:
    """A log that begins at a leader change although other logs of the topic are older."""

    partition: int
    first: EpochStart
    began_ms: int
    sibling: int
    """Another partition of the topic whose leader also changed then."""
    changed: EpochStart
    """That leader change."""
    groups: tuple[_Began, ...]
    """The groups that began right after it, ordered by first record."""


def _find(context: RuleContext) -> list[Incident]:
    if not context.is_stored or not context.table("timeline").num_rows:
        return []
    return [_incident(context, each) for each in _restarts(context)]


def _beginnings(context: RuleContext) -> list[_Began]:
    """The first records of groups. Groups in several logs are left out, because the number of partitions was
    changed."""
    rows = context.table("timeline")
    rows = kept(rows, pc.is_valid(rows["at_timestamp_ms"]), pc.is_valid(rows["log_offset"]))
    first = rows.group_by(["group_id", "log_partition"], use_threads=False).aggregate(
        [("at_timestamp_ms", "min"), ("log_offset", "min")]
    )
    names = ("group_id", "log_partition", "at_timestamp_ms_min", "log_offset_min")
    every = [_Began(*each) for each in zip(*(first[name].to_pylist() for name in names), strict=True)]
    logs = Counter(each.group_id for each in every)
    found = [each for each in every if logs[each.group_id] == 1]
    return sorted(found, key=lambda each: (each.at_ms, each.log_offset))


def _restarts(context: RuleContext) -> list[_Restart]:
    within = context.limit(f"{KIND}.within")
    logs = {partition: starts for (_, partition), starts in epochs_of(context, OFFSETS).items()}
    found = []
    for partition, starts in sorted(logs.items()):
        first = starts[0]
        # A new topic has epoch 0. A copy of another replica has that replica's epochs.
        if first.epoch == 0 or first.offset or first.at_ms is None or not has_all_records(context, partition):
            continue
        near = [
            (other, each)
            for other, of_other in logs.items()
            for each in of_other
            if other != partition and _is_just_before(each, first.at_ms, within)
        ]
        if not near:
            continue
        sibling, changed = max(near, key=lambda each: each[1].before_ms or 0)
        before, until = changed.before_ms or 0, first.at_ms + within
        began = [each for each in context.once(_beginnings) if before < each.at_ms <= until]
        own = [each for each in began if each.log_partition == partition]
        own = [each for each in own if not _is_of_new_topics(context, each.group_id, before)]
        # New groups in logs that had older records show that applications were deployed then.
        old = {other for other, of_other in logs.items() if of_other[0].epoch == 0 and has_all_records(context, other)}
        others = {each.group_id for each in began if each.log_partition in old}
        if own and not others:
            found.append(_Restart(partition, first, first.at_ms, sibling, changed, tuple(own)))
    return found


def _is_just_before(change: EpochStart, began_ms: int, within: int) -> bool:
    """Whether a log with older records continued under a new leader at about the time another log began."""
    before, at = change.before_ms, change.at_ms
    return before is not None and at is not None and before < began_ms and abs(at - began_ms) <= within


def _is_of_new_topics(context: RuleContext, group: str, since_ms: int) -> bool:
    """Whether all topics of a group were created after a given time, so that the group must be new too."""
    topics = set(context.rows_of_group("current_offsets", group)["topic"].to_pylist())
    made = [
        [each["at_timestamp_ms"] for each in changes_of(context, topic) if each["event"] == "created"]
        for topic in topics
    ]
    return bool(topics) and all(times and times[0] is not None and times[0] > since_ms for times in made)


def _incident(context: RuleContext, found: _Restart) -> Incident:
    names = tuple(each.group_id for each in found.groups)
    log, several = f"{OFFSETS}-{found.partition}", len(names) >= _SEVERAL
    ends = log_ends(context)
    joined = {each.group_id: each.at_ms for each in found.groups}
    below, again, topics = [], 0, set()
    for (group, topic, partition), spans in commit_spans(context, names[:MOST_GROUPS]).items():
        topics.add(topic)
        place = topic, partition
        again += max((ends.end_at(place, found.changed.before_ms) or 0) - (ends.start(place) or 0), 0)
        if spans[0].offset < (ends.end_at(place, joined.get(group)) or 0):
            below.append(group)
    first, last = found.groups[0], found.groups[-1]
    older = moment(found.changed.before_ms or 0)
    shows = Evidence(
        f"the first record of {log} has leader epoch {found.first.epoch}, and was written at {moment(found.began_ms)}",
        OFFSETS,
        found.partition,
        0,
        found.began_ms,
    )
    sibling = Evidence(
        f"the leader of {OFFSETS}-{found.sibling} changed then too, and its records go on from {older}",
        OFFSETS,
        found.sibling,
        found.changed.offset,
        found.changed.at_ms,
    )
    whose = "its" if len(names) == 1 else "their"
    who = "it" if len(names) == 1 else "they"
    below_words = f" {listed(sorted(set(below)))} began below the end, so not with latest." if below and several else ""
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if several else Level.NOTE,
        title=RULE.title,
        problem=(
            f"The log {log} begins at {moment(found.began_ms)}, just after its leader changed, and has nothing from "
            f"before, while other logs of the topic have older records. "
            + (
                f"Its {counted(len(names), 'group')} ({listed(names)}) began within "
                f"{length(last.at_ms - first.at_ms)} of each other, and no group of another log began then."
                if several
                else f"Its group {listed(names)} began then."
            )
        ),
        impact=(
            f"If the log was lost, {'the groups' if several else 'the group'} had no offsets any more: either {who} "
            f"began at the start of the logs (auto.offset.reset earliest), and up to {counted(again, 'record')} of "
            f"{whose} topics were read a second time, or at the end (latest), and what was written between {whose} "
            f"last commit and {moment(first.at_ms)} was never read: no record shows which.{below_words}"
        ),
        group_ids=names,
        topics=(OFFSETS, *sorted(topics)),
        since_timestamp_ms=found.began_ms,
        since_note="the first record of the log",
        is_going_on=False,
        scale={"groups": len(names), "records_possibly_repeated": again},
        evidence=(
            shows,
            sibling,
            *(
                Evidence(f"the first record of {each.group_id}", OFFSETS, found.partition, each.log_offset, each.at_ms)
                for each in found.groups
            ),
        )[:MOST_EVIDENCE],
        evidence_count=2 + len(names),
        rows=(Rows("timeline", (f"log_partition={found.partition}",)), Rows("log_ends", (f"topic={OFFSETS}",))),
        next=_steps(context, found, log),
        measured={"groups": len(names), "began_within_ms": last.at_ms - first.at_ms},
        thresholds=context.limits_of(f"{KIND}.within"),
    )
    return Incident(finding, len(names), _verdicts(context, found, shows, sibling))


def _verdicts(context: RuleContext, found: _Restart, shows: Evidence, sibling: Evidence) -> dict[str, Verdict]:
    log, number = f"{OFFSETS}-{found.partition}", len(found.groups)
    several = number >= _SEVERAL
    at_once = Evidence(
        f"{counted(number, 'group')} of this log, and none of another log, began at once",
        OFFSETS,
        found.partition,
        found.groups[0].log_offset,
        found.groups[0].at_ms,
    )
    count = partition_count(context, OFFSETS)
    chance = "" if count is None else f", one of {count},"
    unlikely = Evidence(f"{counted(number, 'new group')} would all belong to one log{chance} that was empty")
    return {
        _LOST: Verdict(
            f"The files of {log} were lost when its broker stopped or its leader changed (deleted, another disk or "
            "volume, a copy without them, or a replica without records that became leader): the log began again, "
            "empty, and its coordinator knew nothing of its groups.",
            (shows, sibling, at_once) if several else (),
        ),
        _FIRST: Verdict(
            f"{log} had no records before: {'these groups are' if several else 'the group is'} new, and began when "
            "brokers had just started.",
            evidence_for=() if several else (shows,),
            evidence_against=(unlikely,) if several else (),
        ),
    }


def _steps(context: RuleContext, found: _Restart, log: str) -> tuple[NextStep, ...]:
    at = moment(found.began_ms)
    return (
        NextStep(
            f"Find out what became of the earlier files of {log} before another broker is restarted: look for "
            f'"Created log for partition {log}" in the log of its broker shortly before {at}, in its other data '
            "directories and on the other replicas. Keep any copy: it has the offsets"
        ),
        NextStep(
            "Compare the groups that should be in this log (kafka-consumer-groups --list of an earlier day, the "
            "configs of applications) with those that are: groups without members will begin again as their "
            "auto.offset.reset says. Expect applications to get records twice"
        ),
        context.see("List what the groups of this log did", Rows("timeline", (f"log_partition={found.partition}",))),
        context.ask_kafka(
            "Ask which brokers have the partition, and whether all are in sync",
            "kafka-topics",
            *("--describe", "--topic", OFFSETS),
        ),
    )


RULE = incident_rule(
    kind=KIND,
    title="the groups of a coordinator's log all began again after a restart",
    about="""\
Logs of `__consumer_offsets` that begin at offset 0 with a later leader epoch than 0, whose groups all began within
`within`, while none began in other logs. A log that was empty until the restart looks the same. Nothing is found in
cleaned logs and on running brokers.""",
    tables=("timeline", "log_ends", "current_offsets"),
    levels={
        Level.HIGH: f"{_SEVERAL} groups or more began at once, and none in other logs",
        Level.NOTE: "one group did, which may be new",
    },
    find=_find,
    listing=Rows("log_ends", (f"topic={OFFSETS}",)),
    causes=(
        PossibleCause(
            _LOST,
            "the files of the log were lost, and a broker made an empty one",
            "for: several groups began at once",
        ),
        PossibleCause(
            _FIRST,
            "the groups are new, and the first ones of the log",
            "for: one group; against: several",
        ),
    ),
    questions=(
        Question(
            _LOST,
            _FIRST,
            "Did one of these groups have offsets before the restart?",
            asked="last",
        ),
    ),
    thresholds=(
        Threshold(
            "within",
            "duration",
            "30s",
            "how long after a change of leaders a log, and groups in it, count as begun with it",
            "members of a group that is unknown join again at once, and a client waits up to ten seconds for a broker",
        ),
    ),
)

RULES = (RULE,)
