"""Determines whether the members that had a partition one after another belong to several processes."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.facts.departures import Departures
    from kafka_records_tables.report.facts.group_facts import MemberLife, Place

_LEAST: Final = 2
"""The minimum number of members that must have taken over a partition from another process. One may have been restarted
by chance."""
_FORMER: Final = 5
"""The number of previous members with which a member is compared."""
Process = tuple[str, str | None]
"""Group instance id or client id, and host."""


def several_failed(
    left: Departures, tries: Sequence[MemberLife], lives: Sequence[MemberLife], places: Sequence[Place]
) -> bool:
    """Whether records show that several processes had the first of some partitions until they left, and that few
    members left without having any of the partitions. `tries` are the members that had the partition and left; `lives`
    are all members of the group.

    A member belongs to another process than an earlier member if it took over the partition while that process was down
    and came back later, or if it joined while that process was alive. Otherwise it may be the same process,
    restarted."""
    place = places[0]
    had = [each for each in tries if each.left_ms is not None and each.lost_ms.get(place, each.left_ms) >= each.left_ms]
    without = sum(not each.life.places.intersection(places) for each in left.every)
    if 2 * without > len(had):
        return False
    joined: dict[Process, list[int]] = {}
    for each in sorted(lives, key=lambda each: each.joined_at):
        joined.setdefault(_process(each), []).append(each.joined_at)
    silences = {(each.life.member_id, each.life.joined_at): each.silent_ms for each in left.every}
    had.sort(key=_left_at)
    took_over = 0
    for each in had:
        gained = each.gained_at.get(place)
        if gained is None:
            continue
        before = bisect_right(had, gained, key=_left_at)
        took_over += any(
            one is not each
            and (
                _came_back(joined[_process(one)], one.joined_at, gained)
                or (each.joined_ms or 0) < _alive_until(one, silences.get((one.member_id, one.joined_at)))
            )
            for one in had[max(before - _FORMER, 0) : before]
        )
        if took_over >= _LEAST:
            return True
    return False


def _came_back(joined: Sequence[int], before: int, after: int) -> bool:
    """Whether the next member of a process, after the one that joined at `before`, joined after the offset `after`. A
    killed member may stay in the group although its process is already back."""
    at = bisect_right(joined, before)
    return at < len(joined) and joined[at] > after


def _left_at(life: MemberLife) -> int:
    return life.left_at or 0


def _process(life: MemberLife) -> Process:
    return life.instance_id or life.name, life.host


def _alive_until(life: MemberLife, silent_ms: int | None) -> int:
    """The last time at which a process is known to have run: when its member last committed or joined. The session
    timeout may have removed the member."""
    return (life.joined_ms or 0) if silent_ms is None or life.left_ms is None else life.left_ms - silent_ms
