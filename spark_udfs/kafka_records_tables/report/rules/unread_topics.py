"""Topics that have records but no group that reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts.cluster_settings import cluster_settings, lacking_settings
from kafka_records_tables.report.facts.known_logs import absent_partitions
from kafka_records_tables.report.facts.log_samples import TABLE
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, moment, shown
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.tables.cluster.cluster_facts import ClusterFacts

KIND: Final = "topic_unread"
_NOBODY, _WITHOUT_GROUP = "nobody_reads", "reads_without_group"
_READERS: Final = ("activity", "current_offsets", "pending_offsets", "assignments", "share_group_topics")
"""Tables with rows that have a group and a topic. `activity` includes deleted offsets."""
_INTERNAL: Final = "__"
"""Prefixes of Kafka's own topics."""


@dataclass(slots=True)
class _Topic:
    """A topic that no group reads."""

    name: str
    records: int = 0
    partitions: int = 0
    created_ms: int | None = None
    first_ms: int | None = None
    """The earliest known time of a record."""
    last_ms: int | None = None

    @property
    def there_since_ms(self) -> int | None:
        """The time from which it could have had readers; None if unknown."""
        known = [each for each in (self.created_ms, self.first_ms) if each is not None]
        return min(known, default=None)


def _find(context: RuleContext) -> list[Incident]:
    if context.request.groups is not None or not _has_all_groups(context):
        return []
    topics = _unread(context)
    if not topics:
        return []
    settings = cluster_settings(context)
    # Clients read compacted topics as tables, without a group.
    topics = {name: each for name, each in topics.items() if not settings.is_compacted(name)}
    _add_times(context, topics)
    oldest = context.at_ms - context.limit(f"{KIND}.age")
    return [
        _incident(context, settings, each)
        for each in topics.values()
        if each.there_since_ms is None or each.there_since_ms <= oldest
    ]


def _has_all_groups(context: RuleContext) -> bool:
    """Whether all logs of `__consumer_offsets` are available, from their first record on. A missing part may contain
    the commits of a reader."""
    rows = context.table("log_ends")
    rows = kept(rows, equal(rows, "topic", OFFSETS))
    there = set(rows["partition"].to_pylist())
    return (
        context.table("activity").num_rows > 0
        and bool(there)
        and not absent_partitions(context, OFFSETS)
        and not any(rows["log_start_offset"].to_pylist())
        and not any(each.topic == OFFSETS for each in context.ends)
        and not any(each.topic == OFFSETS and each.severity == "damage" for each in context.reading)
    )


def _is_there(topic: dict[str, object]) -> bool:
    return topic["deleted_timestamp_ms"] is None


def _unread(context: RuleContext) -> dict[str, _Topic]:
    """Topics with records that no group consumes or has consumed."""
    ends = context.table("log_ends")
    ends = kept(
        ends,
        pc.invert(pc.starts_with(ends["topic"], _INTERNAL)),
        pc.greater(ends["log_end_offset"], ends["log_start_offset"]),
    )
    names = ends["topic"].unique()
    members = context.table("members")
    columns = [context.table(name)["topic"] for name in _READERS]
    columns += [pc.list_flatten(members[name]) for name in ("subscribed_topics", "regex_topics")]
    read = pa.concat_arrays([each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in columns])
    unread = names.filter(pc.invert(pc.is_in(names, read.unique())))
    found: dict[str, _Topic] = {}
    rows = kept(ends, pc.is_in(ends["topic"], unread)).select(["topic", "log_start_offset", "log_end_offset"])
    for name, start, end in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        topic = found.setdefault(name, _Topic(name))
        topic.records += end - start
        topic.partitions += 1
    return found


def _add_times(context: RuleContext, topics: dict[str, _Topic]) -> None:
    for each in context.look("topics").to_pylist() if topics else ():
        if each["topic"] in topics and _is_there(each):
            topics[each["topic"]].created_ms = each["created_timestamp_ms"]
    for each in context.look(TABLE).to_pylist() if topics else ():
        times = [sample["timestamp_ms"] for sample in each["samples"] or ()]
        topic = topics.get(each["topic"])
        if topic is not None and times:
            topic.first_ms = min(filter(None, (topic.first_ms, times[0])), default=None)
            topic.last_ms = max(topic.last_ms or 0, times[-1])


def _incident(context: RuleContext, settings: ClusterFacts, topic: _Topic) -> Incident:
    name = shown(topic.name)
    since = topic.there_since_ms
    kept_ms = settings.retention_ms(topic.name)
    is_written = None if topic.last_ms is None else context.at_ms - topic.last_ms <= context.limit(f"{KIND}.age")
    written = "" if topic.last_ms is None else f", the last one written at {moment(topic.last_ms)}"
    retention = "" if kept_ms is None else f" They are kept for {length(kept_ms)} (retention.ms)."
    rows = Rows("log_ends", (condition_of("topic", topic.name),))
    no_group = Evidence(
        f"no record of {OFFSETS}, deletions included, names {name}: no commit, subscription, assignment or share group"
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.NOTE,
        title=RULE.title,
        problem=(
            f"No group has committed an offset for the topic {name}, or subscribes to it. It has "
            f"{counted(topic.records, 'record')} in {counted(topic.partitions, 'partition')}{written}.{retention}"
        ),
        impact="If nothing else reads them, they are written, replicated and stored for nobody.",
        consequence="waste",
        topics=(topic.name,),
        since_timestamp_ms=since,
        since_note=(
            "no source shows when it was created"
            if since is None
            else "when it was created" if topic.created_ms == since else "or earlier: its oldest record in the files"
        ),
        is_going_on=is_written,
        scale={"records": topic.records, "partitions": topic.partitions},
        symptom_confidence="medium",
        why_not_sure=(
            "readers without a group leave no record: consumers that assign themselves partitions and never commit, "
            "jobs that keep offsets in their own checkpoints (Flink, Spark), and tools that copy topics "
            "(MirrorMaker); deletions of offsets are kept for a day (delete.retention.ms), so the log may have "
            "forgotten a group that expired before"
        ),
        evidence=(no_group,),
        evidence_count=1,
        rows=(rows,),
        next=(
            NextStep(
                f"If nothing reads {name}, stop what writes to it, or lower its retention.ms; delete the topic only "
                "after its owner has agreed"
            ),
            context.ask_kafka("See its settings", "kafka-topics", "--describe", *option("--topic", topic.name)),
            context.see("List where its logs start and end", rows),
        ),
        measured={"records": topic.records},
        thresholds=context.limits_of(f"{KIND}.age"),
    )
    unknown = lacking_settings(context)
    verdicts = {
        _NOBODY: Verdict(f"Nothing reads {name}.", evidence_for=(no_group,)),
        _WITHOUT_GROUP: Verdict(
            f"Clients without a group read {name}: they commit nothing, so no record shows them.", lacked=unknown
        ),
    }
    return Incident(finding, topic.records, verdicts)


RULE = incident_rule(
    kind=KIND,
    title="no group reads a topic",
    about=f"""\
Topics with records, other than Kafka's own (`{_INTERNAL}…`), that no record of `{OFFSETS}` names. Compacted
topics, which clients read as tables without a group, and topics younger than `age` are left out. Nothing is found with
`--group`, or if ends of topics or logs of `{OFFSETS}` are incomplete.""",
    tables=(*_READERS, "members", "log_ends"),
    levels={Level.NOTE: "always"},
    find=_find,
    listing=Rows("log_ends"),
    causes=(
        PossibleCause(_NOBODY, "nothing reads the topic", f"for: no record of `{OFFSETS}` names it"),
        PossibleCause(_WITHOUT_GROUP, "clients without a group read it", "no record shows them"),
    ),
    questions=(
        Question(
            _WITHOUT_GROUP,
            _NOBODY,
            "Do clients fetch from it? Then its rate of bytes out is above 0 on the brokers that lead it "
            "(kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec,topic=NAME)",
        ),
    ),
    thresholds=(
        Threshold(
            "age",
            "duration",
            "1m",
            "how long a topic must have existed; also, how recent its last record must be for it to count as written",
            "applications create topics before they subscribe",
        ),
    ),
)

RULES = (RULE,)
