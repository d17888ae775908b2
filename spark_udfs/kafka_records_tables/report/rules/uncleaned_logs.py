"""Compacted logs of coordinators that are no longer cleaned: they grow and take longer and longer to load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import condition_of
from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import HOUR_MS, RuleContext, counted, length, listed, moment
from kafka_records_tables.report.rules.broken_logs import groups_of_logs, logs_shown
from kafka_records_tables.tables.log_files import CLEANER, Cleanable, cleanable
from kafka_records_tables.tables.log_sizes import TABLE as LOG_SIZES
from kafka_records_tables.topics import OFFSETS, TRANSACTIONS

KIND: Final = "log_not_cleaned"
_FAILED, _OFF, _SETTINGS, _SLOW = "cleaner_failed_here", "no_cleaner", "settings", "cleaner_slow"
_TOPICS: Final = (OFFSETS, TRANSACTIONS)
_METRICS: Final = (
    "kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count, kafka.log:type=LogCleaner,name=DeadThreadCount"
)


@dataclass(frozen=True, slots=True)
class _Log:
    """A log that a cleaner would clean."""

    topic: str
    partition: int
    cleaning: Cleanable
    all_bytes: int
    since_ms: int
    """The time from which more than half of it has been dirty."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


def _find(context: RuleContext) -> list[Incident]:
    if not context.is_stored:
        return []
    there = context.table("log_ends")["topic"].unique().to_pylist()
    topics = [each for each in _TOPICS if each in there]
    sizes = [row for topic in topics for row in context.look(LOG_SIZES, topic=topic).to_pylist() if row["sizes"]]
    logs = [log for row in sizes if len(row["sizes"]) > 1 and (log := _uncleaned(context, row)) is not None]
    # Only the checkpoint files that brokers keep next to their logs show what has been cleaned.
    logs = [log for log in logs if _has_checkpoints(context, log)]
    by_cause: dict[str, list[tuple[_Log, dict[str, Verdict]]]] = {}
    for log in logs:
        verdicts = _verdicts(context, log, sizes, logs)
        certain = next((name for name, each in verdicts.items() if each.is_certain), "")
        by_cause.setdefault(certain, []).append((log, verdicts))
    return [_incident(context, found) for found in by_cause.values()]


def _has_checkpoints(context: RuleContext, log: _Log) -> bool:
    rows = context.table("log_ends")
    marks = kept(rows, equal(rows, "topic", log.topic), equal(rows, "partition", log.partition))["high_watermark"]
    return bool(marks.null_count < len(marks))


def _uncleaned(context: RuleContext, row: dict[str, Any]) -> _Log | None:
    """The log in a row of `log_sizes`, if a cleaner should already have cleaned it."""
    found = cleanable(row, _open_from(context, row["topic"], row["partition"]))
    if found is None or found.held_by != CLEANER:
        return None
    dirty = accumulate(each["bytes"] for each in found.files)
    since = next(
        each["timestamp_ms"] for each, size in zip(found.files, dirty, strict=True) if size > found.clean_bytes
    )
    if since is None or context.at_ms - since < context.limit(f"{KIND}.within"):
        return None
    return _Log(
        row["topic"],
        row["partition"],
        found,
        row["bytes"],
        since,
    )


def _open_from(context: RuleContext, topic: str, partition: int) -> int | None:
    """The first offset of the first open transaction in a log. A cleaner stops there."""
    rows = context.table("open_transactions")
    rows = kept(rows, equal(rows, "topic", topic), equal(rows, "partition", partition))
    return min((each for each in rows["first_offset"].to_pylist() if each is not None), default=None)


# -- causes ------------------------------------------------------------------------------------------------------------


def _verdicts(context: RuleContext, log: _Log, sizes: list[dict[str, Any]], stuck: list[_Log]) -> dict[str, Verdict]:
    held = _setting(context, log)
    if held is not None:
        return {_SETTINGS: held}
    waited = context.at_ms - log.since_ms
    here = Evidence(
        f"{len(log.cleaning.files)} closed files of {log.name} from offset {log.cleaning.start} on are not cleaned"
        f" ({log.cleaning.dirty_bytes} of {log.all_bytes} bytes), but a cleaner should have cleaned them "
        f"from {moment(log.since_ms)} on",
        log.topic,
        log.partition,
        log.cleaning.start,
        log.since_ms,
    )
    damaged = _damage(context, log)
    others = _cleaned_since(context, log, sizes)
    is_off = all(row["cleaner_offset"] is None for row in sizes)
    failed = Verdict(
        f"A cleaner failed at {log.name} and has skipped it since: it does not try such a log again before the broker "
        "restarts.",
        evidence_for=tuple(each for each in (here, damaged, others) if each is not None),
        is_certain=damaged is not None and others is not None,
        steps=_mend(log) if damaged is not None else (),
    )
    off = Verdict(
        "No cleaner is at work on this broker: log.cleaner.enable is false, or its threads are dead.",
        evidence_for=(here,) if not is_off else (here, _nothing_cleaned(log)),
        refuted_by=others,
        is_certain=is_off,
        steps=(NextStep("Check that log.cleaner.enable is not false in the properties of the broker, and restart it"),),
    )
    slow = Verdict(
        "The cleaner is busy with a larger log and has not reached this one yet.",
        evidence_against=(Evidence(f"it has had {length(waited)} for that, and checks every 15 seconds"),),
        refuted_by=_nothing_cleaned(log) if is_off else damaged if failed.is_certain else None,
    )
    if len(stuck) > 1 and others is None and not is_off:
        names = ", ".join(each.name for each in stuck[:3])
        more = Evidence(f"{len(stuck)} logs wait for a cleaner ({names}), and none was cleaned since")
        off = replace(off, evidence_for=(here, more))
    return {_FAILED: failed, _OFF: off, _SLOW: slow} if not is_off else {_OFF: off, _SLOW: slow}


def _setting(context: RuleContext, log: _Log) -> Verdict | None:
    """The verdict on a topic setting that makes a cleaner wait."""
    facts = cluster_settings(context)
    lag = facts.topic_number(log.topic, "min.compaction.lag.ms")
    ratio = facts.topic_setting(log.topic, "min.cleanable.dirty.ratio")
    says = None
    if lag is not None and lag > context.at_ms - log.since_ms:
        says = f"min.compaction.lag.ms of {log.topic} is {lag}: records are not cleaned for {length(lag)}"
    elif facts.is_compacted(log.topic) is False:
        says = f"cleanup.policy of {log.topic} is not compact: it is never cleaned"
    elif ratio is not None and _share(ratio) * log.cleaning.counted_bytes >= log.cleaning.dirty_bytes:
        says = f"min.cleanable.dirty.ratio of {log.topic} is {ratio}: it is cleaned when a larger part of it is dirty"
    if says is None:
        return None
    return Verdict(f"A setting makes the cleaner wait: {says}.", (Evidence(says),), is_certain=True)


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _damage(context: RuleContext, log: _Log) -> Evidence | None:
    """Unreadable bytes in the part that is not cleaned. A cleaner stops there."""
    for each in context.reading:
        offset = each.offset if each.offset is not None else each.base_offset
        is_here = each.severity == "damage" and (each.topic, each.partition) == (log.topic, log.partition)
        if is_here and (offset is None or log.cleaning.start <= offset < log.cleaning.end):
            return Evidence(f"a cleaner cannot read past {each}", log.topic, log.partition, offset)
    return None


def _cleaned_since(context: RuleContext, log: _Log, sizes: list[dict[str, Any]]) -> Evidence | None:
    """Another log of the broker that was cleaned later, judged by the times of its clean records."""
    for row in sizes:
        if row["cleaner_offset"] is not None and (row["topic"], row["partition"]) != (log.topic, log.partition):
            cleaned = [each for each in row["sizes"] if each["offset"] < row["cleaner_offset"]]
            at = cleaned[-1]["timestamp_ms"] if cleaned else None
            if at is not None and at > log.since_ms:
                return Evidence(
                    f"{row['topic']}-{row['partition']} was cleaned later, up to offset {row['cleaner_offset']}, whose"
                    f" record is of {moment(at)}",
                    row["topic"],
                    row["partition"],
                    row["cleaner_offset"],
                    at,
                )
    return None


def _nothing_cleaned(log: _Log) -> Evidence:
    return Evidence(f"cleaner-offset-checkpoint is empty, so {log.name} is not in it either", log.topic, log.partition)


# -- telling -----------------------------------------------------------------------------------------------------------


def _incident(context: RuleContext, found: list[tuple[_Log, dict[str, Verdict]]]) -> Incident:
    found.sort(key=lambda each: each[0].since_ms)
    logs = [log for log, _ in found]
    first = logs[0]
    topics = tuple(dict.fromkeys(each.topic for each in logs))
    partitions = tuple(sorted(each.partition for each in logs if each.topic == first.topic))
    dirty, held = sum(each.cleaning.dirty_bytes for each in logs), sum(each.all_bytes for each in logs)
    waited = context.at_ms - first.since_ms
    is_large = dirty >= context.limit(f"{KIND}.large")
    is_certain = any(each.is_certain for each in found[0][1].values())
    groups = groups_of_logs(context, first.topic, partitions)
    who = f" It has the records of {counted(len(groups), 'group')}: {listed(groups)}." if groups else ""
    rows = Rows("log_files", tuple(condition_of("topic", each) for each in topics[:1]))
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if is_large else Level.MODERATE if is_certain or waited >= HOUR_MS else Level.LOW,
        title=RULE.title,
        problem=(
            f"{logs_shown(first.topic, partitions)}{f' and {listed(topics[1:])}' if topics[1:] else ''} should have"
            f" been cleaned {length(waited)} ago: {dirty} of {held} bytes are not.{who}"
        ),
        impact=(
            "The log grows with every commit, and a coordinator reads all of it before it answers: after a restart or a"
            " new leader these groups wait longer each time."
        ),
        consequence="waste",
        group_ids=groups,
        topics=topics,
        partitions=partitions if len(topics) == 1 else (),
        since_timestamp_ms=first.since_ms,
        since_note="from then on more than half of it could have been cleaned",
        is_going_on=True,
        scale={"logs": len(logs), "dirty_bytes": dirty},
        evidence=tuple(each for log, verdicts in found[:3] for each in _shown(verdicts)),
        evidence_count=len(logs),
        rows=(rows,),
        next=(
            NextStep(
                f"Look for an error about {first.name} in the log of the broker's cleaner, and at its metrics "
                f"({_METRICS}); remove the cause and restart the broker, so that the cleaner starts again"
            ),
            context.see("List how far each log is cleaned, and what a coordinator has to load", rows),
        ),
        measured={"uncleaned_ms": waited, "dirty_bytes": dirty},
        thresholds=context.limits_of(*(f"{KIND}.{each.name}" for each in RULE.thresholds)),
    )
    return Incident(finding, dirty, found[0][1])


def _shown(verdicts: dict[str, Verdict]) -> tuple[Evidence, ...]:
    return next((each.evidence_for for each in verdicts.values() if each.evidence_for), ())


def _mend(log: _Log) -> tuple[NextStep, ...]:
    return (
        NextStep(
            f"Make a replica with a complete {log.name} the leader, delete the damaged folder while its broker is "
            "down, and start the broker: it fetches the log from the leader. Without a replica see docs/rescue.md"
        ),
    )


RULE = incident_rule(
    kind=KIND,
    title="a log is no longer cleaned",
    about=f"""\
Logs of `{OFFSETS}` and `{TRANSACTIONS}` of which more than half could be cleaned (`held_by` of `log_files`) but
which no cleaner has touched for `within`. What an open transaction holds back is `transaction_open`. Only files
show this.""",
    tables=("log_ends", "open_transactions", "groups"),
    levels={
        Level.HIGH: "`large` bytes or more could be cleaned",
        Level.MODERATE: "for an hour or longer, or the cause is certain, so that it does not end by itself",
        Level.LOW: "for a shorter time",
    },
    find=_find,
    listing=Rows("log_files"),
    causes=(
        PossibleCause(
            _FAILED,
            "a cleaner failed at this log, and skips it from then on",
            "for: other logs were cleaned later",
        ),
        PossibleCause(
            _OFF,
            "no cleaner is at work",
            "for: no log has an entry in `cleaner-offset-checkpoint`",
        ),
        PossibleCause(
            _SETTINGS,
            "a setting of the topic makes the cleaner wait",
            "certain if the metadata log has `min.compaction.lag.ms`, `min.cleanable.dirty.ratio` or `cleanup.policy` "
            "that explains it",
        ),
        PossibleCause(_SLOW, "the cleaner has not reached it yet", ""),
    ),
    questions=(
        Question(
            _FAILED,
            _OFF,
            "Is uncleanable-partitions-count of the broker above 0?",
        ),
        Question(_OFF, _SLOW, "Is DeadThreadCount of the broker's cleaner above 0, or log.cleaner.enable false?"),
    ),
    thresholds=(
        Threshold(
            "within",
            "duration",
            "2m",
            "how long a log may wait for a cleaner",
            "a cleaner checks every 15 seconds (log.cleaner.backoff.ms)",
        ),
        Threshold(
            "large",
            "count",
            1_000_000_000,
            "how many bytes that could be cleaned make the finding urgent",
            "a coordinator takes about ten seconds to read as much",
        ),
    ),
)

RULES = (RULE,)
