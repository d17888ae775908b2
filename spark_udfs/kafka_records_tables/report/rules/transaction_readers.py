"""Groups that wait for an open transaction, and the reasons why it is still open."""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.first_uses import uses_of
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, commit_spans
from kafka_records_tables.report.facts.moved_groups import without_old_copies
from kafka_records_tables.report.facts.usual_values import STOP, usual_gap
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, listed, moment, places_shown, shown
from kafka_records_tables.topics import TRANSACTIONS

LEAST_STOP: Final = "group_stands_still.after"
"""The threshold for how long a group must at least have been stopped."""
TIMES_USUAL: Final = "transaction_open.times_usual"

_LEAST_ENDED: Final = 5
"""The minimum number of earlier transactions that show what is usual for an id."""

Waiting = list[tuple[str, str, int]]
"""Group, topic and partition."""


def waiting_at(context: RuleContext, cause: list[dict[str, Any]]) -> Waiting:
    """The groups that have read up to the start of an open transaction, with topic and partition. Whether they wait
    depends on their `isolation.level`, which no log shows. A commit may be lower than that start if only markers, which
    are not records, lie in between."""
    blocked = {(topic, partition): offset for each in cause for topic, partition, offset in each.get("blocks", ())}
    rows = context.table("lag").select(["group_id", "topic", "partition", "offset", "unread"])
    rows = kept(rows, equal(rows, "topic", *{topic for topic, _ in blocked}))
    found = []
    for each in rows.to_pylist():
        start = blocked.get((each["topic"], each["partition"]))
        if start is None or each["offset"] is None:
            continue
        if each["offset"] == start or (each["offset"] < start and each["unread"] == 0):
            found.append((each["group_id"], each["topic"], each["partition"]))
    return sorted(found)


def unread(context: RuleContext, waiting: Waiting, groups: tuple[str, ...]) -> int:
    """How many records groups have not read in the partitions in which they wait."""
    rows = context.table("lag").select(["group_id", "topic", "partition", "lag"])
    rows = kept(rows, equal(rows, "group_id", *groups))
    return sum(
        each["lag"] or 0 for each in rows.to_pylist() if (each["group_id"], each["topic"], each["partition"]) in waiting
    )


def who_waits(waiting: Waiting) -> str:
    """Two sentences that say which groups have read up to the transaction, and what this means."""
    groups = list(dict.fromkeys(group for group, *_ in waiting))
    where = places_shown((topic, partition) for _, topic, partition in waiting)
    has, waits = ("has", "it waits") if len(groups) == 1 else ("have", "they wait")
    return f"{listed(groups)} {has} read up to it in {where}. With isolation.level=read_committed, {waits} for its end."


def stopped(context: RuleContext, transaction: dict[str, Any]) -> tuple[str, ...]:
    """Groups with members that wait for a transaction. In a partition where it begins, they have not committed for at
    least STOP times the longest interval between their earlier commits there, or in all their partitions if there are
    too few. Groups with too few commits in the log are left out."""
    since = transaction["since_timestamp_ms"]
    rows = without_old_copies(context, context.table("groups"))
    alive = set(kept(rows, pc.greater(rows["member_count"], 0))["group_id"].to_pylist())
    waiting = [each for each in waiting_at(context, [transaction]) if each[0] in alive]
    groups = tuple(dict.fromkeys(group for group, *_ in waiting))[:MOST_GROUPS]
    if since is None or not groups:
        return ()
    of_groups: dict[str, set[int]] = {}
    of_places: dict[tuple[str, str, int], set[int]] = {}
    for key, spans in commit_spans(context, groups).items():
        times = {each.from_ms for each in spans if each.from_ms is not None}
        of_places[key] = times
        of_groups.setdefault(key[0], set()).update(times)
    found = []
    least = context.limit(LEAST_STOP)
    for key in waiting:
        own = of_places.get(key)
        if own:
            before = [usual_gap(each for each in times if each <= since) for times in (own, of_groups[key[0]])]
            gap = before[0] or before[1]
            if gap is not None and context.at_ms - max(*own, since) >= max(STOP * gap.most_ms, least):
                found.append(key[0])
    return tuple(dict.fromkeys(found))


def usual_transactions(context: RuleContext, transaction: dict[str, Any]) -> dict[str, Any] | None:
    """A row of `first_uses` about earlier transactions of the same id, if this one has been open for much longer than
    any of them; None if it has not, or if there are too few earlier transactions."""
    own = context.once(uses_of).get(transaction["transactional_id"])
    if own is None or own["ended"] < _LEAST_ENDED:
        return None
    return own if transaction["age_ms"] >= context.limit(TIMES_USUAL) * max(own["longest_ms"], 1) else None


def is_left(context: RuleContext, cause: list[dict[str, Any]]) -> bool:
    """Whether groups have stopped at transactions that are unusually long for their ids."""
    return any(each["stopped"] and usual_transactions(context, each) for each in cause)


def why_open(context: RuleContext, cause: list[dict[str, Any]], has_died: bool) -> Verdict | None:
    """The verdict on whether a producer died or hangs in a transaction; None if the transaction is not longer than
    usual, or no group has stopped at it."""
    if not is_left(context, cause):
        return None
    left = next(each for each in cause if each["stopped"] and usual_transactions(context, each))
    own = usual_transactions(context, left) or {}
    name, last = shown(left["transactional_id"]), left["last_timestamp_ms"]
    usually = f"{counted(own['ended'], 'earlier transaction')} of this id took {length(own['longest_ms'])} at most"
    before = Evidence(
        f"{usually}, and this one has been open for {length(left['age_ms'])}",
        TRANSACTIONS,
        own["log_partition"],
        own["log_offset"],
        own["log_timestamp_ms"],
    )
    silent = (
        () if last is None else (Evidence(f"it last wrote to {left['topic']} at {moment(last)}", timestamp_ms=last),)
    )
    if has_died:
        return Verdict(
            f"The producer with the transactional id {name} died in the transaction, and was not started again, which "
            f"would have ended it: {usually}.",
            evidence_for=(before, *silent),
        )
    return Verdict(
        f"The producer with the transactional id {name} still runs, but hangs in the transaction.",
        evidence_for=(before,),
    )
