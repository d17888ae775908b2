"""Transactional ids that are created for each run or each transaction, and never used again."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept, numbers, true_where, with_columns
from kafka_records_tables.report.facts.first_uses import uses_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Threshold, Verdict
from kafka_records_tables.report.rule_context import DAY_MS, HOUR_MS, RuleContext, counted, length, moment, shown
from kafka_records_tables.topics import TRANSACTIONS

KIND: Final = "many_transactional_ids"
_SEPARATORS: Final = "[-_.:]"
_UUID: Final = "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_NUMBERED: Final = re.compile(rf"(?:^|{_SEPARATORS})[0-9]{{1,9}}$")
"""Suffixes of ids with the number of an instance, of a task (Kafka Streams), or of a checkpoint (Flink)."""
_KEPT_MS: Final = 7 * DAY_MS
"""How long coordinators keep an unused id (`transactional.id.expiration.ms`)."""


def _family(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """The common part of ids: without a UUID at the end or, failing that, without the last component, or without a
    number or hexadecimal digits at the end."""
    without = pc.replace_substring_regex(ids, f"{_SEPARATORS}?{_UUID}$", "")
    shorter = pc.replace_substring_regex(ids, f"{_SEPARATORS}?[0-9A-Za-z]*$", "")
    digits = pc.replace_substring_regex(ids, "[0-9a-fA-F-]+$", "")
    shorter = pc.if_else(pc.equal(pc.utf8_length(shorter), 0), digits, shorter)
    return pc.if_else(pc.less(pc.utf8_length(without), pc.utf8_length(ids)), without, shorter)


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("transactions")
    least = context.limit(f"{KIND}.least")
    if rows.num_rows < least:
        return []
    rows = with_columns(rows, family=_family(rows["transactional_id"]))
    # An id that is reused after a restart has a higher producer epoch.
    once = kept(
        rows,
        numbers(rows, "producer_epoch") <= context.limit(f"{KIND}.epochs"),
        ~true_where(equal(rows, "state", "Ongoing")),
    )
    counts = once.group_by("family").aggregate([("transactional_id", "count")])
    of_all = {
        row["family"]: row["transactional_id_count"]
        for row in rows.group_by("family").aggregate([("transactional_id", "count")]).to_pylist()
    }
    found = []
    for row in counts.to_pylist():
        name, count = row["family"], row["transactional_id_count"]
        if count >= least and 10 * count >= 9 * of_all[name]:
            incident = _incident(context, name, kept(once, equal(once, "family", name)))
            if incident is not None:
                found.append(incident)
    return found


def _is_used_once(context: RuleContext, family: str, ids: list[dict[str, Any]]) -> bool:
    """Whether ids are used once. For nine in ten ids, the log must have all records and show that the id was new and
    ended at most one transaction. The ids must also end with a random part, not with the number of an instance or a
    checkpoint."""
    uses = context.once(uses_of)
    names = [each["transactional_id"] for each in ids]
    known = [uses[each] for each in names if each in uses]
    once = sum(each["is_new"] and each["ended"] <= 1 for each in known)
    numbered = sum(_NUMBERED.search(each[len(family) :]) is not None for each in names)
    return 10 * once >= 9 * len(ids) and 10 * numbered <= len(ids)


def _incident(context: RuleContext, family: str, rows: Any) -> Incident | None:
    rows = rows.sort_by([("last_update_timestamp_ms", "ascending")])
    ids = rows.to_pylist()
    first, last, count = ids[0], ids[-1], len(ids)
    since, until = first["start_timestamp_ms"] or first["last_update_timestamp_ms"], last["last_update_timestamp_ms"]
    lasts = max(until - since, 1)
    # Instances that started together belong to a large application. Ids that appear one after another keep growing in
    # number.
    early = sum(1 for each in ids if (each["last_update_timestamp_ms"] or 0) <= since + lasts / 2)
    if lasts < context.limit(f"{KIND}.spread") or not count / 10 <= early <= 9 * count / 10:
        return None
    an_hour = round(count * HOUR_MS / lasts)
    to_be_kept = round(count * _KEPT_MS / lasts)
    if count < context.limit(f"{KIND}.ids") and (
        to_be_kept < context.limit(f"{KIND}.in_a_week") or not _is_used_once(context, family, ids)
    ):
        return None
    goes_on = context.at_ms - until <= max(20 * lasts / count, 60_000)
    verdict = Verdict(
        f"The application makes a new transactional id ({shown(family)} followed by something random) for each start "
        "or each transaction, instead of one for each instance.",
        evidence_for=(
            Evidence(
                f"{count} ids with one or a few transactions each, the last one at {moment(until)}",
                TRANSACTIONS,
                last["log_partition"],
                last["log_offset"],
                until,
            ),
        ),
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.MODERATE if goes_on else Level.LOW,
        title=RULE.title,
        problem=(
            f"{counted(count, 'transactional id')} begin with {shown(family)} and were used for one or a few "
            f"transactions each, in {length(lasts)}: about {an_hour} new ones an hour, or {to_be_kept} a week."
        ),
        impact=(
            "Coordinators keep each of them in memory for transactional.id.expiration.ms (7 days by default), load "
            "all of them after a restart, and a new id cannot fence the previous instance, so its open transactions "
            "remain."
        ),
        consequence="waste",
        transactional_ids=tuple(each["transactional_id"] for each in (first, last)),
        since_timestamp_ms=since,
        is_going_on=goes_on,
        scale={"transactional_ids": count, "an_hour": an_hour},
        evidence=verdict.evidence_for,
        evidence_count=count,
        rows=(Rows("transactions"),),
        next=(
            NextStep(
                "Have the application use a fixed transactional.id for each of its instances (its name and the "
                "number of the instance), the same after each restart"
            ),
            context.see("List all transactional ids", Rows("transactions")),
        ),
        measured={"ids": count, "lasts_ms": lasts, "in_a_week": to_be_kept},
        thresholds=context.limits_of(*(f"{KIND}.{each.name}" for each in RULE.thresholds)),
    )
    return Incident(finding, count, {"random_ids": verdict})


RULE = incident_rule(
    kind=KIND,
    title="an application makes new transactional ids all the time",
    about="""\
`ids` or more transactional ids that differ only at their ends, nine in ten with at most `epochs` producer epochs, one
after another over `spread`. `least` are enough if the ends are random and `in_a_week` would appear within seven days.
After that time coordinators delete unused ids (`transactional.id.expiration.ms`).""",
    tables=("transactions",),
    levels={Level.MODERATE: "it goes on", Level.LOW: "the last one appeared a while ago"},
    find=_find,
    listing=Rows("transactions"),
    causes=(PossibleCause("random_ids", "ids contain something random", "for: many ids of one transaction each"),),
    thresholds=(
        Threshold("ids", "count", 100, "ids of one application", "few applications have as many instances"),
        Threshold(
            "least",
            "count",
            30,
            "the same, if the log shows that each was used once",
            "that many cannot be instances that were replaced in a deployment",
            "ids",
        ),
        Threshold(
            "in_a_week",
            "count",
            10_000,
            "ids that would appear in a week at the same rate, if there are fewer than `ids`",
            "coordinators load all of them after each restart",
        ),
        Threshold(
            "epochs",
            "count",
            2,
            "epochs of a producer whose id was used once",
            "an id that is used again after a restart has more",
        ),
        Threshold(
            "spread",
            "duration",
            "20s",
            "time over which the ids appeared",
            "all instances of a large application start at once",
        ),
    ),
)

RULES = (RULE,)
