"""Logs that lost their last records after groups had read them, and that continued with other records at the same
offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts.beginnings import beginning
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    MemberLife,
    Offset,
    Place,
    Span,
    commit_spans,
    log_ends,
    member_lives,
)
from kafka_records_tables.report.facts.known_logs import replication_factor
from kafka_records_tables.report.facts.leader_epochs import EpochStart, epochs_of
from kafka_records_tables.report.facts.mixed_offsets import MixedPlaces
from kafka_records_tables.report.facts.recreated_topics import recreation_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import AT_LEAST, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MINUTE_MS,
    MOST_EVIDENCE,
    SECOND_MS,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    places_shown,
)
from kafka_records_tables.report.rules.mixed_offsets import mixed_places
from kafka_records_tables.topics import OFFSETS

KIND: Final = "log_end_lost"
_CRASH, _REPLICA, _COPY = "unflushed", "replica_without_them", "older_copy"
_AT_ONCE_MS: Final = 10 * MINUTE_MS
"""Logs that lost their ends within this time form one incident."""
_MOST_TOPICS: Final = 2
"""The maximum number of topics whose logs are examined: those in which most offsets fell. Each of them requires reading
all files. A broker that died truncated many logs, so this finds some of them."""
_MOST_LOGS: Final = 20
"""The maximum number of logs to name in a step."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What a group had read of the lost records."""

    group_id: str
    commit: Span
    """The first commit of the highest offset that it reached."""
    repeated: int
    """The number of records it reread if it began at the start of the log."""
    is_least: bool
    """Whether `repeated` is a lower bound, because the start of the log is unknown."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A log that lost its last records."""

    place: Place
    start: EpochStart
    """The leader epoch that begins where the log was truncated."""
    reads: tuple[_Read, ...]

    @property
    def lost(self) -> int:
        """The number of lost records, or markers, that groups had read."""
        return max(each.commit.offset for each in self.reads) - self.start.offset

    @property
    def read_ms(self) -> int:
        """When a group had first read that far."""
        return min(each.commit.from_ms or 0 for each in self.reads)


def _find(context: RuleContext) -> list[Incident]:
    if not context.is_stored:
        return []
    cuts = sorted(_cuts(context), key=lambda each: each.read_ms)
    runs: list[list[_Cut]] = []
    for each in cuts:
        if runs and each.read_ms - runs[-1][-1].read_ms <= _AT_ONCE_MS:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [_incident(context, each) for each in runs]


def _cuts(context: RuleContext) -> list[_Cut]:
    suspects = _suspects(context, None)
    counts = Counter(topic for _, topic, _ in suspects if not topic.startswith("__"))
    # A log's first epoch begins with the log.
    starts = {
        place: of_log[1:]
        for topic, _ in counts.most_common(_MOST_TOPICS)
        for place, of_log in epochs_of(context, topic).items()
        if len(of_log) > 1
    }
    remade = {topic for topic in {name for name, _ in starts} if recreation_of(context, topic) is not None}
    if not any(key[1:] in starts and key[1] not in remade for key in suspects):
        return []
    # Offsets of other partitions show nothing about a log.
    suspects = _suspects(context, mixed_places(context))
    suspects = {key: at for key, at in suspects.items() if key[1:] in starts and key[1] not in remade}
    groups = sorted({group for group, *_ in suspects})[:MOST_GROUPS]
    spans, lives = commit_spans(context, groups), member_lives(context, groups)
    found: dict[tuple[Place, int], tuple[EpochStart, list[_Read]]] = {}
    for (group, topic, partition), highest in suspects.items():
        at = topic, partition
        of_place = spans.get((group, *at), [])
        cut = _cut_at(highest, of_place, starts[at], lives.get(group, ()))
        if cut is not None:
            start, commit = cut
            read = _read(context, group, at, start, commit, of_place)
            found.setdefault((at, start.offset), (start, []))[1].append(read)
    return [_Cut(place, start, tuple(reads)) for (place, _), (start, reads) in found.items()]


def _suspects(context: RuleContext, mixed: MixedPlaces | None) -> dict[Offset, int]:
    """The highest offsets from which groups fell, or that are beyond the end of the log; if `mixed` is given, without
    offsets of other partitions."""
    falls = context.table("regressions")
    falls = kept(falls, equal(falls, "kind", "rewind_by_member", "reset_while_empty"))
    beyond = context.table("lag")
    beyond = kept(beyond, equal(beyond, "problem", "beyond_end"))
    if mixed is not None:
        falls, beyond = mixed.falls_without(falls), mixed.rows_without_present(beyond)
    names = ["group_id", "topic", "partition"]
    rows = pa.concat_tables(
        [
            falls.select([*names, "from_offset"]).rename_columns([*names, "offset"]),
            beyond.select([*names, "offset"]),
        ]
    )
    rows = rows.filter(pc.is_valid(rows["offset"])).group_by(names).aggregate([("offset", "max")])
    columns = (rows[name].to_pylist() for name in (*names, "offset_max"))
    return {(group, topic, partition): offset for group, topic, partition, offset in zip(*columns, strict=True)}


def _cut_at(
    highest: int, spans: Iterable[Span], starts: Iterable[EpochStart], lives: Iterable[MemberLife]
) -> tuple[EpochStart, Span] | None:
    """A leader epoch that begins below an offset that a member had already committed, and that commit. The epoch's
    first record is younger than the commit, so the records that the group read were different ones, now lost."""
    commit = next((each for each in spans if each.offset == highest and each.from_ms is not None), None)
    if commit is None or commit.from_ms is None:
        return None
    read_ms: int = commit.from_ms
    # A tool can write any offset.
    if not any(each.log_partition == commit.log_partition and each.was_there(read_ms) for each in lives):
        return None
    for start in starts:
        is_later = start.at_ms is None or start.at_ms > read_ms + SECOND_MS
        if start.offset < highest and is_later and (start.before_ms is None or start.before_ms <= read_ms + SECOND_MS):
            return start, commit
    return None


def _read(context: RuleContext, group: str, place: Place, start: EpochStart, commit: Span, spans: list[Span]) -> _Read:
    """Where the group continued. A consumer that asks for the end of its last epoch continues where the log was
    truncated. If its offset is out of range, auto.offset.reset decides."""
    after = next((each for each in spans if each.log_offset > commit.log_offset and each.offset < commit.offset), None)
    if after is None or after.offset >= start.offset:
        return _Read(group, commit, 0, False)
    began = beginning(log_ends(context), place, start.offset, after.offset, None)
    return _Read(group, commit, began.again, not began.is_start_known)


def _incident(context: RuleContext, cuts: list[_Cut]) -> Incident:
    places = [each.place for each in cuts]
    reads = [each for cut in cuts for each in cut.reads]
    groups = tuple(sorted({each.group_id for each in reads}))
    topics = tuple(sorted({topic for topic, _ in places}))
    lost, repeated = sum(each.lost for each in cuts), sum(each.repeated for each in reads)
    since = min(each.read_ms for each in cuts)
    again = sorted({each.group_id for each in reads if each.repeated})
    is_least = any(each.is_least for each in reads)
    went_on = sorted(set(groups) - set(again))
    logs, have = ("log", "its") if len(places) == 1 else ("logs", "their")
    at_most = "at least " if is_least else ""
    evidence = tuple(each for cut in cuts for each in _shown_by(cut))
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if since >= context.at_ms - context.limit(f"{KIND}.lately") else Level.LOW,
        title=RULE.title,
        problem=(
            f"The {logs} of {places_shown(places)} lost {have} last records, {lost} at least, after "
            f"{moment(since)}: {listed(groups)} had committed offsets beyond where the present leader epoch begins, "
            "before its first record was written."
            + (" Other records have these offsets now." if any(each.start.at_ms is not None for each in cuts) else "")
        ),
        impact=(
            f"Producers had sent {counted(lost, 'record')} or more that are gone. Groups had processed some or all of "
            "them; results that refer to these offsets now mean other records."
            + (
                f" {listed(again)} began at the start again (auto.offset.reset earliest): {at_most}"
                f"{counted(repeated, 'record')} were read twice."
                if again
                else ""
            )
            + (f" {listed(went_on)} read nothing twice, as far as commits show." if went_on and again else "")
        ),
        consequence="data_lost",
        group_ids=groups,
        topics=topics,
        partitions=tuple(sorted(number for _, number in places)) if len(topics) == 1 else (),
        since_timestamp_ms=since,
        since_note="the last commit of what is gone",
        is_going_on=False,
        scale={
            f"records_lost{AT_LEAST}": lost,
            f"records_repeated{AT_LEAST if is_least else ''}": repeated,
            "partitions": len(places),
        },
        evidence=evidence[:MOST_EVIDENCE],
        evidence_count=len(evidence),
        rows=tuple(
            Rows("history", (condition_of("topic", topic), f"partition={number}")) for topic, number in places[:1]
        ),
        next=_steps(context, cuts, groups),
        measured={"records_lost": lost, "records_repeated": repeated, "logs": len(places)},
        thresholds=context.limits_of(f"{KIND}.lately"),
    )
    return Incident(finding, lost, _verdicts(context, cuts, topics))


def _shown_by(cut: _Cut) -> tuple[Evidence, ...]:
    where, start = f"{cut.place[0]}-{cut.place[1]}", cut.start
    read = min(cut.reads, key=lambda each: each.commit.from_ms or 0)
    commit = read.commit
    first = f", and its first record was written at {moment(start.at_ms)}" if start.at_ms is not None else ""
    return (
        Evidence(
            f"{read.group_id} commits {commit.offset} of {where}",
            OFFSETS,
            commit.log_partition,
            commit.log_offset,
            commit.from_ms,
        ),
        Evidence(f"leader epoch {start.epoch} of {where} begins at offset {start.offset}{first}"),
    )


def _verdicts(context: RuleContext, cuts: list[_Cut], topics: tuple[str, ...]) -> dict[str, Verdict]:
    gaps = [
        Evidence(
            f"{cut.place[0]}-{cut.place[1]} has no record between {moment(cut.start.before_ms)} and "
            f"{moment(cut.start.at_ms)} ({length(cut.start.at_ms - cut.start.before_ms)})"
        )
        for cut in cuts
        if cut.start.before_ms is not None and cut.start.at_ms is not None
    ]
    replicas = {replication_factor(context, topic) for topic in topics}
    alone = Evidence(f"{listed(topics)} {'has' if len(topics) == 1 else 'have'} a single replica of each partition")
    is_alone = replicas == {1}
    return {
        _CRASH: Verdict(
            "The broker died (power, host, disk) before the last records were on its disk, and no replica had them.",
            evidence_for=((alone,) if is_alone else ()) + tuple(gaps[:2]),
        ),
        _REPLICA: Verdict(
            "A replica that lacked the last records became leader (unclean.leader.election.enable, or producers with "
            "acks=1).",
            refuted_by=alone if is_alone else None,
            lacked=("the number of replicas",) if None in replicas else (),
        ),
        _COPY: Verdict(
            "Somebody replaced the files with an older copy (a snapshot of the disk, a backup), but not those of "
            f"{OFFSETS}.",
            evidence_against=(Evidence(f"{OFFSETS} has later commits, so it was not replaced"),),
        ),
    }


def _steps(context: RuleContext, cuts: list[_Cut], groups: tuple[str, ...]) -> tuple[NextStep, ...]:
    spans = "; ".join(
        f"{each.place[0]}-{each.place[1]}: {each.lost} or more, "
        + (f"after {moment(each.start.before_ms)} and " if each.start.before_ms is not None else "")
        + f"until about {moment(each.read_ms)}"
        for each in cuts[:_MOST_LOGS]
    )
    topic, number = cuts[0].place
    return (
        NextStep(f"Have the producing systems send again what was written then: {spans}"),
        NextStep(
            f"Have the owners of {listed(groups)} check results that are stored by partition and offset, and records "
            "that were processed twice"
        ),
        NextStep(
            "Look in the log of the broker for its last start (an unclean shutdown, truncation of "
            f"{topic}-{number} to offset {cuts[0].start.offset}), and compare the logs of other topics"
        ),
        context.ask_kafka(
            "Have more than one replica acknowledge: see the replication factor and min.insync.replicas",
            "kafka-topics",
            "--describe",
            *option("--topic", topic),
        ),
    )


RULE = incident_rule(
    kind=KIND,
    title="a log lost its last records, which groups had read",
    about="""\
Logs with a leader epoch that begins below an offset which a member had committed before (`leader-epoch-checkpoint`):
the records up to there are gone. Nothing is found if no group had read the lost records, if `__consumer_offsets` lost
its end too, or on running brokers.""",
    tables=("regressions", "lag", "timeline", "current_offsets", "log_ends"),
    levels={Level.HIGH: "within `lately`", Level.LOW: "before that"},
    find=_find,
    listing=Rows("regressions", ("kind=rewind_by_member",)),
    causes=(
        PossibleCause(
            _CRASH,
            "the broker died before the records were on its disk",
            "for: a single replica",
        ),
        PossibleCause(_REPLICA, "a replica without the records became leader", "refuted if there is a single replica"),
        PossibleCause(_COPY, "somebody replaced the files with an older copy", f"against: {OFFSETS} has later commits"),
    ),
    questions=(
        Question(
            _CRASH,
            _REPLICA,
            "Did a broker stop uncleanly then, or did a replica that was not in sync become leader?",
            asked="last",
        ),
    ),
    thresholds=(
        Threshold("lately", "duration", "7d", "incidents within this time matter", "offsets are kept for as long"),
    ),
    folds=(Folds("offsets_rewound"), Folds("offsets_reset"), Folds("offsets_beyond_end")),
)

RULES = (RULE,)
