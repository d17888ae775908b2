"""Coordinators that load their log slowly or not at all, according to the brokers' log files."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.report.command_lines import condition_of
from kafka_records_tables.report.facts.broker_log_lines import Load, coordinator_loads
from kafka_records_tables.report.facts.load_facts import LogSize, load_silence, log_size
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Threshold, Verdict
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, RuleContext, counted, length, listed
from kafka_records_tables.report.rules.broken_logs import groups_of_logs, logs_shown

KIND: Final = "coordinator_loads_slowly"
_FAILED, _LARGE, _QUEUE = "load_failed", "large_log", "waits_for_others"


def _find(context: RuleContext) -> list[Incident]:
    worst: dict[str, dict[int, Load]] = {}
    for each in coordinator_loads(context):
        if each.failed is not None or each.ms >= context.limit(f"{KIND}.after"):
            of_topic = worst.setdefault(each.topic, {})
            before = of_topic.get(each.partition)
            if before is None or (each.failed is not None, each.ms) >= (before.failed is not None, before.ms):
                of_topic[each.partition] = each
    return [_incident(context, topic, list(loads.values())) for topic, loads in worst.items()]


def _incident(context: RuleContext, topic: str, loads: list[Load]) -> Incident:
    loads.sort(key=lambda each: (each.failed is not None, each.ms), reverse=True)
    # The others wait for the load that spends the longest time reading.
    reader = max(loads, key=_reads_ms)
    if loads[0].failed is None and 2 * _reads_ms(reader) >= loads[0].ms:
        loads.remove(reader)
        loads.insert(0, reader)
    first = loads[0]
    waiting = [each.partition for each in loads[1:] if each.failed is None and 2 * each.waited_ms > each.ms]
    partitions = tuple(sorted(each.partition for each in loads))
    groups = groups_of_logs(context, topic, partitions)
    where = logs_shown(topic, partitions)
    has = "It has" if len(partitions) == 1 else "These logs have"
    who = f" {has} the records of {counted(len(groups), 'group')}: {listed(groups)}." if groups else ""
    has_failed = first.failed is not None
    what = (
        f"A coordinator could not load {where}: {first.failed}"
        if has_failed
        else f"A coordinator took {length(first.ms)} to load {topic}-{first.partition}"
        + (f", the slowest of {where}" if len(loads) > len(waiting) + 1 else "")
        + ("" if first.records is None else f" ({counted(first.records, 'record')}")
        + ("" if first.records is None else ")" if first.bytes is None else f", {first.bytes} bytes)")
        + "."
        + (f" The load of {logs_shown(topic, waiting)} waited meanwhile." if waiting and not _is_queued(first) else "")
    )
    level = Level.MODERATE
    if has_failed:
        level = Level.CRITICAL
    elif first.ms >= context.limit(f"{KIND}.high_after"):
        level = Level.HIGH
    rows = Rows("log_files", (condition_of("topic", topic),))
    silence = None if has_failed else load_silence(context, topic, first.partition, first.ms)
    finding = ReportFinding(
        kind=KIND,
        level=level,
        title="a coordinator could not load its log" if has_failed else RULE.title,
        problem=f"{what}{who}{'' if silence is None else silence.words(f'{topic}-{first.partition}')}",
        impact=(
            "Until it has loaded the log, a coordinator answers COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR: "
            "members cannot join or commit, and transactions cannot begin or end. This happens after each restart and "
            "each new leader."
        ),
        consequence="work_stopped",
        group_ids=groups,
        topics=(topic,),
        partitions=partitions,
        since_timestamp_ms=None if silence is None else silence.from_ms,
        since_note=(
            f"the last commit before its groups were silent for as long as {topic}-{first.partition} took to load"
            if silence is not None
            else f"the broker's log gives the time as {first.moment}" if first.moment else "the line has no time"
        ),
        scale={"logs": len(loads), "load_ms": first.ms, "records_loaded": first.records or 0},
        symptom_confidence="medium" if has_failed else "high",
        why_not_sure="a later load may have succeeded" if has_failed else None,
        evidence=tuple(_shown(each) for each in loads[:MOST_EVIDENCE]),
        evidence_count=len(loads),
        rows=(rows,),
        next=(
            context.see("List how large each log is, and how far it is cleaned", rows),
            NextStep("List later loads: search the log of the broker for `Finished loading` and `Failed to load`"),
        ),
        measured={"load_ms": first.ms, "waited_ms": first.waited_ms},
        thresholds=context.limits_of(f"{KIND}.after", f"{KIND}.high_after"),
    )
    return Incident(finding, first.ms, _verdicts(first, log_size(context, topic, first.partition)))


def _reads_ms(load: Load) -> int:
    """How long a load spent reading."""
    return load.ms - load.waited_ms


def _is_queued(load: Load) -> bool:
    return load.waited_ms > _reads_ms(load)


def _verdicts(load: Load, size: LogSize | None) -> dict[str, Verdict]:
    if load.failed is not None:
        step = NextStep(
            "Look at the error in the log of the broker, and at other findings about this log; see docs/rescue.md"
        )
        failed = Verdict(
            f"The load ended with an error: {load.failed}", (_shown(load),), is_certain=True, steps=(step,)
        )
        return {_FAILED: failed}
    reads = _reads_ms(load)
    waits = Evidence(f"{length(load.waited_ms)} of it passed before the load began (spent in the scheduler)")
    works = Evidence(f"{length(reads)} of it passed while the log was read")
    is_queue = _is_queued(load)
    return {
        _LARGE: Verdict(
            "The coordinator needs this time to read the log: it has much to read, or the disk or processor is slow.",
            evidence_for=(works,) if size is None else (works, size.evidence),
            refuted_by=waits if is_queue else None,
            steps=(
                NextStep(
                    "Find out why the log is not cleaned (log.cleaner.enable, DeadThreadCount and "
                    "uncleanable-partitions-count of the broker): a cleaner would remove most of it"
                    if size is not None and size.is_dirty
                    else "If the log is not cleaned, find out why; if a few groups write most of it, look at these"
                ),
            ),
        ),
        _QUEUE: Verdict(
            "The load waited for the loads of other logs on this broker.",
            evidence_for=(waits,),
            refuted_by=None if is_queue else works,
            steps=(
                NextStep(
                    "Give the coordinator more threads (group.coordinator.threads, from Kafka 4.0 on), or spread the "
                    "leaders of its logs over more brokers"
                ),
            ),
        ),
    }


def _shown(load: Load) -> Evidence:
    did = f"failed: {load.failed}" if load.failed is not None else f"took {length(load.ms)}"
    at = f" at {load.moment}" if load.moment else ""
    return Evidence(f"{load.file}: the load of {load.topic}-{load.partition}{at} {did}", load.topic, load.partition)


RULE = incident_rule(
    kind=KIND,
    title="a coordinator loads its log slowly",
    about="""\
Loads of logs of coordinators that took `after` or longer, or failed, as brokers log them (`Finished loading …`, `Failed
to load …`). The broker's log files (`*.log`) must be beside its data directory, or in a folder `logs` beside it. The
last 64 MiB of each are read, and the slowest load of each log counts.""",
    tables=("groups", "current_offsets"),
    levels={
        Level.CRITICAL: "a load failed",
        Level.HIGH: "it took `high_after` or longer",
        Level.MODERATE: "otherwise",
    },
    find=_find,
    listing=Rows("log_files"),
    causes=(
        PossibleCause(_FAILED, "the load ended with an error", "certain: the broker logged it"),
        PossibleCause(
            _LARGE,
            "reading the log takes this long",
            "for: most of the time is outside the scheduler",
        ),
        PossibleCause(
            _QUEUE,
            "the load waited for others",
            "for: most of the time is in the scheduler",
        ),
    ),
    thresholds=(
        Threshold(
            "after",
            "duration",
            "10s",
            "how long a load must take to be a finding",
            "clients notice a pause of seconds, and a usual log is read in less than one",
            at_most="high_after",
        ),
        Threshold(
            "high_after",
            "duration",
            "1m",
            "the same for the higher level",
            "sessions (session.timeout.ms is 45 s) have ended by then",
        ),
    ),
    folds=(Folds("coordinator_cannot_load", ("topic",)),),
)

RULES = (RULE,)
