"""A transaction that a dead instance has left open, while its successor uses another transactional id."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.report_parts import Actor, Evidence, Level, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Threshold, Verdict
from kafka_records_tables.topics import TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext

KIND: Final = "transaction_of_dead_instance"
_LAST_PART: Final = re.compile("[-_.:]?[0-9A-Za-z]*$")


def _family(name: str) -> str:
    return _LAST_PART.sub("", name) or name


def _find(context: RuleContext) -> list[Incident]:
    import pyarrow.compute as pc

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
            # Producer ids are handed out in order: the successor asked for its own after this one.
            and each["producer_id"] > row["producer_id"]
            and (each["start_timestamp_ms"] or 0) > row["last_update_timestamp_ms"]
        ]
        incident = _incident(context, row, later)
        if incident is not None:
            found.append(incident)
    return found


def _incident(context: RuleContext, row: dict[str, Any], later: list[dict[str, Any]]) -> Incident | None:
    from kafka_records_tables.report.rule_context import (
        counted,
        length,
        listed,
        moment,
        places_shown,
        shown,
    )

    since = row["start_timestamp_ms"] or row["last_update_timestamp_ms"]
    silent = context.at_ms - row["last_update_timestamp_ms"]
    usual = max(
        ((each["last_update_timestamp_ms"] or 0) - (each["start_timestamp_ms"] or 0) for each in later), default=0
    )
    if not later or silent < max(context.limit(f"{KIND}.after"), context.limit(f"{KIND}.times") * max(usual, 0)):
        return None
    places = [(each["topic"], number) for each in row["partitions"] or () for number in each["partitions"]]
    held = []
    for each in context.table("lag").to_pylist() if places else ():
        place = each["topic"], each["partition"]
        if place in places and each["held_back"]:
            held.append(each)
    groups = tuple(dict.fromkeys(each["group_id"] for each in held))
    stuck = sum(each["lag"] or 0 for each in held)
    name, successor = row["transactional_id"], max(later, key=lambda each: each["last_update_timestamp_ms"] or 0)
    age = context.at_ms - since
    timeout = row["timeout_ms"]
    ended = (
        ""
        if timeout is None
        else (
            f" Its time-out of {length(timeout)} ends it at {moment(since + timeout)} at the latest."
            if age < timeout
            else f" Its time-out of {length(timeout)} is over, and no coordinator has ended it."
        )
    )
    own = [place for place in places if not place[0].startswith("__")]
    verdict = Verdict(
        f"The instance with {shown(name)} died in the transaction. The one that took its place uses"
        f" {shown(successor['transactional_id'])}: another id does not end the transaction of the one before.",
        evidence_for=(
            Evidence(
                f"{name} is Ongoing, and nothing was added since",
                TRANSACTIONS,
                row["log_partition"],
                row["log_offset"],
                row["last_update_timestamp_ms"],
            ),
            Evidence(
                f"{successor['transactional_id']} came later and commits",
                TRANSACTIONS,
                successor["log_partition"],
                successor["log_offset"],
                successor["last_update_timestamp_ms"],
            ),
        ),
    )
    steps = _steps(context, row, own)
    waits = (
        f"{listed(groups)} {'reads' if len(groups) == 1 else 'read'} committed records only and"
        f" {'stands' if len(groups) == 1 else 'stand'} still there: {counted(stuck, 'record')} wait."
        if groups
        else ""
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if groups else Level.MODERATE,
        title=RULE.title,
        problem=(
            f"The transaction of {shown(name)} has been open for {length(age)}, since {moment(since)}, and"
            f" nothing was added"
            f" to it for {length(silent)}; {shown(successor['transactional_id'])} goes on meanwhile."
            f"{f' It holds back {places_shown(sorted(own))}.' if own else ''}{ended}"
        ),
        impact=waits or "Consumers that read committed records only wait at its first record.",
        consequence="work_stopped",
        group_ids=groups,
        topics=tuple(sorted({topic for topic, _ in own})),
        partitions=tuple(sorted({number for _, number in own})) if len({topic for topic, _ in own}) == 1 else (),
        transactional_ids=(name, successor["transactional_id"]),
        who=(Actor(f"left its transaction open ({name})"), Actor(f"took its place ({successor['transactional_id']})")),
        since_timestamp_ms=since,
        until_timestamp_ms=None,
        is_going_on=True,
        scale={"records_waiting": stuck, "partitions": len(own), "groups": len(groups)},
        evidence=verdict.evidence_for,
        evidence_count=2,
        rows=(Rows("open_transactions"), Rows("transactions")),
        next=(
            *steps,
            NextStep(
                "Let an instance use the same transactional.id after a restart: it ends what the one before has left"
            ),
            context.see("See the transactional ids, and what each did last", Rows("transactions")),
        ),
        measured={"open_ms": age, "silent_ms": silent},
        thresholds=context.limits_of(f"{KIND}.after", f"{KIND}.times"),
    )
    return Incident(finding, stuck, {"instance_died": verdict})


def _steps(context: RuleContext, row: dict[str, Any], own: list[tuple[str, int]]) -> list[NextStep]:
    """How to end the transaction: its coordinator has it open, so `abort-transaction` would refuse it."""
    from kafka_records_tables.report.rule_context import shown

    name = shown(row["transactional_id"])
    restart = NextStep(
        f"Start a producer with the transactional.id {name} once (initTransactions): its coordinator aborts what is"
        " open, in all partitions"
    )
    starts = [
        (each["topic"], each["partition"], each["first_offset"])
        for each in context.table("open_transactions").to_pylist()
        if each["producer_id"] == row["producer_id"]
        and each["first_offset"] is not None
        and (each["topic"], each["partition"]) in own
    ]
    if starts:
        topic, partition, offset = starts[0]
        more = f" (the same for {len(starts) - 1} more, each with its own start offset)" if len(starts) > 1 else ""
        abort = context.ask_kafka(
            f"When the instance is certainly gone, abort its transaction in {topic}-{partition}{more}",
            "kafka-transactions",
            "abort",
            *("--topic", topic, "--partition", str(partition), "--start-offset", str(offset)),
        )
        return [abort, restart]
    if not own:
        return [restart]
    find = context.ask_kafka(
        "When the instance is certainly gone, abort its transaction (kafka-transactions abort with --topic,"
        f" --partition and --start-offset): this shows the start offset of producer id {row['producer_id']}",
        "kafka-transactions",
        "describe-producers",
        *("--topic", own[0][0], "--partition", str(own[0][1])),
    )
    return [find, restart]


RULE = incident_rule(
    kind=KIND,
    title="a dead instance has left a transaction open, and its successor uses another transactional id",
    about="""\
Open transactions to which nothing was added for `after`, and for `times` as long as those of an id take that is equal
but for its end, whose producer id is newer, and which began its transactions later. Who stands still at the last stable
offset is told by `lag`.""",
    tables=("transactions", "open_transactions", "lag"),
    levels={Level.HIGH: "groups stand still there", Level.MODERATE: "no group that is known does"},
    find=_find,
    listing=Rows("open_transactions"),
    causes=(
        PossibleCause(
            "instance_died", "the instance died in the transaction", "for: its successor goes on under another id"
        ),
    ),
    thresholds=(
        Threshold(
            "after",
            "duration",
            "20s",
            "time without anything added",
            "batches of minutes are rare, and hold back readers",
        ),
        Threshold(
            "times", "count", 20, "how many times as long as a transaction of the successor", "both do the same work"
        ),
    ),
    folds=(
        Folds("transaction_open", ("transactional_id",)),
        Folds("group_stands_still"),
        Folds("too_slow"),
    ),
)

RULES = (RULE,)
