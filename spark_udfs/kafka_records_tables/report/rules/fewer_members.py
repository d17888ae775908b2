"""Judges whether a group reads more slowly because it has fewer members than when it kept up."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.report.facts.group_facts import member_lives, names_of
from kafka_records_tables.report.incident_rule import PossibleCause
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import MINUTE_MS, RuleContext, counted, listed, moment, shown
from kafka_records_tables.topics import OFFSETS

NAME: Final = "fewer_members"
CAUSE: Final = PossibleCause(
    NAME,
    "the group has fewer members than when it kept up",
    "for: members left when the backlog began to grow",
)
_AS_FAST: Final = 0.8
"""A member reads as fast as before if it reads at least this share of what it read then."""


def weigh_members(
    context: RuleContext, group: str, kept_up: tuple[int, int], until_ms: int, rates: tuple[float, float]
) -> Verdict | None:
    """Judges whether members that left are missing.

    `kept_up` is the time in which the group kept up; `until_ms` is when its backlog stopped growing; `rates` are the
    records per second that it read then and reads now. None if it does not have fewer members.
    """
    lives = member_lives(context, [group]).get(group, [])
    from_ms, since_ms = kept_up
    middle = (from_ms + since_ms) // 2
    before, now = sum(each.was_there(middle) for each in lives), sum(each.left_at is None for each in lives)
    if not 0 < now < before:
        return None
    left = [each for each in lives if each.left_ms is not None and since_ms - MINUTE_MS <= each.left_ms <= until_ms]
    # Clients that came back, even under another member id, are not missing.
    there = {each.name for each in lives if each.left_at is None}
    gone = sorted((each for each in left if each.name not in there), key=lambda each: each.left_ms or 0)
    if not gone:
        return None
    names = listed(names_of(gone))
    is_as_fast = rates[1] / now >= _AS_FAST * rates[0] / before
    speed = Evidence(
        f"for each member, {rates[0] / before:.1f} records per second were read before, and {rates[1] / now:.1f} since"
    )
    return Verdict(
        f"{shown(group)} has {counted(now, 'member')}, and had {before} while it kept up: {names} left, the last of "
        f"them at {moment(max(each.left_ms or 0 for each in gone))}, and no other member took their places.",
        evidence_for=(
            *(
                Evidence(f"{each.name} left", OFFSETS, each.log_partition, each.left_at, each.left_ms)
                for each in gone[:2]
            ),
            *((speed,) if is_as_fast else ()),
        ),
        evidence_against=() if is_as_fast else (speed,),
        is_certain=is_as_fast,
        steps=(
            NextStep(
                f"Find out why {names} left, and whether instances that should replace them run. If they do, look for "
                "InconsistentGroupProtocolException or an authorization error in their logs: brokers keep no record of "
                "a member that they reject"
            ),
            NextStep(f"Start as many members again as before ({before})"),
        ),
    )
