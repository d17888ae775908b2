"""Determines whether the locks of records expired, or consumers released the records earlier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts import config_changes
from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.facts.group_facts import member_lives
from kafka_records_tables.report.facts.share_deliveries import ARCHIVED
from kafka_records_tables.report.facts.share_repeats import QUIET_MS
from kafka_records_tables.report.facts.share_repeats import TABLE as REPEATS
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, moment, shown
from kafka_records_tables.topics import METADATA, OFFSETS, SHARE_STATE

LOCK: Final = "share.record.lock.duration.ms"
TOO_LATE: Final = (
    "Do the logs of the consumers show that such records were processed, but acknowledged too late "
    "(InvalidRecordStateException)?"
)
DEFAULT_MS: Final = 30_000
"""`group.share.record.lock.duration.ms`, if no record sets it."""
_LEAST: Final = 5
"""The minimum number of deliveries needed for a verdict."""
_ACCEPTED: Final = 20
"""If this many records were accepted together, earlier deliveries did not fail."""
_MOST: Final = 0.8
_TIMES: Final = 3
_EQUAL: Final = 0.25
"""The times between deliveries count as equal if they deviate from the median by at most this share of it."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """The failed deliveries of a topic to a share group, up to the last one, without a long pause."""

    since_ms: int
    until_ms: int
    log_partition: int
    log_offset: int
    """The offset of the record that shows the first one."""
    records: int
    """The number of records delivered more than once."""
    deliveries: int
    """The number of their deliveries after the first."""
    accepted: int
    """The number of records accepted at their first delivery before any delivery failed."""
    last_accepted: tuple[tuple[int, int], ...]
    """When the last of these were accepted, and how many each time."""
    is_first: bool
    """Whether no delivery failed long before."""

    def accepted_since(self, at_ms: int) -> int:
        """How many of the last accepted records were accepted after a given time."""
        return sum(count for each_ms, count in self.last_accepted if each_ms > at_ms)


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A config change that made locks shorter."""

    lock_ms: int
    before: str | None
    """The group's own value before the change; None if it had none."""
    before_ms: int
    at_ms: int
    log_offset: int


def repeats_of(context: RuleContext, group: str, topic_id: str) -> Repeats | None:
    """The failed deliveries of a topic to a share group; None if the log has none."""
    rows = context.look(REPEATS, (group,))
    rows = kept(rows, equal(rows, "group_id", group), equal(rows, "topic_id", topic_id))
    spans = [
        {**each, "log_partition": row["log_partition"]} for row in rows.to_pylist() for each in row["failures"] or ()
    ]
    if not spans:
        return None
    spans.sort(key=lambda each: -each["last_ms"])
    first = spans[0]["first_ms"]
    last_run = []
    for each in spans:
        if each["last_ms"] < first - QUIET_MS:
            break
        last_run.append(each)
        first = min(first, each["first_ms"])
    began = min(last_run, key=lambda each: each["first_ms"])
    of_all = rows.to_pylist()
    return Repeats(
        began["first_ms"],
        spans[0]["last_ms"],
        began["log_partition"],
        began["log_offset"],
        sum(each["records"] for each in last_run),
        sum(each["repeats"] for each in last_run),
        sum(each["accepted_before"] for each in of_all),
        tuple((at["timestamp_ms"], at["records"]) for each in of_all for at in each["last_accepted"] or ()),
        len(last_run) == len(spans),
    )


def lock_verdict(
    context: RuleContext, group: str, topic_id: str, ranges: Iterable[Mapping[str, Any]]
) -> Verdict | None:
    """Judges whether locks expired, from the times between the ends of deliveries (rows of `share_deliveries`) and from
    a config change that made locks shorter; None if too little is known."""
    told = cluster_settings(context).group_limit(group, LOCK)
    weighed = _by_times(context, group, ranges, told)
    repeats = repeats_of(context, group, topic_id)
    lowered = None if repeats is None else _lowered(context, group, repeats, told)
    if repeats is None or lowered is None or (weighed is not None and weighed.refuted_by is not None):
        return weighed
    return _of_change(context, group, lowered, repeats, () if weighed is None else weighed.evidence_for)


def _lowered(context: RuleContext, group: str, repeats: Repeats, told: int | None) -> _Lowered | None:
    """The last change of a group's lock duration, if it made locks shorter shortly before deliveries began to fail."""
    if not context.is_stored:
        return None
    rows = context.look(config_changes.TABLE)
    rows = kept(
        rows,
        equal(rows, "resource_type", config_changes.GROUP),
        equal(rows, "resource_name", group),
        equal(rows, "name", LOCK),
    )
    if not rows.num_rows:
        return None
    last = rows.to_pylist()[-1]
    value, at_ms = last["value"], last["at_timestamp_ms"]
    if value is None or not value.isdigit() or at_ms is None or int(value) != told:
        return None
    # An empty group name means the value of all brokers.
    of_all = cluster_settings(context).group_limit("", LOCK)
    before = int(last["before"]) if last["before"] else DEFAULT_MS if of_all is None else of_all
    if int(value) >= before or not at_ms <= repeats.since_ms <= at_ms + QUIET_MS:
        return None
    after = repeats.accepted_since(at_ms)
    if repeats.is_first and not _ACCEPTED <= repeats.accepted - after >= after:
        # Either it is unknown whether deliveries failed with longer locks, or they did not fail with shorter ones.
        return None
    return _Lowered(int(value), last["before"], before, at_ms, last["log_offset"])


def _of_change(
    context: RuleContext, group: str, lowered: _Lowered, repeats: Repeats, evidence: tuple[Evidence, ...]
) -> Verdict:
    """The verdict about shortened locks. It is certain if no delivery had failed before, and no member joined between
    the change and the first failure."""
    lives = member_lives(context, [group]).get(group, [])
    joined = [each for each in lives if lowered.at_ms < (each.joined_ms or 0) <= repeats.since_ms]
    new = tuple(
        Evidence(
            f"{shown(each.name)} joined after that, before the first delivery failed: it may be a slower version",
            OFFSETS,
            each.log_partition,
            each.joined_at,
            each.joined_ms,
        )
        for each in joined[:1]
    )
    changed = Evidence(
        f"{LOCK} of {shown(group)} was set to {lowered.lock_ms} ({length(lowered.lock_ms)}; before: "
        f"{length(lowered.before_ms)}{'' if lowered.before else ', the value of the brokers'})",
        METADATA,
        0,
        lowered.log_offset,
        lowered.at_ms,
    )
    follows = Evidence(
        f"{length(repeats.since_ms - lowered.at_ms)} later a delivery failed"
        + (
            f"; before the change, {counted(repeats.accepted - repeats.accepted_since(lowered.at_ms), 'record')} were "
            "accepted at the first delivery, and none failed"
            if repeats.is_first
            else ""
        ),
        SHARE_STATE,
        repeats.log_partition,
        repeats.log_offset,
        repeats.since_ms,
    )
    removes = ("--delete-config", LOCK) if lowered.before is None else ("--add-config", f"{LOCK}={lowered.before}")
    back = context.ask_kafka(
        f"Set {LOCK} of {shown(group)} back (to {length(lowered.before_ms)}, as before {moment(lowered.at_ms)})",
        "kafka-configs",
        "--alter",
        *("--entity-type", "groups", *option("--entity-name", group)),
        *removes,
    )
    otherwise = NextStep(
        "If locks must be this short, have each poll return fewer records (max.poll.records), or have the consumers "
        "renew the locks; and look for results that were written more than once"
    )
    statement = (
        f"Processing takes longer than the record lock, which was shortened at {moment(lowered.at_ms)} "
        f"({length(lowered.lock_ms)}, {LOCK} of {shown(group)}; {length(lowered.before_ms)} before): the lock runs "
        "out, the acknowledgement comes too late, and the record is delivered again. Then these records may have been "
        "processed at each delivery."
    )
    is_certain = repeats.is_first and not joined
    return Verdict(statement, (changed, follows, *evidence), new, is_certain=is_certain, steps=(back, otherwise))


def _end(delivered: Mapping[str, Any]) -> list[int | None]:
    """The end of the last delivery of a range, if an expired lock may have ended it."""
    return [delivered["log_timestamp_ms"]] if delivered["delivery_state"] == ARCHIVED else []


def _by_times(
    context: RuleContext, group: str, ranges: Iterable[Mapping[str, Any]], told: int | None
) -> Verdict | None:
    """The verdict from the times between the ends of deliveries; None if too few are known. If a lock expired, the time
    from the end of one delivery to the end of the next is at least as long as the lock."""
    gaps = sorted(
        after - before
        for each in ranges
        for before, after in pairwise([*(each["released_ms"] or ()), *_end(each)])
        if before is not None and after is not None
    )
    if len(gaps) < _LEAST:
        return None
    lock_ms = DEFAULT_MS if told is None else told
    long = sum(each >= lock_ms for each in gaps)
    usual = median(gaps)
    alike = sum(abs(each - usual) <= _EQUAL * usual for each in gaps)
    named = (
        f"{length(lock_ms)}, {LOCK} of {shown(group)}" if told is not None else f"{LOCK}, {length(lock_ms)} by default"
    )
    statement = (
        f"Processing takes longer than the record lock ({named}): the lock runs out, the acknowledgement comes "
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
        # Records wait that long before they are delivered again, however the deliveries end. So locks may expire
        # without any sign of it.
        waits = (f"the time of each delivery: {length(usual)} pass from the end of one to the end of the next",)
        return Verdict(statement, lacked=waits, steps=(raised,)) if told is not None and long == len(gaps) else None
    if long >= _MOST * len(gaps):
        shows = f"{long} of {len(gaps)} deliveries ended {length(lock_ms)} or more after the one before them"
        return Verdict(statement, (Evidence(shows),), steps=(raised,))
    if told is None and alike >= _MOST * len(gaps):
        shows = f"{alike} of {len(gaps)} deliveries ended about {length(usual)} after the one before them"
        lacked = () if context.look("configs").num_rows else (f"{LOCK} of the group",)
        return Verdict(statement, (Evidence(shows),), lacked=lacked, steps=(raised,))
    shows = (
        f"{len(gaps) - long} of {len(gaps)} deliveries ended sooner than {length(lock_ms)} after the one before them"
    )
    return Verdict(statement, refuted_by=Evidence(shows))
