"""The causes of offsets that moved backwards, and falls from offsets that their logs may not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.case_columns import equal, kept, numbers
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.beginnings import has_all_records
from kafka_records_tables.report.facts.group_facts import member_lives
from kafka_records_tables.report.facts.known_logs import ends_of_logs, known_ends
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule import Hypothesis, Question, Verdict
from kafka_records_tables.report.rule_context import SECOND_MS, listed
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import MemberLife, Place
    from kafka_records_tables.report.rule_context import RuleContext


def places_of(case: dict[str, Any]) -> list[Place]:
    """The partition in which each offset moved backwards."""
    return list(zip(case["topic_list"], case["partition_list"], strict=True))


def not_in_logs(context: RuleContext, case: dict[str, Any]) -> tuple[list[Place], list[Place]]:
    """The partitions whose higher offset may be beyond an unknown log end, and those whose higher offset is beyond the
    log end. In the latter, the log has no records up to there: they were never consumed, or the log was truncated. So a
    fall from there repeats nothing."""
    if "sawtooth" in case["kind_distinct"]:
        # Two consumers repeatedly reached the higher offsets, so the log has records up to there.
        return [], []
    ends = known_ends(context)
    highest = dict(zip(places_of(case), case["from_offset_list"], strict=True))
    for place, offset in zip(places_of(case), case["from_offset_list"], strict=True):
        highest[place] = max(highest[place], offset)
    return (
        [place for place in highest if place not in ends],
        [place for place, offset in highest.items() if offset > ends.get(place, offset)],
    )


def _falls_shown(case: dict[str, Any], shows: str) -> tuple[Evidence, ...]:
    """The first record of a fall, as evidence for a cause."""
    return (
        Evidence(
            shows,
            OFFSETS,
            case["log_partition_list"][0],
            case["log_offset_list"][0],
            case["commit_timestamp_ms_list"][0],
        ),
    )


def _nobody_read(context: RuleContext, case: dict[str, Any]) -> tuple[Evidence, ...]:
    """Evidence that no member had read up to the higher offsets, because the group had no members when they were
    committed. Empty if it had members, or if its earlier records are missing."""
    at, log = case["from_commit_timestamp_ms_list"][0], case["log_partition_list"][0]
    if at is None or not has_all_records(context, log):
        return ()
    lives = member_lives(context, [case["group_id"]]).get(case["group_id"], [])
    if _had_members(lives, at):
        return ()
    shows = "the group had no members when the higher offset was committed"
    return (Evidence(shows, OFFSETS, log, case["from_log_offset_list"][0], at),)


def _written_along(context: RuleContext, case: dict[str, Any]) -> list[str]:
    """Other groups that committed offsets of the topic in the same second as this one, also without members."""
    at, topic = case["from_commit_timestamp_ms_list"][0], case["topic_list"][0]
    rows = context.table("current_offsets")
    times = numbers(rows, "commit_timestamp_ms", -(2**62))
    rows = kept(rows, equal(rows, "topic", topic), (times >= at - SECOND_MS) & (times <= at + SECOND_MS))
    groups = sorted(set(rows["group_id"].to_pylist()) - {case["group_id"]})
    lives = member_lives(context, groups)
    return [group for group in groups if not _had_members(lives.get(group, ()), at)]


def _had_members(lives: Iterable[MemberLife], at_ms: int) -> bool:
    """Whether any of these was a member at a given time or up to a second before it. Members commit when they leave."""
    return any(
        (each.joined_ms or 0) <= at_ms and (each.left_ms is None or each.left_ms >= at_ms - SECOND_MS) for each in lives
    )


def _says(statement: str, shows: str | None = None) -> Callable[[RuleContext, dict[str, Any]], Verdict]:
    """A verdict that is the same for each case, with the first fall as its evidence."""

    def weigh(_: RuleContext, case: dict[str, Any]) -> Verdict:
        return Verdict(statement, () if shows is None else _falls_shown(case, shows))

    return weigh


def _weigh_self_assigned(_: RuleContext, case: dict[str, Any]) -> Verdict:
    is_simple = case["group_kind_first"] == "simple"
    return Verdict(
        "A consumer that assigns itself partitions went back.",
        _falls_shown(case, "the group has had no members at all") if is_simple else (),
        refuted_by=None if is_simple else _falls_shown(case, f"it is a {case['group_kind_first']} group")[0],
    )


def _weigh_out_of_range(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    unknown, beyond = not_in_logs(context, case)
    if unknown or beyond:
        return None
    return _says("Its offset was out of range, and auto.offset.reset decided.", "the group had members then")(
        context, case
    )


def _weigh_beyond_end(context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    unknown, beyond = not_in_logs(context, case)
    if not unknown and not beyond:
        return None
    ends = known_ends(context)
    falls = zip(places_of(case), case["from_offset_list"], strict=True)
    shows = [
        f"{each[0]}-{each[1]} ends at {ends[each]}, and the offset was {at}" for each, at in falls if each in beyond
    ]
    nobody = _nobody_read(context, case)
    others = _written_along(context, case) if nobody else []
    along = f" {listed(others)} also had no members, and got offsets of the topic in the same second." if others else ""
    why = "because a tool wrote them or the log was cut" if not nobody else "because a tool wrote them without members"
    return Verdict(
        f"The higher offsets were beyond the end of the log, {why}, and auto.offset.reset decided where consumers "
        f"continued.{along}",
        (*_falls_shown(case, shows[0] if shows else "the group had members then"), *nobody),
        is_certain=len(beyond) == len(set(places_of(case))),
        lacked=(ends_of_logs(unknown),) if unknown else (),
    )


def _weigh_seek(context: RuleContext, case: dict[str, Any]) -> Verdict:
    unknown, _ = not_in_logs(context, case)
    return Verdict(
        "A member of the group went back by itself (seek).",
        _falls_shown(case, "the group had members then"),
        _nobody_read(context, case),
        lacked=(ends_of_logs(unknown),) if unknown else (),
    )


def _ask_for_ends(context: RuleContext, case: dict[str, Any]) -> str | None:
    return context.ask_kafka("", "kafka-get-offsets", *option("--topic", case["topic_list"][0])).command


CAUSES: Final[Mapping[str, tuple[Hypothesis, ...]]] = {
    "offsets_reset": (
        Hypothesis(
            "reset_by_tool",
            "an administrator or a tool reset the offsets",
            "",
            _says("Somebody reset the offsets while the group had no members.", "the group had no members then"),
        ),
        Hypothesis(
            "self_assigned_consumer",
            "a consumer that assigns itself partitions went back",
            "Against: the group has members.",
            _weigh_self_assigned,
        ),
    ),
    "offsets_rewound": (
        Hypothesis(
            "member_went_back",
            "a member went back by itself (seek)",
            "",
            _weigh_seek,
        ),
        Hypothesis(
            "out_of_range",
            "the offset was out of range, and auto.offset.reset decided",
            "No record of the offsets topic shows this.",
            _weigh_out_of_range,
        ),
        Hypothesis(
            "beyond_end",
            "the higher offset was beyond the end of the log, and auto.offset.reset decided",
            "for: the log ends before it, or the group had no members when it was committed",
            _weigh_beyond_end,
        ),
    ),
    "offsets_began_again": (
        Hypothesis(
            "offsets_deleted",
            "a clean-up or somebody deleted the offsets",
            "",
            _says("Its offsets had been deleted, by a clean-up or by somebody.", "the first commit after the deletion"),
        ),
    ),
    "two_committers": (
        Hypothesis(
            "two_consumers",
            "two consumers commit the same partitions",
            "",
            _says(
                "Two consumers commit in turns: two applications with one group id, a consumer that was thought dead "
                "and its successor, or two that assign themselves the same partition.",
                "the first fall",
            ),
        ),
    ),
}
QUESTIONS: Final[Mapping[str, tuple[Question, ...]]] = {
    "offsets_reset": (
        Question("reset_by_tool", "self_assigned_consumer", "Did somebody reset the group at that time?"),
    ),
    "offsets_rewound": (
        Question("member_went_back", "out_of_range", "Does the application call seek, or say in its log that it did?"),
        Question(
            "beyond_end",
            "member_went_back",
            "Were the higher offsets beyond the end of the log? Compare them with its present end, and look in the "
            "logs of consumers for a position that was out of range",
            _ask_for_ends,
        ),
    ),
}
