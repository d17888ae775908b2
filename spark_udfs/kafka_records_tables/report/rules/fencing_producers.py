"""Processes that use the same transactional id at the same time, so each start fences the other process."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.command_lines import condition_of
from kafka_records_tables.report.facts.event_runs import goes_on, last_run
from kafka_records_tables.report.facts.group_facts import groups_with_departures, member_lives
from kafka_records_tables.report.facts.producer_starts import TABLE
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import AT_LEAST, Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Threshold, Verdict
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, RuleContext, counted, length, moment, shown
from kafka_records_tables.topics import TRANSACTIONS

KIND: Final = "producers_fence"
_IDLE_MS: Final = 250
"""The shortest time in which a process can restart."""
_LEAST_LEFT: Final = 2
"""The minimum number of starts that a cleaned log must still contain."""


def _find(context: RuleContext) -> list[Incident]:
    least = context.limit(f"{KIND}.starts")
    # Each start raises the producer's epoch.
    if not any((each or 0) >= least for each in context.table("transactions")["producer_epoch"].to_pylist()):
        return []
    starts: dict[str, list[dict[str, Any]]] = {}
    for row in context.look(TABLE).to_pylist():
        starts.setdefault(row["transactional_id"], []).append(row)
    found = []
    for name, rows in starts.items():
        first = last_run([each["log_timestamp_ms"] for each in rows], context.limit(f"{KIND}.pause"))
        run = [each for each in rows[first:] if each["idle_ms"] is not None]
        overlapping = [each for each in run if each["idle_ms"] <= max(4 * (each["usual_ms"] or 0), _IDLE_MS)]
        is_enough = len(run) >= least and 2 * len(overlapping) >= len(run) and _at_once(run) >= max(2, len(run) // 10)
        is_cleaned = not all(each["is_whole"] for each in rows[first:])
        is_enough |= is_cleaned and _were_more(run, overlapping, least)
        if is_enough and not _is_producer_per_transaction(run):
            found.append(_incident(context, name, run, overlapping, is_cleaned=is_cleaned))
    return found


def _groups(context: RuleContext, run: list[dict[str, Any]]) -> tuple[str, ...]:
    """The groups for which these producers commit offsets, and which members leave repeatedly because each fenced
    process also closes its consumer."""
    departures = context.once(_departures)
    leaves = [each for each, times in departures.items() if sum(at >= run[0]["log_timestamp_ms"] for at in times) > 1]
    commits = context.look("offset_commits", leaves) if leaves else None
    if commits is None:
        return ()
    ids = pa.array({each["producer_id"] for each in run}, pa.int64())
    of_run = commits.filter(pc.is_in(commits["producer_id"], ids))
    return tuple(sorted(of_run["group_id"].unique().to_pylist()))


def _departures(context: RuleContext) -> dict[str, list[int]]:
    """When members left, for groups that many members left."""
    groups = groups_with_departures(context, context.limit(f"{KIND}.starts"))
    lives = member_lives(context, groups).items()
    return {group: [each.left_ms for each in of_group if each.left_ms is not None] for group, of_group in lives}


def _at_once(run: list[dict[str, Any]]) -> int:
    """The number of starts that followed the previous activity too soon for a restart."""
    return sum(each["idle_ms"] <= _IDLE_MS for each in run)


def _were_more(run: list[dict[str, Any]], overlapping: list[dict[str, Any]], least: int) -> bool:
    """Whether, according to the epoch, there were more starts than the cleaned log still contains. A start raises the
    epoch by one, or by two if it aborts a transaction. A timeout raises it too, so all remaining starts must be of this
    kind."""
    is_like_those = (
        len(run) == len(overlapping) >= _LEAST_LEFT
        and 2 * _at_once(run) >= len(run)
        and any(each["has_aborted"] for each in run)
    )
    return is_like_those and run[-1]["raised_by_starts"] and _starts_by_epoch(run) >= least


def _starts_by_epoch(run: list[dict[str, Any]]) -> int:
    """The minimum number of starts for the last epoch, if each aborted a transaction."""
    return int(run[-1]["producer_epoch"]) // 2


def _is_producer_per_transaction(run: list[dict[str, Any]]) -> bool:
    """Whether a program seems to open a producer for each transaction, which is slow but safe: no start aborts a
    transaction, and each producer performed one."""
    return not any(each["has_aborted"] for each in run) and all(each["commits"] <= 1 for each in run)


def _incident(
    context: RuleContext, name: str, run: list[dict[str, Any]], overlapping: list[dict[str, Any]], *, is_cleaned: bool
) -> Incident:
    times = [each["log_timestamp_ms"] for each in run]
    since, is_going_on = times[0], goes_on(times, context.at_ms)
    every = (times[-1] - since) / max(len(times) - 1, 1)
    aborted = sum(each["has_aborted"] for each in run)
    idle = sorted(each["idle_ms"] for each in overlapping)[len(overlapping) // 2]
    at_once = _at_once(run)
    before = ""
    if is_cleaned:
        before = " Compaction removed the records of earlier starts, so it may have begun earlier"
        before += (
            f"; for this epoch, starts and timeouts must have raised it {_starts_by_epoch(run)} times or more."
            if run[-1]["raised_by_starts"]
            else "."
        )
    shows = tuple(
        Evidence(
            f"epoch {each['producer_epoch']} of producer id {each['producer_id']}, {length(each['idle_ms'])} "
            "after the previous epoch was used last",
            TRANSACTIONS,
            each["log_partition"],
            each["log_offset"],
            each["log_timestamp_ms"],
        )
        for each in overlapping
    )
    two = Verdict(
        f"Two or more processes use the transactional.id {shown(name)} at the same time: each one that starts raises "
        "the epoch and fences the other one. The fenced process fails (ProducerFencedException, "
        "InvalidProducerEpochException), is restarted, and fences the other one.",
        evidence_for=(
            *shows[:2],
            Evidence(
                f"in {len(overlapping)} of {len(run)} starts the previous producer was at work until at most "
                f"{length(idle)} before"
            ),
        ),
        lacked=(
            (f"what compaction removed from {TRANSACTIONS}-{run[0]['log_partition']}: earlier starts",)
            if is_cleaned and len(run) < context.limit(f"{KIND}.starts")
            else ()
        ),
    )
    alone = Verdict(
        f"One process with the transactional.id {shown(name)} fails and is restarted again and again.",
        evidence_against=(
            Evidence("the id was in use until just before most starts, which leaves no time for a restart"),
        ),
        refuted_by=(
            Evidence(f"in {at_once} of {len(run)} starts, the id was in use until at most {length(_IDLE_MS)} before")
            if 2 * at_once >= len(run)
            else None
        ),
    )
    rows = Rows("transactions", (condition_of("transactional_id", name),))
    counts = {"fenced": len(run), "transactions_aborted": aborted}
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if is_going_on else Level.LOW,
        title=RULE.title,
        problem=(
            f"Producers with the transactional.id {shown(name)} fenced each other "
            f"{'at least ' if is_cleaned else ''}{counted(len(run), 'time')} since {moment(since)}, every "
            f"{length(every)}: its epoch rose to {run[-1]['producer_epoch']}.{before}"
        ),
        impact=(
            f"Each start aborts the work of the other one: {counted(aborted, 'open transaction')} "
            f"{'was' if aborted == 1 else 'were'} aborted, and their work is done again."
        ),
        consequence="work_repeated",
        group_ids=_groups(context, run),
        transactional_ids=(name,),
        who=(Actor(f"is started with the transactional.id {name} again and again"),),
        since_timestamp_ms=since,
        is_going_on=is_going_on,
        scale={f"{what}{AT_LEAST if is_cleaned else ''}": count for what, count in counts.items()},
        evidence=shows[:MOST_EVIDENCE],
        evidence_count=len(overlapping),
        rows=(rows,),
        next=(
            NextStep(
                f"Look for {shown(name)} in the configuration of all deployments (transactional.id,"
                " transactionIdPrefix), stop the second process, and give each process a transactional.id of its own"
            ),
            context.ask_kafka(
                "Ask the coordinator for its state now", "kafka-transactions", "describe", "--transactional-id", name
            ),
            context.see("List its producer id and epoch", rows),
        ),
        measured={"starts": len(run), "overlapping": len(overlapping), "idle_ms": idle},
        thresholds=context.limits_of(f"{KIND}.starts", f"{KIND}.pause"),
    )
    return Incident(finding, len(run), {"one_id_twice": two, "restarts": alone})


RULE = incident_rule(
    kind=KIND,
    title="producers with one transactional id fence each other",
    about="""\
`starts` or more starts of producers with one transactional id (records in state Empty) without a `pause`, at least half
of them while the previous producer was at work. Programs that open a producer for each transaction are left out.""",
    tables=("transactions", "timeline"),
    levels={Level.HIGH: "it goes on", Level.LOW: "it has ended"},
    find=_find,
    listing=Rows("transactions"),
    causes=(
        PossibleCause(
            "one_id_twice",
            "two processes have one transactional id",
            "",
        ),
        PossibleCause(
            "restarts", "one process is restarted again and again", "refuted if the id was in use until the start"
        ),
    ),
    thresholds=(
        Threshold("starts", "count", 5, "starts in a row", "two rolling restarts are not a conflict"),
        Threshold(
            "pause",
            "duration",
            "2m",
            "time without a start after which a series ends",
            "supervisors wait up to this long before a restart",
        ),
    ),
    folds=(
        Folds("transaction_open", ("transactional_id",)),
        *(Folds(kind, if_later=True) for kind in ("endless_rebalances", "members_unsettled")),
    ),
)

RULES = (RULE,)
