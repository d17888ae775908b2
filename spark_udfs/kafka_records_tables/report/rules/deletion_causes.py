"""Judges why records were deleted, for rules about records that a group had not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import RuleContext, length, shown

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.log_deletions import LogDeletions


def weigh_early_times(context: RuleContext, found: LogDeletions) -> Verdict | None:
    """Judges whether records are deleted because of their timestamps; None if records with other timestamps remain."""
    if found.is_for_ever or (not found.early_times and found.never_by_age is None):
        return None
    topic = found.topic
    keeps = "the retention" if found.retention_ms is None else f"the retention ({length(found.retention_ms)})"
    before = "" if found.retention_ms is None else f", then set retention.ms to {found.retention_ms} again"
    asks = option("--topic", topic)
    return Verdict(
        f"A producer writes records to {shown(topic)} with timestamps long before the time of writing, so {keeps} "
        f"deletes them at its next check{f': {found.early_times[0].shows}' if found.early_times else ''}.",
        evidence_for=found.early_times,
        is_certain=bool(found.early_times) and found.retention_ms is not None and not found.is_by_request,
        lacked=() if found.early_times else (f"the timestamps of the deleted records of {shown(topic)}",),
        steps=(
            (
                context.ask_kafka(
                    f"Let {shown(topic)} keep all records until the producer is repaired{before} (or let brokers set "
                    "the time: message.timestamp.type=LogAppendTime)",
                    "kafka-configs",
                    "--alter",
                    *asks,
                    *("--add-config", "retention.ms=-1"),
                ),
                NextStep(
                    f"Repair the producer of {shown(topic)}: timestamps are milliseconds since 1970, of the time at "
                    "which the record was made"
                ),
            )
            if found.early_times
            else ()
        ),
    )


def weigh_request(
    found: LogDeletions, statement: str, steps: tuple[NextStep, ...], otherwise: tuple[Evidence, ...]
) -> Verdict:
    """Judges whether the records were deleted by a request. `otherwise` is the evidence if the log's files show
    nothing."""
    follows = () if found.is_by_request or not found.inside_files else (f"which replica of {shown(found.topic)} led",)
    return Verdict(
        statement,
        evidence_for=found.inside_files or (() if found.early_times else otherwise),
        is_certain=found.is_by_request,
        lacked=(
            *follows,
            *(() if found.inside_files or found.is_size_set else ("log.retention.bytes of the brokers",)),
            *(() if found.knows_files else (f"the log files of {shown(found.topic)}",)),
        ),
        steps=steps,
    )
