"""Topics that were switched to compaction although groups that read them were further behind than the length of a log
file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, Offset, Place, Span, commit_spans
from kafka_records_tables.report.facts.records_left import TABLE as LEFT
from kafka_records_tables.report.facts.topic_changes import changes
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, RuleContext, counted, listed, moment, shown
from kafka_records_tables.tables.log_sizes import TABLE as LOG_SIZES
from kafka_records_tables.topics import METADATA, OFFSETS

KIND: Final = "compacted_before_read"


@dataclass(frozen=True, slots=True)
class CompactedTopic:
    """A topic that groups consumed before it was compacted."""

    topic: str
    began: Mapping[str, Any]
    """The row of `topic_changes`."""
    ended_ms: int | None
    removed: Mapping[int, int]
    """By partition, the offsets without a record between the start and the end of the log."""
    file_lengths: Mapping[int, int]
    """By partition, the number of offsets in the shortest file before the newest one, which is never compacted."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A partition in which a group was at least a whole file behind when it continued reading."""

    group_id: str
    partition: int
    at_risk: int
    """The number of offsets it passed at such times, where it may have missed records."""
    times: int
    last: Span
    """The last commit before it continued reading."""


def _compacted(context: RuleContext) -> list[tuple[str, Mapping[str, Any], int | None]]:
    """Topics that were set to compact after their creation, with the start and end of that setting."""
    found: list[tuple[str, Mapping[str, Any], int | None]] = []
    for topic, rows in context.once(changes).items():
        began, ended_ms = None, None
        for row in rows:
            if row["event"] in ("created", "deleted"):
                began = None
            elif row["event"] == "compaction_began" and row["at_timestamp_ms"] is not None:
                began, ended_ms = row, None
            elif row["event"] == "compaction_ended":
                ended_ms = row["at_timestamp_ms"]
        if began is not None and topic != OFFSETS:
            found.append((topic, began, ended_ms))
    return found


def _find(context: RuleContext) -> list[Incident]:
    # Running brokers show neither when cleanup.policy was changed nor which records were removed.
    if not context.is_stored:
        return []
    found = []
    for topic, began, ended_ms in _compacted(context):
        offsets = context.table("current_offsets")
        groups = kept(offsets, equal(offsets, "topic", topic))["group_id"].unique().to_pylist()[:MOST_GROUPS]
        left = context.look(LEFT, topic=topic).to_pylist() if groups else []
        removed = {
            each["partition"]: each["log_end_offset"] - each["log_start_offset"] - each["records"]
            for each in left
            if each["topic"] == topic and each["records"] is not None
        }
        ends = {each["partition"]: each["log_end_offset"] for each in left if each["topic"] == topic}
        compacted = CompactedTopic(topic, began, ended_ms, removed, _file_lengths(context, topic, ends))
        spans = {key: each for key, each in commit_spans(context, tuple(groups)).items() if key[1] == topic}
        behind = _behind(context, compacted, spans)
        # If no group consumed the topic before the change, the topic was still being set up.
        if behind and any(each[0].from_ms and each[0].from_ms < began["at_timestamp_ms"] for each in spans.values()):
            found.append(_incident(context, compacted, behind, groups))
    return found


def _file_lengths(context: RuleContext, topic: str, ends: Mapping[int, int | None]) -> dict[int, int]:
    """The number of offsets in the smallest file of each partition. The first file is left out, because a cleaner
    merges files into it. If there is no other file before the newest, the newest counts."""
    found = {}
    for row in context.look(LOG_SIZES, topic=topic).to_pylist():
        starts = sorted(each["offset"] for each in row["sizes"] or () if each["offset"] is not None)
        end = ends.get(row["partition"])
        lengths = [after - before for before, after in pairwise(starts)][1:]
        if not lengths and len(starts) > 1 and end is not None:
            lengths = [end - starts[-1]]
        if row["topic"] == topic and lengths:
            found[row["partition"]] = min(lengths)
    return found


def _behind(context: RuleContext, compacted: CompactedTopic, spans: Mapping[Offset, Sequence[Span]]) -> list[Behind]:
    """The partitions in which groups were further behind than the length of a file while the topic was compacted."""
    ends = _known_ends(spans)
    began_ms, until_ms = compacted.began["at_timestamp_ms"], compacted.ended_ms or context.at_ms
    found = []
    for (group, topic, partition), of_group in spans.items():
        length, removed = compacted.file_lengths.get(partition), compacted.removed.get(partition, 0)
        if length is None or removed <= 0:
            continue
        at_risk, times, last, reached = 0, 0, None, 0
        # Each commit means that the group has read at least one record.
        read = sorted({each.offset for each in of_group})
        for span, after in pairwise(of_group):
            if after.from_ms is None or not began_ms < after.from_ms <= until_ms:
                continue
            end, first = ends[topic, partition].end_at(after.from_ms), max(span.offset, reached)
            if end - span.offset > length and end > first:
                at_risk += end - first - (bisect_right(read, end) - bisect_right(read, first))
                times += span.offset >= reached
                reached, last = end, span
        if last is not None:
            found.append(Behind(group, partition, min(at_risk, removed), times, last))
    return found


class _KnownEnds:
    """The largest offset that any group had committed by a given time. Needed because a compacted log shows less."""

    def __init__(self, commits: Sequence[tuple[int, int]]) -> None:
        self._times = [at_ms for at_ms, _ in commits]
        self._ends: list[int] = []
        for _, offset in commits:
            self._ends.append(max(offset, self._ends[-1] if self._ends else 0))

    def end_at(self, at_ms: int) -> int:
        at = bisect_right(self._times, at_ms)
        return self._ends[at - 1] if at else 0


def _known_ends(spans: Mapping[Offset, Sequence[Span]]) -> dict[Place, _KnownEnds]:
    commits: dict[Place, list[tuple[int, int]]] = {}
    for (_, topic, partition), of_group in spans.items():
        own = commits.setdefault((topic, partition), [])
        own += ((each.from_ms, each.offset) for each in of_group if each.from_ms is not None)
    return {place: _KnownEnds(sorted(each)) for place, each in commits.items()}


def _incident(context: RuleContext, compacted: CompactedTopic, behind: list[Behind], groups: list[str]) -> Incident:
    topic, began = compacted.topic, compacted.began
    names = sorted({each.group_id for each in behind})
    others = sorted(set(groups) - set(names))
    partitions = sorted({each.partition for each in behind})
    most = sum(each.at_risk for each in behind)
    removed = sum(compacted.removed.values())
    since_ms = began["at_timestamp_ms"]
    times = max(each.times for each in behind)
    ended = "" if compacted.ended_ms is None else f" (until {moment(compacted.ended_ms)})"
    change = Evidence(f"cleanup.policy of {topic} was set to compact", METADATA, 0, began["log_offset"], since_ms)
    verdict = Verdict(
        f"Somebody set cleanup.policy of {shown(topic)} to compact at {moment(since_ms)}{ended}: for each key the "
        "cleaner keeps only the last record, and removes earlier ones, even if a group has not read them.",
        evidence_for=(change, Evidence(f"{removed} offsets of its logs have no record")),
        is_certain=True,
    )
    back = context.ask_kafka(
        f"Set cleanup.policy of {shown(topic)} back to delete, unless readers need only the last record of each key",
        "kafka-configs",
        "--alter",
        *option("--topic", topic),
        "--add-config",
        "cleanup.policy=delete",
    )
    again = NextStep(
        f"Get the removed records from their origin if {listed(names)} needs each of them: resetting offsets "
        "does not bring them back"
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.MODERATE,
        title=RULE.title,
        problem=(
            f"The topic {shown(topic)} has been compacted since {moment(since_ms)}{ended}; before that, each "
            f"record was kept. {counted(removed, 'offset')} of its logs have no record now. {listed(names)} read from "
            "a position in an older file, which the cleaner may have compacted by then, up to "
            f"{counted(times, 'time')}, and may have missed up to {counted(most, 'record')}."
            + (f" {listed(others)} stayed in the newest file, which is not compacted." if others else "")
        ),
        impact="Readers that are further behind than the newest file get only the last record of each key.",
        group_ids=tuple(names),
        topics=(topic,),
        partitions=tuple(partitions),
        since_timestamp_ms=since_ms,
        since_note="when the topic was set to compact",
        is_going_on=compacted.ended_ms is None,
        scale={"records_possibly_lost": most, "groups": len(names)},
        symptom_confidence="medium",
        why_not_sure="no file shows whether a record was removed before or after a group read it",
        evidence=(
            change,
            *(
                Evidence(
                    f"{topic}-{each.partition}: {shown(each.group_id)} had read up to {each.last.offset}",
                    OFFSETS,
                    each.last.log_partition,
                    each.last.log_offset,
                    each.last.from_ms,
                )
                for each in behind[: MOST_EVIDENCE - 1]
            ),
        ),
        evidence_count=1 + len(behind),
        rows=(Rows("configs", (f"resource_name={topic}",)), Rows("lag", (f"topic={topic}",))),
        next=(
            *((back,) if compacted.ended_ms is None else ()),
            again,
            context.see("List the configs of the topic", Rows("configs", (f"resource_name={topic}",))),
            context.see("List where its groups are", Rows("lag", (f"topic={topic}",))),
        ),
        measured={"removed": removed, "at_risk": most, "times": times},
    )
    return Incident(finding, most, {"set_to_compact": verdict})


RULE = incident_rule(
    kind=KIND,
    title="a topic is compacted before a group has read it",
    about="""\
Topics that groups consumed before cleanup.policy was set to compact, and whose logs now have gaps. The metadata log is
needed. A group may have missed records that it had not read by then. The loss is an upper bound, with transaction
markers.""",
    tables=("current_offsets", "lag"),
    levels={Level.MODERATE: "always"},
    find=_find,
    listing=Rows("lag"),
    causes=(
        PossibleCause(
            "set_to_compact",
            "cleanup.policy of the topic was set to compact after its creation",
            "certain: the metadata log has the change",
        ),
    ),
)

RULES = (RULE,)
