"""Rebalances that happen because a group is scaled up and down again and again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept, numbers
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, member_lives
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Hypothesis, Verdict
from kafka_records_tables.report.rule_context import SECOND_MS, RuleContext, counted, length, shown
from kafka_records_tables.report.rules.frozen_members import departures_of
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.facts.group_facts import MemberLife

_AT_ONCE_MS: Final = SECOND_MS
"""Members leave together if each leaves within this time after the previous one, and nobody joins in between."""
_LEAST: Final = 3
"""The minimum number of times at which several members left together."""
_MOST_OF: Final = 0.6
"""The minimum share of departures in which several members left together."""
_AWAY_MS: Final = 5 * SECOND_MS
"""The minimum time for which a group is smaller after it is scaled down. Processes that fail are started again sooner,
at least the first times."""
_EAGER: Final = ("range", "roundrobin", "sticky")
"""Assignors that take all partitions from all members in each rebalance (`RebalanceProtocol.EAGER`)."""
_Client = tuple[str, str | None]
"""The name of a member, and its host."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a group has been scaled since a given time."""

    times: int
    """How often several members left together."""
    smaller: int
    """How often the group was then smaller for at least `_AWAY_MS`."""
    first: MemberLife
    stayed: int
    least: int
    most: int


def may_be_scaled(context: RuleContext, group: str) -> bool:
    """Whether members of a group left together often enough for `scaling_of` to look at them."""
    return group in context.once(_lives)


def scaling_of(context: RuleContext, group: str, since_ms: int) -> Scaling | None:
    """The scaling of a group since a given time; None unless members of several processes repeatedly left together, in
    order and while others stayed, and the group was smaller for a while. The members of one process that ends and
    starts again also leave together, and so do processes that fail at once, but these are back within seconds."""
    known = context.once(_known)
    key = group, int(since_ms)
    if key not in known:
        known[key] = _scaling(context, *key) if may_be_scaled(context, group) else None
    return known[key]


def _known(_: RuleContext) -> dict[tuple[str, int], Scaling | None]:
    return {}


def _lives(context: RuleContext) -> dict[str, list[MemberLife]]:
    """The members of the groups that members left together `_LEAST` times or more: at most MOST_GROUPS, those with the
    most such times first."""
    rows = context.table("timeline")
    rows = kept(rows, equal(rows, "event", "member_left"), pc.is_valid(rows["at_timestamp_ms"]))
    rows = rows.select(["group_id", "at_timestamp_ms"])
    rows = rows.sort_by([("group_id", "ascending"), ("at_timestamp_ms", "ascending")])
    if not rows.num_rows:
        return {}
    groups = pc.rank(rows["group_id"], tiebreaker="min").to_numpy()
    is_next = (groups[1:] == groups[:-1]) & (np.diff(numbers(rows, "at_timestamp_ms")) <= _AT_ONCE_MS)
    # The second of each list of departures that follow each other closely.
    is_second = np.append(False, is_next & ~np.append(False, is_next[:-1]))
    found = grouped(rows.filter(pa.array(is_second)), ["group_id"], [("at_timestamp_ms", "count")])
    found = kept(found, pc.greater_equal(found["at_timestamp_ms_count"], _LEAST))
    found = found.sort_by([("at_timestamp_ms_count", "descending")]).slice(0, MOST_GROUPS)
    return member_lives(context, found["group_id"].to_pylist())


def _scaling(context: RuleContext, group: str, since_ms: int) -> Scaling | None:
    lives = context.once(_lives)[group]
    left = [each for each in lives if each.left_at is not None and (each.left_ms or 0) >= since_ms]
    first_ms = min((each.left_ms or 0 for each in left), default=0)
    stayed = sum((each.joined_ms or 0) <= first_ms and each.left_at is None for each in lives)
    every = _together(left, lives)
    if not stayed or not _is_most([each for each in every if len(each) > 1], left):
        return None
    together = _of_several_processes(every, lives)
    if not _is_most(together, left):
        return None
    sizes = _Sizes(lives)
    known = [each for each in together if (each[-1].left_ms or 0) + _AWAY_MS <= context.at_ms]
    smaller = sum(map(sizes.is_smaller_after, known))
    if not known or 2 * smaller < len(known):
        return None
    departed = departures_of(context, {"group_id": group, "at_timestamp_ms_min": since_ms})
    if not departed.left_by_themselves:
        return None
    seen = [sizes.at(at_ms) for each in left for at_ms in (each.left_ms or 0, (each.left_ms or 0) - 1)]
    return Scaling(len(together), smaller, together[0][0], stayed, min(seen), max(seen))


def _is_most(together: Sequence[list[MemberLife]], left: Sequence[MemberLife]) -> bool:
    return len(together) >= _LEAST and sum(map(len, together)) >= _MOST_OF * len(left)


class _Sizes:
    """The number of members of a group over time."""

    def __init__(self, lives: Sequence[MemberLife]) -> None:
        self._joined = sorted(each.joined_ms or 0 for each in lives)
        self._left = sorted(each.left_ms or 0 for each in lives if each.left_at is not None)

    def at(self, at_ms: int) -> int:
        return bisect_right(self._joined, at_ms) - bisect_right(self._left, at_ms)

    def is_smaller_after(self, together: Sequence[MemberLife]) -> bool:
        """Whether the group had fewer members than before for at least `_AWAY_MS` after some of them left."""
        first_ms, last_ms = together[0].left_ms or 0, together[-1].left_ms or 0
        soon = self._joined[bisect_left(self._joined, first_ms) : bisect_left(self._joined, last_ms + _AWAY_MS)]
        before = self.at(first_ms - 1)
        return all(self.at(each) < before for each in soon)


def _of_several_processes(together: Sequence[list[MemberLife]], lives: Sequence[MemberLife]) -> list[list[MemberLife]]:
    """The departures of members that are not known to be of one process: they have several hosts, or one of them once
    left without another."""
    coming = sorted(lives, key=lambda life: life.joined_ms or 0)
    going = sorted((each for each in lives if each.left_at is not None), key=lambda life: life.left_ms or 0)
    there: Counter[_Client] = Counter()
    joined = gone = 0
    apart: set[tuple[frozenset[_Client], frozenset[_Client]]] = set()
    for each in together:
        until = each[-1].left_ms or 0
        while joined < len(coming) and (coming[joined].joined_ms or 0) < (each[0].left_ms or 0):
            there[_client(coming[joined])] += 1
            joined += 1
        while gone < len(going) and (going[gone].left_ms or 0) <= until + _AT_ONCE_MS:
            there[_client(going[gone])] -= 1
            gone += 1
        apart.add((frozenset(map(_client, each)), frozenset(client for client, count in there.items() if count > 0)))
    several: dict[frozenset[_Client], bool] = {}
    for clients, _ in apart:
        hosts = {host for _, host in clients if host is not None}
        several[clients] = len(hosts) > 1 or any(clients & left and clients & stayed for left, stayed in apart)
    return [each for each in together if len(each) > 1 and several[frozenset(map(_client, each))]]


def _client(life: MemberLife) -> _Client:
    return life.name, life.host


def _together(left: Sequence[MemberLife], lives: Sequence[MemberLife]) -> list[list[MemberLife]]:
    """Departures, grouped into lists of those that follow each other closely. Members that fail on a record one after
    another also leave within seconds, but each had got a partition from the previous one."""
    joined = sorted(each.joined_ms or 0 for each in lives)
    found: list[list[MemberLife]] = []
    for each in sorted(left, key=lambda life: life.left_ms or 0):
        before = found[-1][-1] if found else None
        if before is not None and _is_next(before, each, joined):
            found[-1].append(each)
        else:
            found.append([each])
    return found


def _is_next(before: MemberLife, after: MemberLife, joined: Sequence[int]) -> bool:
    since, until = before.left_ms or 0, after.left_ms or 0
    took_over = any(after.gained_at.get(place, -1) > (before.left_at or 0) for place in before.places)
    return until - since <= _AT_ONCE_MS and not took_over and bisect_right(joined, since) == bisect_left(joined, until)


def _weigh(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    group = case["group_id"]
    found = scaling_of(context, group, case["at_timestamp_ms_min"])
    if found is None:
        return None
    groups = context.rows_of_group("groups", group).to_pylist()
    eager = next((each["protocol"] for each in groups if each["protocol"] in _EAGER), None)
    several = Evidence(
        f"several members left at once, {counted(found.times, 'time')}, and after {found.smaller} of these the group "
        f"was smaller for {length(_AWAY_MS)} or longer; {counted(found.stayed, 'member')} stayed",
        OFFSETS,
        found.first.log_partition,
        found.first.left_at,
        found.first.left_ms,
    )
    stops = Evidence(f"its assignor ({eager}) takes all partitions from all members each time") if eager else None
    return Verdict(
        f"{shown(group)} is scaled up and down again and again, between {found.least} and {found.most} members, by an "
        "autoscaler or by hand: they join and leave in order.",
        evidence_for=(several, stops) if stops is not None else (several,),
        steps=(
            NextStep(
                f"Fix the number of processes of {shown(group)} (switch the autoscaler off) until the backlog is gone. "
                "Then let it wait for minutes before it scales down"
                + (", and use the cooperative-sticky assignor, with which most members go on working" if eager else "")
            ),
        ),
    )


CAUSE: Final = Hypothesis(
    "scaled_again_and_again",
    "the group is scaled up and down again and again",
    "applies if members of several processes leave at once, three times or more, by themselves, and stay away for "
    "seconds, while others stay",
    _weigh,
)
