"""Finds groups whose members have begun to leave soon after joining, if it is unknown whether there are records to
read.

With known log ends, rules distinguish two cases: members fail on a record (`crash_loop`), or a job has read all
records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.facts.group_facts import Place, commit_spans, groups_with_departures, member_lives
from kafka_records_tables.report.facts.known_logs import without_end

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import MemberLife, Span
    from kafka_records_tables.report.rule_context import RuleContext

_TIMES: Final = 5
"""The factor by which members must leave more often than before. Members of a job leave equally often with and without
work."""


@dataclass(frozen=True, slots=True)
class ShortStay:
    """A partition with an offset that does not move while members that have it come and go."""

    place: Place
    span: Span
    """The last commit."""
    left: tuple[MemberLife, ...]
    """The members that have had it since then, and left."""


def short_stays(context: RuleContext) -> dict[str, list[ShortStay]]:
    """Such partitions by group, the one with the most members first."""
    groups = groups_with_departures(context, context.limit("crash_loop.attempts"))
    unknown = {each: places for each in groups if (places := without_end(context, [each]))}
    spans, lives = commit_spans(context, tuple(unknown)), member_lives(context, unknown)
    found = {}
    for group, places in unknown.items():
        every = (_short_stay(context, each, spans.get((group, *each)), lives.get(group, [])) for each in places)
        stays = sorted((each for each in every if each is not None), key=lambda each: -len(each.left))
        if stays:
            found[group] = stays
    return found


def _short_stay(
    context: RuleContext, place: Place, spans: list[Span] | None, lives: list[MemberLife]
) -> ShortStay | None:
    if not spans or spans[-1].to_ms is not None or spans[-1].from_ms is None:
        return None
    since = spans[-1].from_ms
    had = [each for each in lives if each.left_ms is not None and place in each.places]
    left = tuple(each for each in had if (each.left_ms or 0) >= since)
    if len(left) < context.limit("crash_loop.attempts"):
        return None
    first = min(each.joined_ms if each.joined_ms is not None else since for each in lives)
    lasts = max(max(each.left_ms or 0 for each in left) - since, 1)
    # Count one more member than have left, because the next one might have left at once.
    often = len(left) * (since - first) >= _TIMES * (len(had) - len(left) + 1) * lasts
    return ShortStay(place, spans[-1], left) if often else None
