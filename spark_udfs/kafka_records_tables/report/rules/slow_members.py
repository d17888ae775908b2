"""Members that became slow while others in their group keep up, as a cause of a growing backlog, and whether more
members help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafka_records_tables.report.facts.group_facts import (
    LogEnds,
    Place,
    Span,
    commit_spans,
    committed_at,
)
from kafka_records_tables.report.facts.member_names import member_names
from kafka_records_tables.report.incident_rule import PossibleCause
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, listed, partitions_shown

NAME: Final = "slow_member"
CAUSE: Final = PossibleCause(
    NAME,
    "one member, or a few, became slow, while others keep up",
    "for: the others read more, although their partitions do not get fewer records",
)
_FEW: Final = 5
"""A partition keeps up if its unread records are below this share of the mean."""
_ALIKE: Final = 1.5
"""A member has as much to read as others if it is at most this many times what they read."""
_SLOW: Final = 0.8
"""A member is slow if it reads less than this share of what others read and of what is written."""
_ROSE: Final = 1.2
"""Writes have increased if they are more than this many times the earlier ones."""
_EARLY: Final = 0.25
"""The members with the partitions must not have changed after this share of the time."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time in which a backlog grew."""

    since_ms: int
    until_ms: int
    from_ms: int | None
    """The start of the time in which the group is known to have kept up; None if there is none."""


@dataclass(frozen=True, slots=True)
class _Pace:
    """Records per second that a member reads, and that are written to its partitions."""

    places: tuple[Place, ...]
    reads: float
    writes: float | None


def places_behind(rows: Sequence[Mapping[str, Any]], waiting: int) -> tuple[tuple[int, ...], set[str]]:
    """The partitions in which nearly all unread records of a group wait (rows of `lag`), and the ids of the members
    that have them; empty if the group is behind in all partitions."""
    mean = waiting / max(len(rows), 1)
    behind = [each for each in rows if (each["lag"] or 0) * _FEW >= mean]
    rest = waiting - sum(each["lag"] or 0 for each in behind)
    if len(behind) == len(rows) or rest * _FEW > mean:
        return (), set()
    owners = {each["member_id"] for each in behind if each["member_id"]}
    return tuple(sorted(each["partition"] for each in behind)), owners


def weigh_slow_members(
    context: RuleContext,
    group: str,
    lags: Sequence[Mapping[str, Any]],
    behind: tuple[int, ...],
    window: Window,
    ends: LogEnds,
) -> Verdict | None:
    """Judges whether only some members are slow. `lags` are the group's rows of `lag` for one topic, and `behind` the
    partitions in which records wait. None if all members are slow, or if these have more to read than others."""
    places_of: dict[str, list[Place]] = {}
    for each in lags:
        places_of.setdefault(each["member_id"] or "", []).append((each["topic"], each["partition"]))
    slow = {member for member, places in places_of.items() if any(number in behind for _, number in places)}
    others = places_of.keys() - slow
    if "" in places_of or not slow or len(slow) > len(others) or _have_changed(context, group, slow, window):
        return None
    spans = {key[1:]: found for key, found in commit_spans(context, (group,)).items() if key[0] == group}
    time = window.since_ms, window.until_ms
    paces = {member: _pace(places, spans, ends, *time) for member, places in places_of.items()}
    fast = {member: pace for member in others if (pace := paces[member]) is not None and pace.reads > 0}
    if not fast:
        return None
    most = max(each.reads for each in fast.values())
    before: list[_Pace] = []
    for member in slow:
        pace = paces[member]
        if pace is None or pace.writes is None or pace.writes > _ALIKE * most:
            return None
        if pace.reads >= _SLOW * min(most, pace.writes):
            return None
        past = None
        if window.from_ms is not None:
            past = _past_pace(places_of[member], spans, ends, window.from_ms, window.since_ms)
        if past is not None and past.writes is not None:
            if pace.writes > _ROSE * past.writes or pace.reads >= _SLOW * past.reads:
                return None
            before.append(past)
    return _verdict(context, group, {member: paces[member] for member in slow}, fast, before)


def what_helps(
    members: Sequence[Mapping[str, Any]], lags: Sequence[Mapping[str, Any]], behind: tuple[int, ...], owners: set[str]
) -> NextStep:
    """The step that says whether more members help. `behind` are the partitions in which records wait, unless they wait
    in all; `owners` are the members that have them."""
    room = len({each["partition"] for each in lags}) - len(members)
    has = Counter(each["member_id"] for each in lags)
    is_own = bool(behind and owners) and all(has[each] == 1 for each in owners)
    if room > 0 and not is_own:
        return NextStep(
            f"Add members: {counted(len(members), 'member')} {'reads' if len(members) == 1 else 'read'}"
            f" {counted(len(lags), 'partition')}, so up to {room} more help"
        )
    faster = "make the work for each record faster"
    spreads = f"spread what is written to {partitions_shown(behind)} over all partitions (by their keys), or {faster}"
    why = (
        f"Each of {partitions_shown(behind)} already has a member of its own"
        if room > 0
        else "There is already a member for each partition"
    )
    return NextStep(f"{why}, so more members do not help: {spreads if behind else faster}")


def _have_changed(context: RuleContext, group: str, members: set[str], window: Window) -> bool:
    """Whether members gained or lost partitions during a time span, or joined in it."""
    latest = window.since_ms + _EARLY * (window.until_ms - window.since_ms)
    rows = context.rows_of_group("timeline", group).select(["event", "member_id", "at_timestamp_ms"]).to_pylist()
    return any(
        each["event"] in _CHANGES and each["member_id"] in members and (each["at_timestamp_ms"] or 0) > latest
        for each in rows
    )


_CHANGES: Final = ("member_joined", "member_replaced", "assignment_changed")


def _pace(
    places: Sequence[Place], spans: Mapping[Any, list[Span]], ends: LogEnds, since_ms: int, until_ms: int
) -> _Pace | None:
    """How fast partitions were read and written; None if they have no earlier commits."""
    seconds = max(until_ms - since_ms, 1) / 1000
    reads = writes = 0
    is_known = True
    for place in places:
        first, last = (committed_at(spans.get(place, []), at) for at in (since_ms, until_ms))
        if first is None or last is None:
            return None
        reads += last - first
        began, ended = ends.end_at(place, since_ms), ends.end_at(place, until_ms)
        is_known = is_known and began is not None and ended is not None
        writes += (ended or 0) - (began or 0)
    return _Pace(tuple(sorted(places)), reads / seconds, writes / seconds if is_known else None)


def _past_pace(
    places: Sequence[Place], spans: Mapping[Any, list[Span]], ends: LogEnds, from_ms: int, until_ms: int
) -> _Pace | None:
    """Like `_pace`, starting at the first commits and known log ends; None if these are in the second half of the
    time."""
    firsts = [of_place[0].from_ms or 0 for place in places if (of_place := spans.get(place))]
    known = [ends.known_from(place) or 0 for place in places]
    began = max([from_ms, *firsts, *known])
    return None if 2 * began > from_ms + until_ms else _pace(places, spans, ends, began, until_ms)


def _verdict(
    context: RuleContext,
    group: str,
    slow: Mapping[str, _Pace | None],
    fast: Mapping[str, _Pace],
    before: Sequence[_Pace],
) -> Verdict:
    members = context.rows_of_group("members", group).to_pylist()
    names = member_names(members)
    hosts = {each["member_id"]: each["client_host"] for each in members}
    known = {member: pace for member, pace in slow.items() if pace is not None}
    who = listed([names.get(each, each) for each in known])
    reads = sum(each.reads for each in known.values())
    writes = sum(each.writes or 0 for each in known.values())
    numbers = [number for each in known.values() for _, number in each.places]
    is_one = len(known) == 1
    was = sum(each.reads for each in before)
    best = max(fast, key=lambda each: fast[each].reads)
    other = fast[best]
    keeps_up = (
        f"{listed([names.get(best, best)])} reads {other.reads:.1f} records per second of "
        f"{partitions_shown([number for _, number in other.places])}"
    )
    has_before = len(before) == len(known)
    own = Evidence(
        f"{who} {'reads' if is_one else 'read'} {reads:.1f} records per second of {partitions_shown(numbers)}, to "
        f"which {writes:.1f} are written" + (f", and read {was:.1f} before" if has_before else "")
    )
    at = sorted({(hosts.get(each) or "").removeprefix("/") for each in known} - {""})
    where = f" ({', '.join(at[:3])})" if at else ""
    became = "became" if has_before else ("is" if is_one else "are")
    return Verdict(
        f"Only {who} {became} slow: {'it reads' if is_one else 'they read'} {reads:.1f} records per second of "
        f"{partitions_shown(numbers)}, to which {writes:.1f} are written"
        + (f", and read {was:.1f} before" if has_before else "")
        + f". {counted(len(fast), 'other member')} {'keeps' if len(fast) == 1 else 'keep'} up: {keeps_up}.",
        evidence_for=(own, Evidence(keeps_up)),
        lacked=() if has_before else ("how fast its members were before the backlog grew",),
        steps=(
            NextStep(
                f"Look at the host or pod of {who}{where}: processor, memory, disk, network, and what its work waits "
                f"for. Restart {'it' if is_one else 'them'} elsewhere. More members do not make "
                f"{'it' if is_one else 'them'} faster: partitions move to others only when the assignment changes"
            ),
        ),
    )
