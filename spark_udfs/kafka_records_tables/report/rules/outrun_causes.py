"""Why records are deleted before a group reads them: how the topic deletes them, and whether the group was away."""

from __future__ import annotations

from typing import Any, Final

from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.cluster_settings import lacking_settings
from kafka_records_tables.report.facts.commit_jumps import Jump
from kafka_records_tables.report.facts.deleted_while_away import away_before, emptied_events
from kafka_records_tables.report.facts.group_facts import ends_of_topic
from kafka_records_tables.report.facts.log_deletions import log_deletions
from kafka_records_tables.report.facts.retention_changes import OF_TOPIC, where_set
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, shown
from kafka_records_tables.report.rules.deletion_causes import weigh_early_times, weigh_request
from kafka_records_tables.tables.log_sizes import TABLE as LOG_SIZES
from kafka_records_tables.topics import OFFSETS

EARLY: Final = "early_timestamps"


def deleted_by(
    context: RuleContext, group: str, topic: str, jumps: list[Jump], rows: list[dict[str, Any]]
) -> tuple[str, dict[str, Verdict]]:
    """A sentence about how long the topic keeps records, and what may have deleted them."""
    starts = {each["partition"]: each["log_start_offset"] for each in rows}
    shows = tuple(
        Evidence(
            f"{each.topic}-{each.partition}: from {each.before} to {each.after.offset} in one commit; the log starts at"
            f" {starts[each.partition]} now",
            OFFSETS,
            each.after.log_partition,
            each.after.log_offset,
            each.after.from_ms,
        )
        for each in jumps[-2:]
    )
    unknown = lacking_settings(context)
    ends = ends_of_topic(context, group, topic)
    deletions = log_deletions(context, topic, sorted({each.partition for each in jumps}), ends)
    faster = NextStep(
        "Then make the group faster: more members (up to one for each partition), less work for each record"
    )
    slow = f"{shown(group)} reads more slowly than {shown(topic)} is written, and"
    away = away_before(emptied_events(context, group), jumps)
    never_old = deletions.never_by_age
    # If a log has other replicas, it may begin inside a file for another reason.
    inside = () if deletions.has_one_replica is False else deletions.inside_files
    at_size = () if deletions.at_size is None else (deletions.at_size,)
    # Records that were unread when the member left may already have been old.
    by_age = where_set(context, topic)
    too_short = _too_short(jumps, deletions.retention_ms, by_age)
    size = deletions.size
    causes = {
        "too_slow": Verdict(
            f"{slow} the retention of the topic deletes what it has not read.",
            evidence_for=shows[-1:] if inside or at_size else shows,
            evidence_against=(*inside, *at_size),
            refuted_by=never_old or (None if too_short else away),
            lacked=unknown or (("when the deleted records were written",) if away and too_short else ()),
            steps=(
                _alter(context, topic, "retention.ms", "604800000", "now, above the lag of the group (7 days"),
                faster,
            ),
        )
    }
    limit = "its limit of bytes" if size is None else f"{size} bytes"
    if size is not None or (not deletions.is_size_set and (never_old or (unknown and not away))):
        causes["too_much"] = Verdict(
            (
                f"{slow} the topic deletes what exceeds {limit} in a partition (retention.bytes)."
                if not away
                else f"{shown(topic)} deletes what exceeds {limit} in a partition (retention.bytes), and "
                f"{shown(group)} was away for longer than such a log lasts."
            ),
            evidence_for=(
                (*shows, *(at_size or (Evidence(f"retention.bytes is {size}"),)), *_sizes(context, topic))
                if size is not None
                else ()
            ),
            refuted_by=deletions.below_size,
            lacked=unknown or (() if size is not None else ("log.retention.bytes of the brokers",)),
            steps=(
                _alter(context, topic, "retention.bytes", "-1", "now, above the lag of the group (no limit"),
                *(() if away else (faster,)),
            ),
        )
    if away:
        causes["away"] = Verdict(
            f"{shown(group)} was away, and the retention of {shown(topic)} ({by_age}) deleted what it had not " "read.",
            evidence_for=(away,),
            evidence_against=(*inside, *at_size),
            refuted_by=never_old or too_short,
            lacked=() if deletions.retention_ms is not None else (f"retention.ms of {shown(topic)}",),
            steps=(
                _alter(context, topic, "retention.ms", "604800000", "above the time that it is away (7 days"),
                NextStep(
                    f"Set auto.offset.reset of {shown(group)} to earliest, if it is latest: with latest it also skips "
                    "what the log still has when it comes back"
                ),
            ),
        )
    if deletions.inside_files or (never_old and (size is None or deletions.below_size)) or not deletions.knows_files:
        causes["by_hand"] = weigh_request(
            deletions,
            f"A program or an administrator deletes records of {shown(topic)} (kafka-delete-records), which"
            f" {shown(group)} has not read.",
            (
                NextStep(f"Find who deletes records of {shown(topic)} (kafka-delete-records), and stop it"),
                NextStep("Get the deleted records from their origin if they are needed"),
            ),
            shows,
        )
    early = weigh_early_times(context, deletions)
    if early is not None:
        causes[EARLY] = early
    if deletions.is_for_ever:
        return " The topic deletes no record by its age (retention.ms is -1).", causes
    known = deletions.retention_ms
    return "" if known is None else f" The topic keeps records for {length(known)} ({by_age}).", causes


def _sizes(context: RuleContext, topic: str) -> tuple[Evidence, ...]:
    """How many records a topic's logs have, and how large they are: records may have become larger."""
    logs = [each for each in context.look(LOG_SIZES, topic=topic).to_pylist() if each["sizes"]]
    records = sum(each["log_end_offset"] - each["log_start_offset"] for each in logs)
    size = sum(of["bytes"] for each in logs for of in each["sizes"])
    if not records:
        return ()
    each = counted(round(size / records), "byte")
    return (Evidence(f"a partition has {records // len(logs)} records now, of {each} on average"),)


def _too_short(jumps: list[Jump], retention_ms: int | None, by_age: str) -> Evidence | None:
    """The fact that an absence before a jump was shorter than the time for which the topic keeps records."""
    waits = [each.after.from_ms - each.before_ms for each in jumps if each.after.from_ms and each.before_ms]
    shortest = min(waits, default=None)
    if shortest is None or retention_ms is None or shortest >= retention_ms:
        return None
    return Evidence(
        f"it jumped {length(shortest)} after it had committed the offset before, and {by_age} is "
        f"{length(retention_ms)}"
    )


def _alter(context: RuleContext, topic: str, name: str, value: str, why: str) -> NextStep:
    is_own = name != OF_TOPIC or where_set(context, topic) == OF_TOPIC
    what = "Raise" if is_own else f"{where_set(context, topic)} holds for {shown(topic)}: set"
    what += f" {name} of {shown(topic)}" if is_own else f" a {name} of its own"
    return context.ask_kafka(
        f"{what} {why} here), so that no more records are lost",
        "kafka-configs",
        "--alter",
        *option("--topic", topic),
        "--add-config",
        f"{name}={value}",
    )
