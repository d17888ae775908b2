"""Groups that were assigned added partitions some time after records had been written to these, and may have begun at
their ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.beginnings import has_all_records
from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.facts.commit_ages import SoonCommits, soon_commits
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    LogEnds,
    Offset,
    Place,
    Span,
    commit_spans,
    log_ends,
)
from kafka_records_tables.report.facts.skipped_beginnings import assigned_ms
from kafka_records_tables.report.facts.topic_changes import changes
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    SECOND_MS,
    RuleContext,
    counted,
    length,
    moment,
    of_group,
    partitions_shown,
    shown,
)
from kafka_records_tables.topics import METADATA, OFFSETS

KIND: Final = "added_partitions_begun_late"
_MANY: Final = 10_000
"""If fewer offsets precede a first commit, the time until it may be too short to measure."""
_AT_ENDS, _READ_ALL = "began_at_ends", "read_everything"


@dataclass(frozen=True, slots=True)
class _Added:
    """Partitions that were added to a topic."""

    topic: str
    first: int
    at_ms: int
    log_offset: int


@dataclass(frozen=True, slots=True)
class _Beginning:
    """Where a group began in a partition."""

    place: Place
    first: Span
    given_ms: int
    """When a member was assigned the partition."""
    start: int
    end: int
    """The end of the log at that time."""

    @property
    def is_below(self) -> bool:
        """Whether the first commit shows that the group did not begin at the end."""
        return self.first.offset < self.end

    @property
    def per_second(self) -> float:
        """How many records per second the group read, if it began at the start; 0 if there are too few to tell."""
        if self.first.offset - self.start < _MANY:
            return 0
        return (self.first.offset - self.start) * SECOND_MS / max((self.first.from_ms or 0) - self.given_ms, 1)


def _find(context: RuleContext) -> list[Incident]:
    if not context.is_stored or not context.table("timeline").num_rows:
        return []
    found = []
    for added in _additions(context):
        rows = context.table("current_offsets")
        rows = kept(rows, equal(rows, "topic", added.topic), pc.greater_equal(rows["partition"], added.first))
        # If a cleaner has removed the first commits, it is unknown where a group began.
        places = zip(rows["group_id"].to_pylist(), rows["log_partition"].to_pylist(), strict=True)
        groups = tuple(dict.fromkeys(group for group, log in places if has_all_records(context, log)))[:MOST_GROUPS]
        spans = commit_spans(context, groups)
        for group in groups:
            own = {key: each for key, each in spans.items() if key[0] == group}
            incident = _of_group(context, added, group, own)
            if incident is not None:
                found.append(incident)
    return found


def _additions(context: RuleContext) -> Iterator[_Added]:
    """The last increase in partitions of each topic."""
    for topic, rows in context.once(changes).items():
        counts = [each for each in rows if each["event"] in ("created", "partitions_added")]
        if len(counts) > 1 and counts[-1]["event"] == "partitions_added":
            before, last = counts[-2]["partition_count"], counts[-1]
            if before and last["at_timestamp_ms"] is not None and not topic.startswith("__"):
                yield _Added(topic, before, last["at_timestamp_ms"], last["log_offset"])


def _of_group(
    context: RuleContext, added: _Added, group: str, spans: Mapping[Offset, Sequence[Span]]
) -> Incident | None:
    old = [each for (_, topic, number), each in spans.items() if topic == added.topic and number < added.first]
    if not any(each[0].from_ms is not None and each[0].from_ms < added.at_ms for each in old):
        return None  # The group did not consume the topic before.
    found = list(_beginnings(context, group, spans, log_ends(context)))
    late = [each for each in found if each.place[0] == added.topic and each.place[1] >= added.first and each.end]
    if not late or any(each.is_below for each in found):
        return None
    soon = soon_commits(
        log_ends(context), spans, {each.place: each.first for each in late}, min(each.given_ms for each in late)
    )
    if soon is not None and soon.by_chance >= context.limit(f"{KIND}.by_chance"):
        soon = None
    return _incident(context, added, group, late, [each for each in found if each not in late], soon)


def _beginnings(
    context: RuleContext, group: str, spans: Mapping[Offset, Sequence[Span]], ends: LogEnds
) -> Iterator[_Beginning]:
    """Where a group began in partitions that already had records when a member was assigned them."""
    events = context.rows_of_group("timeline", group)
    own = kept(events, pc.is_valid(events["at_timestamp_ms"])).to_pylist()
    for (_, topic, partition), of_place in spans.items():
        first, place = of_place[0], (topic, partition)
        given_ms = None if first.from_ms is None else assigned_ms(own, topic, partition, first.from_ms)
        end, start = ends.end_at(place, given_ms), ends.start(place)
        if given_ms is not None and end is not None and start is not None and end > start:
            yield _Beginning(place, first, given_ms, start, end)


def _incident(
    context: RuleContext,
    added: _Added,
    group: str,
    late: list[_Beginning],
    others: list[_Beginning],
    soon: SoonCommits | None,
) -> Incident:
    numbers = tuple(sorted(each.place[1] for each in late))
    skipped = sum(each.end - each.start for each in late)
    given_ms, first_ms = (
        min(times) for times in ([each.given_ms for each in late], [_committed(each) for each in late])
    )
    # In a compacted log, not every offset has a record.
    most = max((*late, *others), key=lambda each: 0 if _is_compacted(context, each) else each.per_second)
    is_too_fast = not _is_compacted(context, most) and most.per_second > context.limit(f"{KIND}.too_fast")
    were = "was" if skipped == 1 else "were"
    change = Evidence(
        f"{shown(added.topic)} got {partitions_shown(numbers)} at {moment(added.at_ms)}",
        METADATA,
        0,
        added.log_offset,
        added.at_ms,
    )
    firsts = tuple(
        Evidence(
            f"the first commit of {each.place[0]}-{each.place[1]} is {each.first.offset}; the log ended at {each.end} "
            "when it was assigned",
            OFFSETS,
            each.first.log_partition,
            each.first.log_offset,
            each.first.from_ms,
        )
        for each in late
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.MODERATE if is_too_fast else Level.NOTE if soon is None else Level.LOW,
        title=RULE.title,
        problem=(
            f"{shown(added.topic)} got {partitions_shown(numbers)} at {moment(added.at_ms)}. Members of {shown(group)} "
            f"were assigned {'it' if len(numbers) == 1 else 'them'} {length(given_ms - added.at_ms)} later, when "
            f"{counted(skipped, 'record')} had been written there, and its first commits are not below these ends."
        ),
        impact=(
            f"Either the group began at the ends (auto.offset.reset latest, the default), and "
            f"{counted(skipped, 'record')} {were} never read, or at the starts (earliest), and it read them before its "
            f"first commit, {length(first_ms - given_ms)} later, and nothing was lost"
            + (
                f"; the second is unlikely, because it would have read {round(most.per_second)} records per second of "
                f"{most.place[0]}-{most.place[1]}."
                if is_too_fast
                else ": no record shows which." if soon is None else f". The first is likelier: {_soon_words(soon)}."
            )
        ),
        group_ids=(group,),
        topics=(added.topic,),
        partitions=numbers,
        since_timestamp_ms=added.at_ms,
        since_note="the partitions were added then",
        is_going_on=False,
        scale=(
            {"records_possibly_lost": skipped}
            if soon is None
            # It read at least one record before each first commit.
            else {"records_not_read_at_most": sum(each.first.offset - 1 - each.start for each in late)}
        )
        | {"partitions": len(numbers)},
        evidence=(change, *firsts)[:MOST_EVIDENCE],
        evidence_count=1 + len(firsts),
        rows=(Rows("current_offsets", of_group(group)), Rows("timeline", of_group(group))),
        next=_steps(context, added, group, numbers),
        measured={"records_per_second": round(most.per_second), "assigned_after_ms": given_ms - added.at_ms}
        | ({} if soon is None else {"commits_within_ms": soon.within_ms, "by_chance": round(soon.by_chance, 4)}),
        thresholds=context.limits_of(f"{KIND}.too_fast", f"{KIND}.by_chance"),
    )
    fast = Evidence(
        f"to read all, it would have read {round(most.per_second)} records per second of "
        f"{most.place[0]}-{most.place[1]} before its first commit",
        OFFSETS,
        most.first.log_partition,
        most.first.log_offset,
        most.first.from_ms,
    )
    shows = (fast,) if is_too_fast else () if soon is None else (Evidence(_soon_words(soon)),)
    at_ends = Verdict(
        f"{shown(group)} has auto.offset.reset latest, the default: in new partitions it began at their ends.",
        (*firsts[:1], *shows) if shows else (),
    )
    read_all = Verdict(
        f"{shown(group)} has auto.offset.reset earliest, and read the records before its first commit.",
        evidence_against=shows,
    )
    return Incident(finding, skipped, {_AT_ENDS: at_ends, _READ_ALL: read_all})


def _soon_words(soon: SoonCommits) -> str:
    """The fact that a group commits these partitions as soon as records arrive."""
    return (
        f"each first commit came within {length(soon.within_ms)} after a new record, as the other commits of the group "
        f"do; if it had had a backlog to read first, that would be chance, with a probability of {soon.by_chance:.1%}"
    )


def _is_compacted(context: RuleContext, beginning: _Beginning) -> bool:
    configs = cluster_settings(context).configs.get(("topic", beginning.place[0]), {})
    return "compact" in configs.get("cleanup.policy", "")


def _committed(beginning: _Beginning) -> int:
    return beginning.first.from_ms or beginning.given_ms


def _steps(context: RuleContext, added: _Added, group: str, numbers: Sequence[int]) -> tuple[NextStep, ...]:
    places = ",".join(map(str, numbers))
    return (
        NextStep(
            f"Look up auto.offset.reset of {shown(group)}. If it is latest or not set, read the first records of "
            f"{partitions_shown(numbers)} once, with another group.id, and set it to earliest before partitions are "
            "added again"
        ),
        context.ask_kafka(
            "Or let the group read these partitions again, which repeats what it has read of them: stop it, look at "
            "what this would do, and do it with --execute in place of --dry-run",
            "kafka-consumer-groups",
            *("--reset-offsets", *option("--group", group), *option("--topic", f"{added.topic}:{places}")),
            *("--to-earliest", "--dry-run"),
        ),
        context.see("List who was assigned what, and when", Rows("timeline", of_group(group))),
    )


RULE = incident_rule(
    kind=KIND,
    title="a group got added partitions late, and may have skipped their first records",
    about="""\
Groups whose members were assigned added partitions when these already had records: consumers look for new partitions
every five minutes (`metadata.max.age.ms`). If the first commits are at the ends, the group began there, or read
everything before. The metadata log and the files of the topic are needed.""",
    tables=("timeline", "current_offsets"),
    levels={
        Level.MODERATE: "it would have read more than `too_fast` records per second of a partition otherwise",
        Level.LOW: "its commits come right after new records, too often for `by_chance`",
        Level.NOTE: "no record shows which",
    },
    find=_find,
    listing=Rows("timeline", ("event=assignment_changed",)),
    causes=(
        PossibleCause(
            _AT_ENDS,
            "the group begins at the ends of new partitions (`auto.offset.reset` is latest)",
            "for: its rate otherwise, and when it committed",
        ),
        PossibleCause(
            _READ_ALL,
            "it began at the starts, and caught up before its first commit",
            "against: the same",
        ),
    ),
    questions=(Question(_AT_ENDS, _READ_ALL, "Is auto.offset.reset of the group latest, or not set?", asked="last"),),
    thresholds=(
        Threshold(
            "too_fast",
            "count",
            50000,
            "records per second of one partition that no application reads and processes",
            "reading alone is about as fast",
        ),
        Threshold(
            "by_chance",
            "share",
            0.01,
            "how probable it may be that first commits come right after new records by chance",
            "a group with a backlog commits at moments that do not depend on new records",
        ),
    ),
)

RULES = (RULE,)
