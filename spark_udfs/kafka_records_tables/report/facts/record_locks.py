"""Determines whether the locks of records ran out, or consumers released the records earlier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from statistics import median
from typing import Any, Final

from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.facts.share_deliveries import ARCHIVED
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import RuleContext, length, shown

LOCK: Final = "share.record.lock.duration.ms"
TOO_LATE: Final = (
    "Do the logs of the consumers show that such records were processed, and their acknowledgements came too late "
    "(InvalidRecordStateException)?"
)
_DEFAULT_MS: Final = 30_000
"""`group.share.record.lock.duration.ms`, if no record has another value."""
_LEAST: Final = 5
"""The minimum number of deliveries for a verdict."""
_MOST: Final = 0.8
_TIMES: Final = 3
_EQUAL: Final = 0.25
"""The maximum deviation of a time between deliveries from the median, as a share of the median, for the times to count
as equal."""


def _end(delivered: Mapping[str, Any]) -> list[int | None]:
    """The end of the last delivery of a range, if a lock that ran out may have ended it."""
    return [delivered["log_timestamp_ms"]] if delivered["delivery_state"] == ARCHIVED else []


def lock_verdict(context: RuleContext, group: str, ranges: Iterable[Mapping[str, Any]]) -> Verdict | None:
    """Weighs whether locks ran out, from the times between the ends of deliveries (rows of `share_deliveries`); None if
    too few are known. A
    delivery whose lock ran out lasts as long as the lock or longer, with the time until the next one."""
    gaps = sorted(
        after - before
        for each in ranges
        for before, after in pairwise([*(each["released_ms"] or ()), *_end(each)])
        if before is not None and after is not None
    )
    if len(gaps) < _LEAST:
        return None
    told = cluster_settings(context).group_limit(group, LOCK)
    lock_ms = _DEFAULT_MS if told is None else told
    long = sum(each >= lock_ms for each in gaps)
    usual = median(gaps)
    equal = sum(abs(each - usual) <= _EQUAL * usual for each in gaps)
    named = (
        f"{length(lock_ms)}, {LOCK} of {shown(group)}" if told is not None else f"{LOCK}, {length(lock_ms)} by default"
    )
    statement = (
        f"Processing takes longer than the lock of a record ({named}): the lock runs out, the acknowledgement comes "
        "too late, and the record is delivered again. Then these records may have been processed at each delivery."
    )
    raised = context.ask_kafka(
        f"If so, raise {LOCK} above the time that a record takes ({length(2 * lock_ms)} here, at most "
        "group.share.max.record.lock.duration.ms of the brokers), or have the consumers renew the lock",
        "kafka-configs",
        "--alter",
        *option("--group", group),
        "--add-config",
        f"{LOCK}={2 * lock_ms}",
    )
    if usual > _TIMES * lock_ms:
        # Records wait that long before they are delivered again, regardless of how the deliveries end. So locks may run
        # out, and nothing shows it.
        waits = (f"the time of each delivery: {length(usual)} pass from the end of one to the end of the next",)
        return Verdict(statement, lacked=waits, steps=(raised,)) if told is not None and long == len(gaps) else None
    if long >= _MOST * len(gaps):
        shows = f"{long} of {len(gaps)} deliveries ended {length(lock_ms)} or more after the one before them"
        return Verdict(statement, (Evidence(shows),), steps=(raised,))
    if told is None and equal >= _MOST * len(gaps):
        shows = f"{equal} of {len(gaps)} deliveries ended about {length(usual)} after the one before them"
        lacked = () if context.look("configs").num_rows else (f"{LOCK} of the group",)
        return Verdict(statement, (Evidence(shows),), lacked=lacked, steps=(raised,))
    shows = (
        f"{len(gaps) - long} of {len(gaps)} deliveries ended sooner than {length(lock_ms)} after the one before them"
    )
    return Verdict(statement, refuted_by=Evidence(shows))
