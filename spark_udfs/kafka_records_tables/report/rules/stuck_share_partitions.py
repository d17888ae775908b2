"""Share partitions that make no progress although the group has members and records are waiting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept, numbers
from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts.cluster_settings import cluster_settings, lacking_settings
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, LogEnds, ends_of_topic
from kafka_records_tables.report.facts.known_logs import known_ends
from kafka_records_tables.report.facts.member_names import member_names
from kafka_records_tables.report.facts.moved_groups import without_old_copies
from kafka_records_tables.report.facts.record_locks import DEFAULT_MS, LOCK
from kafka_records_tables.report.facts.share_waits import PROCESSED, TABLE, first_unprocessed
from kafka_records_tables.report.facts.usual_values import LEAST, STOP
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    partitions_shown,
    shown,
)
from kafka_records_tables.tables.share_lag import lagging
from kafka_records_tables.topics import SHARE_STATE

if TYPE_CHECKING:
    from collections.abc import Sequence

KIND: Final = "share_partition_stuck"
_HELD, _AGAIN, _HANG, _UNASSIGNED = "record_held", "record_delivered_again", "workers_hang", "assigned_to_nobody"
_LIMIT: Final = "share.partition.max.record.locks"
_ISOLATION: Final = "share.isolation.level"
_DEFAULT_LIMIT: Final = 2000
"""The default of `group.share.partition.max.record.locks`, used if no record sets it."""
_LOCKS: Final = 2
"""If a record is held for this many lock durations, its lock has been renewed."""
_TIMES: Final = 3
"""A hold is unusually long if it is this many times as long as the longest earlier one in the group's log."""


@dataclass(frozen=True, slots=True)
class _Window:
    """The records in flight in a share partition, according to its state."""

    first: int
    """The first offset that is not processed."""
    last: int
    """The last offset that the state contains, or the one before `first`."""
    processed: int
    """The number of processed offsets between them."""
    deliveries: int
    """The number of deliveries of `first` that have ended."""

    @classmethod
    def of(cls, start: int, batches: Sequence[Mapping[str, int]]) -> _Window:
        """The window from a start offset and the batches after it, in ascending order."""
        known = [(each["first_offset"], each["last_offset"], each["delivery_state"]) for each in batches]
        first = first_unprocessed(start, known)
        processed = sum(end - begin + 1 for begin, end, state in known if state in PROCESSED and begin > first)
        last = max([start - 1, *(end for _, end, _ in known)])
        counts = (each["delivery_count"] for each in batches if each["first_offset"] <= first <= each["last_offset"])
        deliveries = next(counts, 0)
        return cls(first, last, processed, deliveries)

    @property
    def size(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class _Stuck:
    """A share partition that makes no progress."""

    partition: int
    window: _Window
    waits: Mapping[str, Any]
    """Its row of `share_waits`."""
    waiting: int
    """The number of records that were not delivered."""
    is_full: bool
    quiet_ms: int
    """The time since its last change, without times in which nothing was written."""
    per_second: float | None
    """The number of records written per second since it stopped; None if unknown."""

    @property
    def is_held(self) -> bool:
        """Whether only the first record holds the start offset, because records after it are processed."""
        return self.window.processed > 0

    @property
    def since_ms(self) -> int:
        since: int = self.waits["held_ms"] if self.is_held else self.waits["changed_ms"]
        return since


@dataclass(frozen=True, slots=True)
class _Limits:
    """Settings of a group."""

    records: int
    """The maximum number of records in flight in a share partition."""
    is_set: bool
    """Whether a record sets this maximum. `server.properties` may change the default."""
    lock_ms: int
    lock: str
    """The duration of a lock, with the name of its config."""
    is_committed_only: bool
    """Whether it reads only committed records."""


def _find(context: RuleContext) -> list[Incident]:
    rows = _suspects(context)
    if not rows.num_rows:
        return []
    groups = tuple(dict.fromkeys(rows["group_id"].to_pylist()))[:MOST_GROUPS]
    waits: dict[tuple[str, str, int], dict[str, Any]] = {}
    longest: dict[str, int] = {}
    for each in context.look(TABLE, groups).to_pylist():
        waits[each["group_id"], each["topic_id"], each["partition"]] = each
        longest[each["group_id"]] = max(longest.get(each["group_id"], 0), each["longest_hold_ms"])
    ends, stuck = known_ends(context), dict[tuple[str, str, str], list[_Stuck]]()
    for row in kept(rows, equal(rows, "group_id", *longest)).to_pylist():
        group, topic, topic_id = row["group_id"], row["topic"], row["topic_id"]
        of_place = waits.get((group, topic_id, row["partition"]))
        if of_place is not None and (topic, row["partition"]) in ends:
            found = _stuck(context, row, of_place, longest[group])
            if found is not None:
                stuck.setdefault((group, topic, topic_id), []).append(found)
    return [_incident(context, *key, found) for key, found in stuck.items()]


def _suspects(context: RuleContext) -> pa.Table:
    """Share partitions with at least `records` waiting records, in groups with members; most records first."""
    groups = without_old_copies(context, context.table("groups"))
    members = kept(groups, equal(groups, "group_kind", "share"), pc.greater(groups["member_count"], 0))
    rows = context.table("share_partitions")
    rows = kept(rows, equal(rows, "group_id", *members["group_id"].to_pylist()))
    rows = lagging(rows, context.table("log_ends"))
    # Kafka's lag includes records before a start offset that has moved since the last snapshot.
    processed = numbers(rows, "acknowledged_count") + numbers(rows, "archived_count") - numbers(rows, "done")
    waiting = numbers(rows, "lag", -1) - processed.clip(0)
    rows = rows.append_column("waiting", pa.array(waiting))
    rows = kept(rows, waiting >= context.limit(f"{KIND}.records"), pc.is_valid(rows["topic"]))
    return rows.sort_by([("waiting", "descending")])


def _limits(context: RuleContext, group: str) -> _Limits:
    settings = cluster_settings(context)
    records, lock_ms = settings.group_limit(group, _LIMIT), settings.group_limit(group, LOCK)
    return _Limits(
        _DEFAULT_LIMIT if records is None else records,
        records is not None,
        DEFAULT_MS if lock_ms is None else lock_ms,
        f"{length(DEFAULT_MS)}, {LOCK} by default" if lock_ms is None else f"{length(lock_ms)}, {LOCK}",
        settings.group_setting(group, _ISOLATION) == "read_committed",
    )


def _stuck(context: RuleContext, row: Mapping[str, Any], waits: Mapping[str, Any], longest_ms: int) -> _Stuck | None:
    """A share partition, if it has made no progress for longer than usual; otherwise None."""
    limits, at_ms = _limits(context, row["group_id"]), context.at_ms
    window = _Window.of(row["start_offset"], row["batches"] or ())
    least = max(context.limit(f"{KIND}.after"), _LOCKS * limits.lock_ms)
    is_full = window.processed > 0 and window.size >= limits.records
    ends, place = ends_of_topic(context, row["group_id"], row["topic"]), (row["topic"], row["partition"])
    quiet = at_ms - waits["changed_ms"] - _unwritten_ms(context, ends, row["topic"], waits["changed_ms"])
    if window.processed and (waits["held_ms"] is None or waits["first_offset"] != window.first):
        # The log does not show when the wait began.
        return None
    if is_full:
        held = at_ms - waits["held_ms"] - _unwritten_ms(context, ends, row["topic"], waits["held_ms"])
        if held < max(least, _TIMES * longest_ms) or quiet < limits.lock_ms:
            return None
    elif limits.is_committed_only or waits["changes"] <= LEAST:
        # Open transactions may hold back the waiting records, or the group's usual time is unknown.
        return None
    elif quiet < max(least, STOP * waits["longest_pause_ms"]):
        return None
    if not is_full and (ends.end_at(place, at_ms - least) or 0) <= window.last + 1:
        # The waiting records were written only recently.
        return None
    waiting = known_ends(context)[place] - window.last - 1
    if waiting < context.limit(f"{KIND}.records"):
        return None
    per_second = _per_second(ends, place, waits["changed_ms"], at_ms)
    return _Stuck(row["partition"], window, waits, waiting, is_full, quiet, per_second)


def _unwritten_ms(context: RuleContext, ends: LogEnds, topic: str, since_ms: int) -> int:
    """For how long nothing was written to a topic since a time, in pauses longer than `after`. Brokers that were down
    deliver nothing."""
    places = [place for place in known_ends(context) if place[0] == topic]
    times = {at_ms for place in places for at_ms in ends.times(place) if since_ms < at_ms < context.at_ms}
    if not times:
        # Without times of records, nothing shows a pause.
        return 0
    pauses = (after - before for before, after in pairwise(sorted({since_ms, *times, context.at_ms})))
    return sum(each for each in pauses if each > context.limit(f"{KIND}.after"))


def _per_second(ends: LogEnds, place: tuple[str, int], since_ms: int, at_ms: int) -> float | None:
    before, after = ends.end_at(place, since_ms), ends.end(place)
    return None if before is None or after is None else 1000 * (after - before) / max(at_ms - since_ms, 1)


def _incident(context: RuleContext, group: str, topic: str, topic_id: str, stuck: list[_Stuck]) -> Incident:
    worst, partitions = stuck[0], sorted(each.partition for each in stuck)
    members = context.rows_of_group("members", group).to_pylist()
    names = member_names(members)
    assigned = context.rows_of_group("assignments", group)
    assigned = kept(assigned, equal(assigned, "topic", topic), equal(assigned, "partition", *partitions))
    owners = [each for each in names if each in set(assigned["member_id"].to_pylist())]
    waiting = sum(each.waiting for each in stuck)
    limits = _limits(context, group)
    since = min(each.since_ms for each in stuck)
    rows = Rows("share_lag", of_group(group, condition_of("topic_id", topic_id)))
    level = Level.HIGH if any(each.is_full for each in stuck) else Level.MODERATE
    is_sure = worst.is_full and limits.is_set
    place, first = f"{topic}-{worst.partition}", worst.window.first
    look = context.ask_kafka(
        f"Look at the record at offset {first} of {place}",
        "kafka-console-consumer",
        *option("--topic", topic),
        *("--partition", str(worst.partition), "--offset", str(first), "--max-messages", "1"),
        *("--property", "print.key=true", "--property", "print.offset=true"),
    )
    evidence = tuple(
        Evidence(
            f"the last change of the state of partition {each.partition}: nothing was acknowledged or given up since",
            SHARE_STATE,
            each.waits["log_partition"],
            each.waits["changed_at"],
            each.waits["changed_ms"],
        )
        for each in stuck[:10]
    )
    finding = ReportFinding(
        kind=KIND,
        level=level,
        title=RULE.title,
        problem=_problem(group, topic, stuck, limits, len(members)),
        impact=(
            f"Nothing more is delivered from {partitions_shown(partitions)} of {shown(topic)} to {shown(group)}: "
            f"{counted(waiting, 'record')} {'wait' if waiting > 1 else 'waits'}{_more(stuck)}."
        ),
        consequence="work_stopped",
        group_ids=(group,),
        topics=(topic,),
        partitions=tuple(partitions),
        who=tuple(
            Actor("is assigned the partition", group, each["member_id"], each["client_id"], each["client_host"])
            for each in members
            if each["member_id"] in owners
        )[:5],
        since_timestamp_ms=since,
        since_note="the first acknowledgement of a later record" if worst.is_held else "the last acknowledgement",
        is_going_on=True,
        scale={"records_waiting": waiting, "partitions": len(stuck)},
        symptom_confidence="high" if is_sure else "medium",
        why_not_sure=(
            None
            if is_sure
            else (
                f"no record sets {_LIMIT}, so that {limits.records} is assumed, the default"
                if worst.is_full
                else "the log does not show deliveries, only their ends: a worker may be at a record for unusually long"
            )
        ),
        evidence=evidence,
        evidence_count=len(stuck),
        rows=(rows,),
        next=(look, *_finding_out(worst), context.see("List what waits in each share partition", rows)),
        measured={
            "held_for_ms": context.at_ms - since,
            "quiet_for_ms": worst.quiet_ms,
            "in_flight": worst.window.size,
        },
        thresholds=context.limits_of(f"{KIND}.after", f"{KIND}.records"),
    )
    owner_names = [names[each] for each in owners]
    verdicts = {
        _HELD: _weigh_held(context, group, topic, worst, limits, owner_names),
        _AGAIN: _weigh_again(worst),
        _HANG: _weigh_hang(group, worst, owner_names, bool(members)),
        _UNASSIGNED: _weigh_assigned(group, worst, owner_names),
    }
    return Incident(finding, waiting, {name: each for name, each in verdicts.items() if each is not None})


def _problem(group: str, topic: str, stuck: list[_Stuck], limits: _Limits, members: int) -> str:
    worst = stuck[0]
    window, waits = worst.window, worst.waits
    parts = [
        f"The share group {shown(group)} has stopped in {partitions_shown([each.partition for each in stuck])} of "
        f"{shown(topic)}"
    ]
    where = "" if len(stuck) == 1 else f"of partition {worst.partition} "
    last = f"{moment(waits['changed_ms'])}"
    if worst.is_held:
        after = f"{'All ' if window.processed == window.size - 1 else ''}{window.processed}"
        parts.append(
            f": the start offset {where}has been {window.first} since {moment(waits['held_ms'])}, because this record "
            f"is neither acknowledged nor given up. {after} offsets after it, up to {window.last}, are. "
        )
        if worst.is_full:
            parts.append(
                f"So the {limits.records} records are in flight that the {'' if limits.is_set else 'default '}limit "
                f"allows ({_LIMIT}), and nothing more "
                f"has been delivered since about {last}, the last acknowledgement. "
            )
        else:
            parts.append(f"Nothing has been acknowledged since {last}. ")
    else:
        parts.append(
            f": nothing {where}has been acknowledged since {last}, "
            f"and before that it never took longer than {length(waits['longest_pause_ms'])}. "
        )
    parts.append(f"The group has {counted(members, 'member')}.")
    return "".join(parts)


def _more(stuck: list[_Stuck]) -> str:
    rates = [each.per_second for each in stuck if each.per_second]
    return f", and about {sum(rates):.3g} more come per second" if rates else ""


def _finding_out(worst: _Stuck) -> tuple[NextStep, ...]:
    if not worst.is_held:
        return ()
    return (
        NextStep(
            "The log does not show which worker holds the record: find it by the logs or thread dumps of the workers, "
            f"which show who is at offset {worst.window.first}"
        ),
        NextStep(f"Raising {_LIMIT} only buys time: deliveries stop once more when the new limit is reached"),
    )


def _weigh_held(
    context: RuleContext, group: str, topic: str, worst: _Stuck, limits: _Limits, owners: Sequence[str]
) -> Verdict | None:
    if not worst.is_held:
        return None
    window, waits = worst.window, worst.waits
    of_state = waits["log_partition"], waits["held_at"], waits["held_ms"]
    shows = f"offset {window.first} is not processed, although {window.processed} offsets after it are"
    evidence = [Evidence(shows, SHARE_STATE, *of_state)]
    if worst.is_full:
        evidence.append(
            Evidence(
                f"{window.size} offsets are in flight ({window.first} to {window.last}); the limit is {limits.records}"
            )
        )
    if not window.deliveries:
        held = length(context.at_ms - waits["held_ms"])
        evidence.append(
            Evidence(
                f"its first delivery has not ended in {held}: if its lock ({limits.lock}) had run out, the log shows it"
            )
        )
    differs = f"differs from {limits.records}" if worst.is_full else f"is lower than {limits.records}"
    lacked = lacking_settings(context) or (
        () if worst.is_full and limits.is_set else (f"whether {_LIMIT} of the brokers {differs}",)
    )
    who = f"the workers that are assigned the partition ({listed(owners)})" if owners else f"the workers of {group}"
    step = NextStep(
        f"Restart {who} one by one, until the start offset of {topic}-{worst.partition} moves: a worker that ends "
        "releases the record, which then goes to another one. If that one hangs too, have the workers reject the "
        "record (acknowledge with REJECT), or limit how long they process a record and how often they renew its lock"
    )
    return Verdict(
        f"A worker of {shown(group)} holds the record at offset {window.first} without an end: it does not finish, and "
        "renews the lock (acknowledges with RENEW).",
        tuple(evidence),
        lacked=lacked,
        steps=(step,),
    )


def _weigh_again(worst: _Stuck) -> Verdict | None:
    if not worst.is_held:
        return None
    window = worst.window
    statement = f"The record at offset {window.first} is delivered again and again, and no worker can process it."
    if not window.deliveries:
        shows = f"no delivery of offset {window.first} has ended"
        return Verdict(statement, refuted_by=Evidence(shows))
    shows = f"deliveries of offset {window.first} that ended without an acknowledgement: {window.deliveries}"
    step = NextStep("Find out from the logs of the workers what fails at this offset, and have them reject the record")
    return Verdict(statement, (Evidence(shows),), steps=(step,))


def _weigh_hang(group: str, worst: _Stuck, owners: Sequence[str], has_members: bool) -> Verdict | None:
    if worst.is_held or not has_members:
        return None
    step = NextStep(
        f"Find out from the logs or thread dumps of the workers of {shown(group)} ({listed(owners)}) what they do, and "
        "restart those that hang: their records are then delivered to others"
    )
    return Verdict(
        f"The workers of {shown(group)} that are assigned the partition hang or do not poll: they stay members, "
        "because heartbeats are sent by another thread.",
        (Evidence(f"{listed(owners)} {'is' if len(owners) == 1 else 'are'} assigned the partition"),) if owners else (),
        refuted_by=None if owners else Evidence("no member is assigned the partition"),
        steps=(step,) if owners else (),
    )


def _weigh_assigned(group: str, worst: _Stuck, owners: Sequence[str]) -> Verdict | None:
    statement = f"No member of {shown(group)} is assigned the partition."
    if worst.is_held:
        return None
    if owners:
        return Verdict(statement, refuted_by=Evidence(f"{listed(owners)} {'has' if len(owners) == 1 else 'have'} it"))
    step = NextStep(f"Restart the members of {shown(group)}: the coordinator then assigns the partitions again")
    return Verdict(statement, (Evidence("no assignment of the group has it"),), steps=(step,))


RULE = incident_rule(
    kind=KIND,
    title="a share group has stopped in a partition, although records wait and members are there",
    about=f"""\
Share partitions of groups with members in which `records` records or more wait, and that stand still for `after`, and
for far longer than locks and earlier pauses last. Either a record holds the start offset, and those after it fill the
window of records in flight (`{_LIMIT}` of the group, 2000 by default); or nothing is acknowledged or released. The
latter is found in files only, and not for groups that read only committed records: open transactions may hold back
what waits. Pauses longer than `after` without writes to the topic do not count: brokers may have been down.

No record shows which worker holds a record: acquiring and renewing a lock (`AcknowledgeType.RENEW`) change nothing in
the log.""",
    tables=("share_partitions", "log_ends", "groups", "members", "assignments"),
    levels={
        Level.HIGH: "the window is full",
        Level.MODERATE: "nothing was acknowledged or released",
    },
    find=_find,
    listing=Rows("share_lag"),
    causes=(
        PossibleCause(
            _HELD,
            "a worker holds a record, and renews its lock",
            "for: its first delivery has not ended",
        ),
        PossibleCause(
            _AGAIN,
            "the record is delivered again and again",
            "for: deliveries ended without an acknowledgement; refuted if none did",
        ),
        PossibleCause(_HANG, "the workers that are assigned the partition hang", "refuted if no member is assigned it"),
        PossibleCause(_UNASSIGNED, "no member is assigned the partition", "refuted by an assignment"),
    ),
    thresholds=(
        Threshold(
            "after",
            "duration",
            "1m",
            "how long a share partition must have stood still",
            "brokers allow locks of up to 60 s by default, so a worker that dies does not stop a partition for longer",
        ),
        Threshold("records", "count", 10, "how many records must wait", "some always wait until they are delivered"),
    ),
)

RULES = (RULE,)
