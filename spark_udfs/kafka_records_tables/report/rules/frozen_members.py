"""Members that freeze for longer than their session timeout, are removed and rejoin, as a cause of rebalances."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from kafka_records_tables.report.facts.departures import Client, Departure, Departures, departures
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, shown
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_CLIENTS = 3


def departures_of(context: RuleContext, case: dict[str, Any]) -> Departures:
    """The members that have left a group since its rebalances began."""
    known = context.once(_known_departures)
    key = case["group_id"], case["at_timestamp_ms_min"]
    if key not in known:
        known[key] = departures(context, *key)
    return known[key]


def _known_departures(_: RuleContext) -> dict[tuple[str, int], Departures]:
    return {}


def who_left(left: Departures, group: str) -> tuple[Actor, ...]:
    """The clients that left most often."""
    return tuple(
        Actor(f"left {counted(count, 'time')}", group, None, client, host)
        for (client, host), count in left.clients.most_common(5)
    )


def clients_shown(clients: Sequence[Client]) -> str:
    """Clients with their hosts, as words in a sentence."""
    first = [
        f"{shown(client)} at {host.removeprefix('/')}" if host else shown(client)
        for client, host in clients[:_MOST_CLIENTS]
    ]
    more = len(clients) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


def leavers(left: Departures) -> list[Client]:
    """The clients that left repeatedly. If some clients left several times, those that left once are left out."""
    counts = left.clients
    return [each for each, count in counts.most_common() if count > 1] or [*counts]


def weigh_freezes(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    """Judges whether a group's members freeze, from their commits and from the members that join after them."""
    left = departures_of(context, case)
    if not left.every:
        return None
    clients = leavers(left)
    limit = "the session timeout" if left.session_ms is None else f"the session timeout ({length(left.session_ms)})"
    who = clients_shown(clients)
    return Verdict(
        f"{who} {'freezes' if len(clients) == 1 else 'freeze'} for longer than {limit}, again and again (garbage "
        "collection, CPU throttling, an overloaded machine, the network): the coordinator removes such a member, and "
        "it joins again with a new member id.",
        evidence_for=tuple(filter(None, (always_the_same(left), silent_before(left)))),
        evidence_against=tuple(filter(None, (_not_back(left),))),
        refuted_by=left_by_itself(left) or _replaced_before(left),
        lacked=() if left.session_ms is not None else ("the session timeout of the members that left",),
        steps=(
            NextStep(
                f"Find out what stops {who}: pauses of garbage collection, CPU throttling, memory, the machine, the "
                "network; until then raise the session timeout above the longest pause"
            ),
        ),
    )


def weigh_silent_ends(left: Departures) -> str | None:
    """A statement about processes that ended without leaving the group; None if commits do not show that members timed
    out."""
    if not left.timed_out and not left.were_replaced_before:
        return None
    clients = leavers(left)
    is_one = len(clients) == 1
    when = "before its old member is removed" if left.were_replaced_before else "after its old member is removed"
    return (
        f"The process of {clients_shown(clients)} ends without leaving the group (killed, out of memory) and starts "
        f"again, {when}."
        if is_one
        else f"The processes of {clients_shown(clients)} end without leaving the group (killed, out of memory) and "
        "start again."
    )


def _at(each: Departure, what: str) -> Evidence:
    return Evidence(what, OFFSETS, each.life.log_partition, each.life.left_at, each.life.left_ms)


def always_the_same(left: Departures) -> Evidence | None:
    """The fact that the same clients left and rejoined repeatedly while other members stayed. If no member stayed, the
    cause may be the work that all share, or deployments."""
    back = sorted(each.back_ms for each in left.every if each.back_ms is not None)
    clients, counts = leavers(left), left.clients
    of_clients = sum(counts[each] for each in clients)
    is_same = counts[clients[0]] > 1 and 5 * of_clients >= 4 * len(left.every)
    if not left.stayed or not is_same or 2 * len(back) < len(left.every):
        return None
    soon = median(back)
    return _at(
        left.every[0],
        f"{of_clients} of {counted(len(left.every), 'departure')} {'is' if of_clients == 1 else 'are'} of "
        f"{clients_shown(clients)}, which joined again {length(soon)} after {'each' if len(clients) == 1 else 'them'}"
        f"; {counted(left.stayed, 'other member')} stayed",
    )


def silent_before(left: Departures) -> Evidence | None:
    """The fact that members had been without commits for so long that they may have timed out."""
    if not left.timed_out or left.usual is None:
        return None
    limit = "" if left.session_ms is None else f", and the session timeout is {length(left.session_ms)}"
    return _at(
        left.every[-1],
        f"half of the members that left had committed nothing for {length(median(left.silences))} or longer before "
        f"(usually they commit every {length(left.usual.median_ms)}){limit}",
    )


def left_by_itself(left: Departures) -> Evidence | None:
    """The fact that most members cannot have timed out."""
    if not left.left_by_themselves:
        return None
    limit = (
        f"the session timeout is {length(left.session_ms)}"
        if left.session_ms is not None
        else f"usually they commit every {length(left.usual.median_ms)}" if left.usual is not None else ""
    )
    return _at(
        left.every[-1],
        f"half of the members that left had committed, or joined, within {length(median(left.silences))} before: "
        f"{limit}",
    )


def _replaced_before(left: Departures) -> Evidence | None:
    if not left.were_replaced_before:
        return None
    early = [each for each in left.every if (each.back_ms or 0) < 0]
    return _at(
        early[-1],
        f"{counted(len(early), 'client')} joined again before the old member was removed, which a frozen client "
        "cannot do",
    )


def _not_back(left: Departures) -> Evidence | None:
    """The fact that most clients that left did not rejoin."""
    gone = [each for each in left.every if each.back is None]
    if 2 * len(gone) <= len(left.every):
        return None
    return _at(gone[-1], f"{len(gone)} of {counted(len(left.every), 'member')} that left are not known to be back")
