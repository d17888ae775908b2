"""Why a group keeps rebalancing: the behaviour of its members shows which causes are possible."""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.report_parts import Evidence, NextStep, Rows
from kafka_records_tables.report.rule import Hypothesis, Question, Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, of_group
from kafka_records_tables.topics import OFFSETS

_SHORT_MS: Final = 10_000
"""If no member is left that shows its timeout, members that left sooner than this have most likely not polled too late:
max.poll.interval.ms is five minutes unless lowered."""


def of_joined(group: str, since_ms: int) -> tuple[str, ...]:
    """Conditions that select the members that joined a group after a given time."""
    return of_group(group, "event=member_joined", f"at_timestamp_ms>={since_ms}")


def _moves(context: RuleContext, case: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Events of the members of a group since its rebalances began, by the kind of event."""
    rows = context.table("timeline")
    rows = kept(
        rows,
        equal(rows, "group_id", case["group_id"]),
        equal(rows, "event", "member_joined", "member_left"),
        pc.greater_equal(rows["at_timestamp_ms"], case["at_timestamp_ms_min"]),
    )
    found: dict[str, list[dict[str, Any]]] = {"member_joined": [], "member_left": []}
    for each in rows.to_pylist():
        found[each["event"]].append(each)
    return found


def _as_evidence(events: list[dict[str, Any]], what: str) -> tuple[Evidence, ...]:
    """Evidence from the first and the last of some events; empty for none."""
    ends = events[:1] if len(events) < 2 else [events[0], events[-1]]
    names = ("the first", "the last")
    return tuple(
        Evidence(
            f"{name} of {counted(len(events), what)}: {each['member_id']}",
            OFFSETS,
            each["log_partition"],
            each["log_offset"],
            each["at_timestamp_ms"],
        )
        for name, each in zip(names, ends, strict=False)
    )


def _weigh_restarts(context: RuleContext, case: dict[str, Any]) -> Verdict:
    moves = _moves(context, case)
    left = _as_evidence(moves["member_left"], "departure")
    stays = _none_left(case, moves)
    return Verdict(
        "Its processes end and start again: members leave, and others with new ids take their places.",
        evidence_for=(*left, *_as_evidence(moves["member_joined"], "new member id")) if left else (),
        refuted_by=stays,
        steps=(
            NextStep("Find out from the logs of its processes why they end: an error in a record, memory, deployments"),
        ),
    )


def _weigh_late_polls(context: RuleContext, case: dict[str, Any]) -> Verdict:
    moves = _moves(context, case)
    left = _as_evidence(moves["member_left"], "departure")
    early, is_certain = _left_early(context, case, moves)
    return Verdict(
        "Its members poll too late, leave the group because of that and join it again with new ids.",
        evidence_for=left[:1],
        evidence_against=(early,) if early is not None and not is_certain else (),
        refuted_by=_none_left(case, moves) or (early if is_certain else None),
        steps=(NextStep("Raise max.poll.interval.ms, or lower max.poll.records"),),
    )


def _left_early(
    context: RuleContext, case: dict[str, Any], moves: dict[str, list[dict[str, Any]]]
) -> tuple[Evidence | None, bool]:
    """The fact that most members left before they could have polled too late, and whether it is certain: the rebalance
    timeout is max.poll.interval.ms, if a member is left that shows it."""
    joined = {each["member_id"]: each["at_timestamp_ms"] for each in moves["member_joined"]}
    stays = sorted(
        (each["at_timestamp_ms"] - joined[each["member_id"]], each["log_offset"], number, each)
        for number, each in enumerate(moves["member_left"])
        if each["member_id"] in joined
    )
    members = context.table("members")
    shortest = pc.min(kept(members, equal(members, "group_id", case["group_id"]))["rebalance_timeout_ms"]).as_py()
    if not stays:
        return None, False
    lasted, _, _, event = stays[len(stays) // 2]
    if lasted >= (_SHORT_MS if shortest is None else shortest):
        return None, False
    apart = "" if shortest is None else f", and may poll {length(shortest)} apart"
    fact = Evidence(
        f"half of the members left within {length(lasted)} of joining{apart}",
        OFFSETS,
        event["log_partition"],
        event["log_offset"],
        event["at_timestamp_ms"],
    )
    return fact, shortest is not None


def _weigh_changes(context: RuleContext, case: dict[str, Any]) -> Verdict:
    moves = _moves(context, case)
    left = _as_evidence(moves["member_left"], "departure")
    return Verdict(
        "Its members stay and ask for rebalances: their subscriptions or the partitions of their topics change, or "
        "clients join again with the same ids.",
        evidence_for=() if left else (Evidence("no member left while it rebalanced"),),
        refuted_by=left[0] if left else None,
        steps=(NextStep("Find out from the logs of its clients why they join again (the reason of JoinGroup)"),),
    )


def _none_left(case: dict[str, Any], moves: dict[str, list[dict[str, Any]]]) -> Evidence | None:
    """The fact that no member left while a group rebalanced."""
    if moves["member_left"]:
        return None
    return Evidence(f"no member left in {counted(case['log_offset_count'], 'rebalance')}")


CAUSES: Final = (
    Hypothesis(
        "processes_restart",
        "the processes of its members end and start again",
        "For: members leave, and new member ids join. Against: no member left.",
        _weigh_restarts,
    ),
    Hypothesis(
        "polls_too_late",
        "members poll later than max.poll.interval.ms, leave and join again",
        "For: members leave. Against: no member left, or half of them left sooner than their rebalance timeout.",
        _weigh_late_polls,
    ),
    Hypothesis(
        "members_join_again",
        "members stay and join again: subscriptions or numbers of partitions change, or an assignor asks for it",
        "For: no member left. Against: members left.",
        _weigh_changes,
    ),
)
QUESTIONS: Final = (
    Question(
        "processes_restart",
        "polls_too_late",
        "Were the processes of its members started again when members joined?",
        lambda context, case: context.command(
            Rows("timeline", of_joined(case["group_id"], case["at_timestamp_ms_min"]))
        ),
    ),
)
