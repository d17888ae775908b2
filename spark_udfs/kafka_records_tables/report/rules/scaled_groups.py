"""Rebalances that happen because a group is scaled up and down again and again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.facts.departures import departures
from kafka_records_tables.report.facts.group_facts import member_lives
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Hypothesis, Verdict
from kafka_records_tables.report.rule_context import SECOND_MS, RuleContext, counted, shown
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
_EAGER: Final = ("range", "roundrobin", "sticky")
"""Assignors that take all partitions from all members in each rebalance (`RebalanceProtocol.EAGER`)."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a group has been scaled since a given time."""

    times: int
    """How often several members left together."""
    first: MemberLife
    stayed: int
    least: int
    most: int


def scaling_of(context: RuleContext, group: str, since_ms: int) -> Scaling | None:
    """The scaling of a group since a given time; None unless several members repeatedly left together, by themselves
    and while others stayed."""
    lives = member_lives(context, [group]).get(group, [])
    left = [each for each in lives if each.left_at is not None and (each.left_ms or 0) >= since_ms]
    first_ms = min((each.left_ms or 0 for each in left), default=0)
    stayed = sum((each.joined_ms or 0) <= first_ms and each.left_at is None for each in lives)
    together = [each for each in _together(left, lives) if len({life.name for life in each}) > 1]
    if not stayed or len(together) < _LEAST or sum(map(len, together)) < _MOST_OF * len(left):
        return None
    departed = departures(context, group, since_ms)
    if departed.timed_out or departed.may_have_timed_out:
        return None
    sizes = [
        size for each in left for size in (_size_at(lives, each.left_ms or 0), _size_at(lives, (each.left_ms or 0) - 1))
    ]
    return Scaling(len(together), together[0][0], stayed, min(sizes), max(sizes))


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


def _size_at(lives: Sequence[MemberLife], at_ms: int) -> int:
    return sum(each.was_there(at_ms) for each in lives)


def _weigh(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    group = case["group_id"]
    found = scaling_of(context, group, case["at_timestamp_ms_min"])
    if found is None:
        return None
    groups = context.rows_of_group("groups", group).to_pylist()
    eager = next((each["protocol"] for each in groups if each["protocol"] in _EAGER), None)
    several = Evidence(
        f"several members left at once, {counted(found.times, 'time')}, and as many joined again; "
        f"{counted(found.stayed, 'member')} stayed",
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
        is_certain=True,
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
    "applies if several members leave at once, three times or more, by themselves, while others stay",
    _weigh,
)
