"""Records that were deleted before a group read them, because somebody had shortened the retention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.commit_jumps import steps_of
from kafka_records_tables.report.facts.deleted_while_away import away_before, emptied_events
from kafka_records_tables.report.facts.group_facts import commit_spans
from kafka_records_tables.report.facts.retention_changes import OF_BROKERS, OF_TOPIC, RetentionChange, retention_changes
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import DAY_MS, MOST_EVIDENCE, RuleContext, length, moment, shown
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.facts.commit_jumps import Jump

NAME: Final = "retention_shortened"
CAUSE: Final = PossibleCause(
    NAME,
    "somebody has shortened the retention of the topic, or of all topics without one of their own",
    "for: the metadata log shows the change shortly before the first jump; certain if the group was away for as long "
    "before it without a jump",
)
_DEFAULT_MS: Final = 7 * DAY_MS
"""Kafka's default for `log.retention.hours`, used if no record shows another value."""


@dataclass(frozen=True, slots=True)
class _Shortened:
    """A change that shortened the retention shortly before the first jump."""

    change: RetentionChange
    keeps_ms: int
    at_ms: int
    waited_ms: int | None
    """The longest time between two commits of a partition before the change, if it exceeds the new retention; otherwise
    None."""


def _shortened(context: RuleContext, group: str, topic: str, jumps: Sequence[Jump]) -> _Shortened | None:
    changes = retention_changes(context, topic)
    first = min(jumps, key=lambda each: each.after.from_ms or 0)
    back_ms, left_ms = first.after.from_ms, first.before_ms
    if not changes or back_ms is None or left_ms is None:
        return None
    change, at_ms = changes[-1], changes[-1].at_ms
    if at_ms is None or change.ms is None or change.ms >= (change.before_ms or _DEFAULT_MS):
        return None
    made = next((each for each in reversed(changes_of(context, topic)) if each["event"] == "created"), None)
    if made is not None and (
        OF_TOPIC not in (made["changed"] or ()) if change.name == OF_TOPIC else at_ms <= (made["at_timestamp_ms"] or 0)
    ):
        # The topic was created with this retention.
        return None
    # The pause before the first jump is about as long as usual, so an older change had no effect.
    if not left_ms - max(change.ms, back_ms - left_ms) <= at_ms <= back_ms:
        return None
    waits = [
        after.from_ms - before.from_ms
        for key, spans in commit_spans(context, (group,)).items()
        if key[:2] == (group, topic)
        for before, after in steps_of(spans)
        if before.from_ms is not None and after.from_ms is not None and after.from_ms <= at_ms
    ]
    longest = max(waits, default=0)
    return _Shortened(change, change.ms, at_ms, longest if longest > change.ms else None)


def with_changed_retention(
    context: RuleContext, group: str, topic: str, jumps: Sequence[Jump], incident: Incident
) -> Incident:
    """Add a change of the retention, if one came before the deletions, to the incident. If the group lost no records
    before the change, the incident begins with it."""
    found = _shortened(context, group, topic, jumps)
    if found is None:
        return incident
    change, is_of_brokers = found.change, found.change.name == OF_BROKERS
    whose = "all brokers" if is_of_brokers else shown(topic)
    record = Evidence(
        f"{change.name} of {whose} was set to {change.value}"
        + (", and was not set before" if change.value_before is None else f", in place of {change.value_before}"),
        METADATA,
        0,
        change.log_offset,
        found.at_ms,
    )
    waited = found.waited_ms
    facts = () if waited is None else (Evidence(f"before, it was away for {length(waited)} and lost nothing"),)
    of_all = f", as every topic without {OF_TOPIC} of its own" if is_of_brokers else ""
    is_away = away_before(emptied_events(context, group), jumps) is not None
    verdict = Verdict(
        f"Somebody set {change.name} of {whose} to {change.value} at {moment(found.at_ms)}: since then, {shown(topic)} "
        f"keeps records for only {length(found.keeps_ms)}{of_all}, and {shown(group)} "
        f"{'is away for longer' if is_away else 'reads them later'}.",
        evidence_for=(record, *facts),
        is_certain=waited is not None,
        steps=_steps(context, group, topic, change),
    )
    finding = incident.finding
    if verdict.is_certain:
        finding = replace(
            finding,
            level=Level.CRITICAL,
            is_going_on=True,
            since_timestamp_ms=found.at_ms,
            since_note=f"the change of {change.name}",
            evidence=(record, *finding.evidence)[:MOST_EVIDENCE],
            evidence_count=finding.evidence_count + 1,
        )
    return replace(incident, finding=finding, verdicts={NAME: verdict, **incident.verdicts})


def _steps(context: RuleContext, group: str, topic: str, change: RetentionChange) -> tuple[NextStep, ...]:
    is_of_brokers = change.name == OF_BROKERS
    where = ("--entity-type", "brokers", "--entity-default") if is_of_brokers else option("--topic", topic)
    undo = ("--delete-config", change.name)
    if change.value_before is not None:
        undo = ("--add-config", f"{change.name}={change.value_before}")
    what = (
        f"Undo the change of {change.name}, which holds for every topic without {OF_TOPIC} of its own"
        if is_of_brokers
        else f"Undo the change of {change.name} of {shown(topic)}"
    )
    own = context.ask_kafka(
        f"If it must stay, let {shown(topic)} alone keep records longer than {shown(group)} is away (7 days here)",
        "kafka-configs",
        *("--alter", *option("--topic", topic), "--add-config", f"{OF_TOPIC}={_DEFAULT_MS}"),
    )
    return (
        context.ask_kafka(f"{what}, so that no more records are lost", "kafka-configs", "--alter", *where, *undo),
        *((own,) if is_of_brokers else ()),
        NextStep(f"Start {shown(group)} now, so that it reads what the log still has"),
        NextStep("Get the deleted records from their origin if they are needed"),
    )
