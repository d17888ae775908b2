"""Why a group keeps rebalancing. The behaviour of its members shows which causes are possible."""

from __future__ import annotations

from statistics import median
from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.deleted_topics import deleted_topics, shares_words
from kafka_records_tables.report.facts.group_facts import member_lives, stopped_quickly
from kafka_records_tables.report.facts.known_logs import ends_of_logs
from kafka_records_tables.report.facts.short_stays import ShortStay, short_stays
from kafka_records_tables.report.report_parts import Evidence, NextStep, Rows
from kafka_records_tables.report.rule import Hypothesis, Question, Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, listed, of_group
from kafka_records_tables.report.rules.frozen_members import departures_of, weigh_freezes, weigh_silent_ends
from kafka_records_tables.report.rules.scaled_groups import CAUSE as SCALED
from kafka_records_tables.report.rules.stuck_partitions import poll_limits, polls_too_late
from kafka_records_tables.topics import OFFSETS

_MOST_PLACES: Final = 4
"""The maximum number of partitions to name in a cause."""
_SHORT_MS: Final = 10_000
"""If no remaining member shows its timeout, members that left sooner than this most likely did not poll too late:
max.poll.interval.ms is five minutes by default."""


def of_joined(group: str, since_ms: int) -> tuple[str, ...]:
    """Conditions that select the members that joined a group after a given time."""
    return of_group(group, "event=member_joined", f"at_timestamp_ms>={since_ms}")


def _moves(context: RuleContext, case: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Events of a group's members since its rebalances began, by kind."""
    rows = context.rows_of_group("timeline", case["group_id"])
    rows = kept(
        rows,
        equal(rows, "event", "member_joined", "member_left"),
        pc.greater_equal(rows["at_timestamp_ms"], case["at_timestamp_ms_min"]),
    )
    found: dict[str, list[dict[str, Any]]] = {"member_joined": [], "member_left": []}
    for each in rows.to_pylist():
        found[each["event"]].append(each)
    return found


def _as_evidence(events: list[dict[str, Any]], what: str) -> tuple[Evidence, ...]:
    """Evidence from the first and the last of some events; empty if there are none."""
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


def stays_words(stay: ShortStay) -> str:
    """A sentence about the members that had a partition and left."""
    times = [lasted for each in stay.left if (lasted := stopped_quickly(each)) is not None]
    soon = f", half of them within {length(median(times))} of joining" if times else ""
    topic, number = stay.place
    return (
        f" {counted(len(stay.left), 'member')} had {topic}-{number} and left{soon}, while its offset stayed at "
        f"{stay.span.offset}; before, members left less than a fifth as often."
    )


def whole_report(context: RuleContext, group: str, stays: list[ShortStay]) -> tuple[NextStep, ...]:
    """The step that shows whether there are records to read, for a group whose members stay only briefly."""
    if not stays:
        return ()
    words = option("--group", group)
    if context.request.as_of:
        what = "Make a report without --as-of, which can tell whether there is something to read"
        return (NextStep(what, context.reading_command("report", *words)),)
    what = (
        "Make a report that can tell whether there is something to read: of the whole data directory of each "
        "broker that has these logs, or of the running brokers"
    )
    return (context.ask_records(what, "report", *words),)


def _weigh_failure(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    stays = context.once(short_stays).get(case["group_id"])
    if not stays:
        return None
    places = [f"{each.span.offset} of {each.place[0]}-{each.place[1]}" for each in stays[:_MOST_PLACES]]
    more = f" (and {len(stays) - _MOST_PLACES} more)" if len(stays) > _MOST_PLACES else ""
    last = stays[0].span
    return Verdict(
        f"Its members fail on a record: at offset {' or '.join(places)}{more}, or soon after it. These offsets do not "
        "move.",
        evidence_for=(
            Evidence(
                f"the offset of {stays[0].place[0]}-{stays[0].place[1]} stays {last.offset} while "
                f"{counted(len(stays[0].left), 'member')} had the partition and left",
                OFFSETS,
                last.log_partition,
                last.log_offset,
                last.from_ms,
            ),
        ),
        lacked=(ends_of_logs(each.place for each in stays),),
    )


def _weigh_no_work(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    stays = context.once(short_stays).get(case["group_id"])
    if not stays:
        return None
    return Verdict(
        "Its members have nothing left to read, so they end and are started again, as a job is.",
        lacked=(ends_of_logs(each.place for each in stays),),
    )


def _first_stuck_record(context: RuleContext, case: dict[str, Any]) -> str | None:
    """The command that prints the record at the first offset that does not move."""
    stays = context.once(short_stays).get(case["group_id"])
    if not stays:
        return None
    topic, number = stays[0].place
    words = ("--partition", str(number), "--offset", str(stays[0].span.offset), "--max-messages", "1")
    return context.ask_kafka("", "kafka-console-consumer", *option("--topic", topic), *words).command


def _weigh_restarts(context: RuleContext, case: dict[str, Any]) -> Verdict:
    moves = _moves(context, case)
    left = _as_evidence(moves["member_left"], "departure")
    stays = _none_left(case, moves)
    ends = weigh_silent_ends(departures_of(context, case))
    slow = _at_poll_limit(context, case, moves)
    return Verdict(
        ends or "Its processes end and start again: members leave, and others with new ids take their places.",
        evidence_for=(*left, *_as_evidence(moves["member_joined"], "new member id")) if left else (),
        evidence_against=() if slow is None else (slow,),
        refuted_by=stays,
        steps=(
            NextStep("Find out from the logs of its processes why they end: an error in a record, memory, deployments"),
        ),
    )


def _weigh_late_polls(context: RuleContext, case: dict[str, Any]) -> Verdict:
    moves = _moves(context, case)
    left = _as_evidence(moves["member_left"], "departure")
    early, is_certain = _left_early(context, case, moves)
    slow = _at_poll_limit(context, case, moves)
    return Verdict(
        "Its members poll too late, leave the group because of that and join it again with new ids.",
        evidence_for=left[:1] if slow is None else (slow, *left[:1]),
        evidence_against=(early,) if early is not None and not is_certain else (),
        refuted_by=_none_left(case, moves) or (early if is_certain else None),
        steps=(NextStep("Raise max.poll.interval.ms, or lower max.poll.records"),),
    )


def _stays(moves: dict[str, list[dict[str, Any]]]) -> list[tuple[int, int, int, dict[str, Any]]]:
    """The departures of members whose joining is known, each preceded by how long the member stayed in milliseconds,
    sorted."""
    joined = {each["member_id"]: each["at_timestamp_ms"] for each in moves["member_joined"]}
    return sorted(
        (each["at_timestamp_ms"] - joined[each["member_id"]], each["log_offset"], number, each)
        for number, each in enumerate(moves["member_left"])
        if each["member_id"] in joined
    )


def _limits(context: RuleContext, case: dict[str, Any], moves: dict[str, list[dict[str, Any]]]) -> list[int]:
    """The max.poll.interval.ms values of the members that left."""
    left = {each["member_id"] for each in moves["member_left"]}
    lives = member_lives(context, [case["group_id"]]).get(case["group_id"], [])
    return poll_limits(each for each in lives if each.member_id in left)


def _at_poll_limit(
    context: RuleContext, case: dict[str, Any], moves: dict[str, list[dict[str, Any]]]
) -> Evidence | None:
    """The fact that most members left when max.poll.interval.ms had passed."""
    stays = _stays(moves)
    shows = polls_too_late(_limits(context, case, moves), [each[0] for each in stays])
    if not shows:
        return None
    event = stays[len(stays) // 2][3]
    return Evidence(shows, OFFSETS, event["log_partition"], event["log_offset"], event["at_timestamp_ms"])


def _left_early(
    context: RuleContext, case: dict[str, Any], moves: dict[str, list[dict[str, Any]]]
) -> tuple[Evidence | None, bool]:
    """The fact that most members left before they could have polled too late, and whether it is certain. If a record
    shows the rebalance timeout, that is max.poll.interval.ms."""
    stays = _stays(moves)
    shortest = min(_limits(context, case, moves), default=None)
    if not stays:
        return None, False
    lasted, _, _, event = stays[len(stays) // 2]
    if lasted >= (_SHORT_MS if shortest is None else shortest):
        return None, False
    apart = "" if shortest is None else f", and may let {length(shortest)} pass between two polls"
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


def _weigh_deletion(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    times = sorted(case["at_timestamp_ms_list"])
    found = deleted_topics(context, case["group_id"], times)
    if not found:
        return None
    topics = list(dict.fromkeys(each.topic for each in found))
    return Verdict(
        f"The deletion of {listed(topics)}, which its members consumed: clients of librdkafka, sarama and kafka-python "
        "join again whenever the metadata of their topics changes, each when it notices.",
        evidence_for=(found[-1].evidence, Evidence(shares_words(found[-1], times))),
        steps=(
            NextStep(
                f"Find out who deleted {listed(topics)}, and take it out of the subscription of the application if "
                "the deletion was intended"
            ),
        ),
    )


def _none_left(case: dict[str, Any], moves: dict[str, list[dict[str, Any]]]) -> Evidence | None:
    """The fact that no member left while a group rebalanced."""
    if moves["member_left"]:
        return None
    return Evidence(f"no member left in {counted(case['log_offset_count'], 'rebalance')}")


CAUSES: Final = (
    Hypothesis(
        "topic_deleted",
        "a topic of its members was deleted, and clients join again when they notice",
        "applies if that was within ten minutes before most rebalances",
        _weigh_deletion,
    ),
    SCALED,
    Hypothesis(
        "fails_on_record",
        "its members fail on a record, leave and join again, as in crash_loop",
        "",
        _weigh_failure,
    ),
    Hypothesis(
        "members_freeze",
        "members freeze for longer than their session timeout, are removed and join again",
        "for: the same clients return, and committed nothing for the session timeout before",
        weigh_freezes,
    ),
    Hypothesis(
        "processes_restart",
        "the processes of its members end and start again",
        "",
        _weigh_restarts,
    ),
    Hypothesis(
        "nothing_to_read",
        "nothing is left to read, and a job starts and ends",
        "No record shows it.",
        _weigh_no_work,
    ),
    Hypothesis(
        "polls_too_late",
        "members poll later than max.poll.interval.ms, leave and join again",
        "for: most stay that long",
        _weigh_late_polls,
    ),
    Hypothesis(
        "members_join_again",
        "members stay and join again: subscriptions or numbers of partitions change, or an assignor asks for it",
        "For: no member left.",
        _weigh_changes,
    ),
)
QUESTIONS: Final = (
    Question(
        "fails_on_record",
        "processes_restart",
        "Is there a record at the offset that does not move, and does the log of the application name it?",
        _first_stuck_record,
    ),
    Question(
        "members_freeze",
        "processes_restart",
        "Did the process of a removed member keep running (does its start time, or its log, show no new start)?",
        lambda context, case: context.command(Rows("timeline", of_group(case["group_id"], "event=member_left"))),
    ),
    Question(
        "processes_restart",
        "polls_too_late",
        "Were the processes of its members started again when members joined?",
        lambda context, case: context.command(
            Rows("timeline", of_joined(case["group_id"], case["at_timestamp_ms_min"]))
        ),
    ),
)
