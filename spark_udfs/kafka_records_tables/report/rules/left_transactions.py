"""Transactions left open while an instance of the same application uses another transactional id."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.coordinator.rules.open_on_purpose import has_timeout
from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.first_uses import uses_of
from kafka_records_tables.report.facts.known_logs import incomplete_partitions
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    RuleContext,
    counted,
    length,
    listed,
    moment,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.broken_logs import logs_shown
from kafka_records_tables.topics import TRANSACTIONS

KIND: Final = "transaction_of_dead_instance"
_LAST_PART: Final = re.compile("[-_.:]?[0-9A-Za-z]*$")


def _family(name: str) -> str:
    return _LAST_PART.sub("", name) or name


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("transactions")
    is_open = pc.equal(rows["state"], "Ongoing")
    families: dict[str, list[dict[str, Any]]] = {}
    opened = rows.filter(is_open).to_pylist()
    if not opened:
        return []
    wanted = {_family(each["transactional_id"]) for each in opened}
    near = rows.filter(
        pc.greater(rows["last_update_timestamp_ms"], min(each["last_update_timestamp_ms"] for each in opened))
    )
    for row in near.to_pylist():
        family = _family(row["transactional_id"])
        if family in wanted:
            families.setdefault(family, []).append(row)
    found = []
    for row in opened:
        later = [
            each
            for each in families.get(_family(row["transactional_id"]), ())
            if each["transactional_id"] != row["transactional_id"]
            and (each["start_timestamp_ms"] or 0) > row["last_update_timestamp_ms"]
        ]
        incident = _incident(context, row, later)
        if incident is not None:
            found.append(incident)
    return found


def _weighed(
    context: RuleContext, row: dict[str, Any], later: list[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Verdict]]:
    """The other instance, and verdicts on whether it replaced the silent one. Producer ids do not show this, because
    each broker hands them out from its own block."""
    firsts = context.once(uses_of)
    name, after = row["transactional_id"], row["last_update_timestamp_ms"]

    def came_ms(each: dict[str, Any]) -> int | None:
        first = firsts.get(each["transactional_id"])
        return None if first is None else first["log_timestamp_ms"]

    new = [each for each in later if (came_ms(each) or 0) > after and firsts[each["transactional_id"]]["is_new"]]
    # If the first record of an id does not show its first use, that id may also be new.
    unknown = [each for each in later if each not in new and (came_ms(each) is None or (came_ms(each) or 0) > after)]
    other = max(new or unknown or later, key=lambda each: each["last_update_timestamp_ms"] or 0)
    its_name, came = other["transactional_id"], came_ms(other)
    first = firsts.get(its_name, other)
    silent = Evidence(
        f"{name} is Ongoing, and nothing was added since", TRANSACTIONS, row["log_partition"], row["log_offset"], after
    )
    goes_on = Evidence(
        f"{its_name} {'came later and ' if new else ''}commits",
        TRANSACTIONS,
        other["log_partition"],
        other["log_offset"],
        other["last_update_timestamp_ms"],
    )
    use = Evidence(
        f"{its_name} was used first at {moment(came or 0)}, {'after' if new else 'before'} {name} fell silent",
        TRANSACTIONS,
        first["log_partition"],
        first["log_offset"],
        came,
    )
    lacked: tuple[str, ...] = (f"the first record of {its_name}",) if not new and unknown else ()
    absent = () if new else incomplete_partitions(context, TRANSACTIONS)
    if absent:
        # The record of the instance that replaced it may be in a missing log.
        lacked += (f"all of {logs_shown(TRANSACTIONS, absent)}",)
    died = Verdict(
        f"The instance with {shown(name)} died in the transaction. The one that took its place uses "
        f"{shown(its_name)}: a new id does not end the transaction of the old one.",
        evidence_for=(silent, goes_on, use) if new else (silent,),
        refuted_by=None if new or lacked else use,
        lacked=lacked,
    )
    hangs = Verdict(
        f"The instance with {shown(name)} hangs or has ended, and no other took its place: {shown(its_name)} is "
        "another instance of the same application.",
        evidence_for=(silent,) if new or lacked else (silent, use),
        evidence_against=(use,) if new else (),
        lacked=lacked,
    )
    return other, {"instance_died": died, "instance_hangs": hangs}


def _incident(context: RuleContext, row: dict[str, Any], later: list[dict[str, Any]]) -> Incident | None:
    since = row["start_timestamp_ms"] or row["last_update_timestamp_ms"]
    silent = context.at_ms - row["last_update_timestamp_ms"]
    # If another id has been inactive for as long, this proves nothing: an id writes no record during a transaction that
    # takes a minute.
    quiet_ms = context.limit(f"{KIND}.after")
    later = [
        each
        for each in later
        if each["state"] != "Ongoing" or context.at_ms - each["last_update_timestamp_ms"] < quiet_ms
    ]
    usual = max(
        (
            (context.at_ms if each["state"] == "Ongoing" else each["last_update_timestamp_ms"] or 0)
            - (each["start_timestamp_ms"] or 0)
            for each in later
        ),
        default=0,
    )
    if not later or silent < max(quiet_ms, context.limit(f"{KIND}.times") * max(usual, 0)):
        return None
    places = [(each["topic"], number) for each in row["partitions"] or () for number in each["partitions"]]
    begins = _first_offsets(context, row)
    held = []
    rows = context.table("lag")
    rows = kept(rows, equal(rows, "topic", *{topic for topic, _ in places}), pc.greater(rows["held_back"], 0))
    for each in rows.to_pylist():
        place = each["topic"], each["partition"]
        # A group that has committed a later offset is not waiting, because it reads uncommitted records.
        if place in places and each["offset"] <= begins.get(place, each["offset"]):
            held.append(each)
    groups = tuple(dict.fromkeys(each["group_id"] for each in held))
    stuck = sum(each["lag"] or 0 for each in held)
    name = row["transactional_id"]
    successor, causes = _weighed(context, row, later)
    is_sibling = causes["instance_died"].refuted_by is not None
    age = context.at_ms - since
    timeout = row["timeout_ms"]
    ended = (
        ""
        if timeout is None
        else (
            " It has no timeout because its producer takes part in a two-phase commit."
            if not has_timeout(timeout)
            else (
                f" Its timeout of {length(timeout)} ends it at {moment(since + timeout)} at the latest."
                if age < timeout
                else f" Its timeout of {length(timeout)} is over, and no coordinator has ended it."
            )
        )
    )
    own = [place for place in places if not place[0].startswith("__")]
    evidence = causes["instance_hangs" if is_sibling else "instance_died"].evidence_for
    hung = (
        (
            NextStep(
                f"Check whether the instance with {shown(name)} still runs: take a stack dump of it, then restart it"
            ),
        )
        if is_sibling
        else ()
    )
    steps = _steps(context, row, own)
    waits = (
        f"{listed(groups)} {'reads' if len(groups) == 1 else 'read'} only committed records and "
        f"{'gets' if len(groups) == 1 else 'get'} no further: {counted(stuck, 'record')} wait."
        if groups
        else ""
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if groups else Level.MODERATE,
        title=RULE.title if not is_sibling else "a transaction hangs, while other instances continue",
        problem=(
            f"The transaction of {shown(name)} has been open for {length(age)}, since {moment(since)}, and nothing "
            f"was added to it for {length(silent)}; {shown(successor['transactional_id'])} continues meanwhile."
            f"{f' It holds back {places_shown(sorted(own))}.' if own else ''}{ended}"
        ),
        impact=waits or "Consumers that read only committed records wait at its first record.",
        consequence="work_stopped",
        group_ids=groups,
        topics=tuple(sorted({topic for topic, _ in own})),
        partitions=tuple(sorted({number for _, number in own})) if len({topic for topic, _ in own}) == 1 else (),
        transactional_ids=(name,) if is_sibling else (name, successor["transactional_id"]),
        who=(
            Actor(f"left its transaction open ({name})"),
            *(() if is_sibling else (Actor(f"took its place ({successor['transactional_id']})"),)),
        ),
        since_timestamp_ms=since,
        until_timestamp_ms=None,
        is_going_on=True,
        scale={"records_waiting": stuck, "partitions": len(own), "groups": len(groups)},
        evidence=evidence,
        evidence_count=len(evidence),
        rows=(Rows("open_transactions"), Rows("transactions")),
        next=(
            *hung,
            *steps,
            NextStep(
                "Let an instance use the same transactional.id after a restart: it then ends the transaction that "
                "the old instance left"
            ),
            context.see("List the transactional ids, and what each did last", Rows("transactions")),
        ),
        measured={"open_ms": age, "silent_ms": silent},
        thresholds=context.limits_of(f"{KIND}.after", f"{KIND}.times"),
    )
    return Incident(finding, stuck, causes)


def _first_offsets(context: RuleContext, row: dict[str, Any]) -> dict[tuple[str, int], int]:
    """By topic and partition, the offset at which a transaction begins, if the logs are available."""
    return {
        (each["topic"], each["partition"]): each["first_offset"]
        for each in context.table("open_transactions").to_pylist()
        if each["producer_id"] == row["producer_id"] and each["first_offset"] is not None
    }


def _steps(context: RuleContext, row: dict[str, Any], own: list[tuple[str, int]]) -> list[NextStep]:
    """The steps to end the transaction. `abort-transaction` refuses, because the coordinator has the transaction
    open."""
    name = shown(row["transactional_id"])
    restart = NextStep(
        f"Start a producer with the transactional.id {name} once (initTransactions): its coordinator aborts what is"
        " open, in all partitions"
    )
    starts = [(place, offset) for place, offset in _first_offsets(context, row).items() if place in own]
    if starts:
        (topic, partition), offset = starts[0]
        more = f" (the same for {len(starts) - 1} more, each with its own start offset)" if len(starts) > 1 else ""
        abort = context.ask_kafka(
            f"If the instance has certainly ended, abort its transaction in {topic}-{partition}{more}",
            "kafka-transactions",
            "abort",
            *("--topic", topic, "--partition", str(partition), "--start-offset", str(offset)),
        )
        return [abort, restart]
    if not own:
        return [restart]
    find = context.ask_kafka(
        "If the instance has certainly ended, abort its transaction (kafka-transactions abort with --topic, "
        f"--partition and --start-offset): this shows the start offset of producer id {row['producer_id']}",
        "kafka-transactions",
        "describe-producers",
        *("--topic", own[0][0], "--partition", str(own[0][1])),
    )
    return [find, restart]


RULE = incident_rule(
    kind=KIND,
    title="a dead instance has left a transaction open, and its successor uses another transactional id",
    about="""\
Open transactions to which nothing was added for `after`, and for `times` times as long as later transactions of an id
that differs only at its end took.""",
    tables=("transactions", "open_transactions", "lag"),
    levels={Level.HIGH: "groups wait there", Level.MODERATE: "otherwise"},
    find=_find,
    listing=Rows("open_transactions"),
    causes=(
        PossibleCause(
            "instance_died",
            "the instance died in the transaction",
            "for: the other id was first used after that; refuted if it was used before",
        ),
        PossibleCause(
            "instance_hangs",
            "it hangs, or no instance took its place; the other id belongs to a sibling",
            "for and against: the reverse",
        ),
    ),
    thresholds=(
        Threshold(
            "after",
            "duration",
            "20s",
            "time in which nothing was added",
            "batches that take minutes are rare, and hold back readers",
        ),
        Threshold(
            "times",
            "count",
            20,
            "the same, as a multiple of the duration of the successor's transactions",
            "both do the same work",
        ),
    ),
    folds=(
        Folds("transaction_open", ("transactional_id",)),
        Folds("group_stands_still"),
        Folds("too_slow"),
    ),
)

RULES = (RULE,)
