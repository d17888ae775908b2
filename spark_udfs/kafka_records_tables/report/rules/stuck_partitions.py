"""Partitions with a record on which consumers fail, or failed earlier."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.command_lines import AFTER_RECORD, option
from kafka_records_tables.report.facts.departures import LEAST_SESSION_MS, SESSION_MS, session_timeout
from kafka_records_tables.report.facts.group_facts import stopped_quickly
from kafka_records_tables.report.facts.usual_values import usual_most
from kafka_records_tables.report.report_parts import Actor, Evidence
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, SECOND_MS, counted, length, shown
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import MemberLife, Place, Span
    from kafka_records_tables.report.report_parts import NextStep
    from kafka_records_tables.report.rule_context import RuleContext

KIND: Final = "crash_loop"
_OF_BROKERS: Final = ("consumer", "streams")
"""The kinds of groups whose session timeout is a broker setting, not a member setting."""
_RECORDS: Final = 20
"""The number of records to look at after a committed offset, unless commits advance further."""
_MOST_RECORDS: Final = 500
"""The maximum number of records to look at; Java consumers get at most this many in one poll (`max.poll.records`)."""


@dataclass(frozen=True, slots=True)
class StuckPartition:
    """A partition whose offset does not move although members get it again and again."""

    topic: str
    partition: int
    offset: int
    lag: int
    unread_ms: int | None
    span: Span
    attempts: list[MemberLife]
    """The members that have had it since then, and left."""
    usual: int | None = None
    """How many members had it and left before its offset moved, as a number that 95 % of earlier cases do not exceed;
    None if the log has too few cases."""
    step: int | None = None
    """The distance that 95 % of its commits did not exceed; None if the log has too few commits."""

    @property
    def place(self) -> str:
        """The partition in the form `<topic>-<partition>`."""
        return f"{self.topic}-{self.partition}"

    @property
    def record(self) -> str:
        """The record on which members fail, in words, according to commits."""
        return f"the record at offset {self.offset} of {self.place}{or_after(self.step)}"


def usual_attempts(
    spans: list[Span], left: list[MemberLife], written_ms: Callable[[int], int | None] | None
) -> int | None:
    """How many members usually had a partition and left before its offset moved: the number that 95 % of its commits do
    not exceed; None if the log has too few commits. Members count from when there was a record to read. `written_ms`
    returns that time for an offset; offsets without a known time are left out. Without `written_ms`, members count from
    the commit."""
    times = sorted(each.left_ms or 0 for each in left)
    counts = []
    for each in spans:
        written = 0 if written_ms is None else written_ms(each.offset)
        if each.from_ms is not None and each.to_ms is not None and written is not None:
            since = min(max(each.from_ms, written), each.to_ms)
            counts.append(bisect_left(times, each.to_ms) - bisect_left(times, since))
    return usual_most(counts)


def rises(spans: list[Span], since_ms: int, until_ms: int | None = None) -> bool:
    """Whether an offset has risen after `since_ms` and, if given, before `until_ms`."""
    return any(
        (after.from_ms or 0) > since_ms
        and (until_ms is None or (after.from_ms or 0) < until_ms)
        and after.offset > before.offset
        for before, after in pairwise(spans)
    )


def is_fixed_time(stays: list[int]) -> bool:
    """Whether most members stayed for about the same time, which suggests a timeout."""
    usual = median(stays) if stays else 0
    near = [each for each in stays if 0.8 * usual <= each <= 1.25 * usual]
    return 10 * len(near) >= 7 * len(stays)


def poll_limits(lives: Iterable[MemberLife]) -> list[int]:
    """The known max.poll.interval.ms values of members."""
    limits = {each.rebalance_timeout_ms for each in lives if each.rebalance_timeout_ms is not None}
    return sorted(each for each in limits if each > 0)


def polls_too_late(limits: list[int], stays: list[int]) -> str:
    """Evidence that members were removed because they polled too late: they stayed as long as one of these limits.
    Empty if they did not."""
    usual = median(stays) if stays else 0
    if not limits or not is_fixed_time(stays):
        return ""
    fits = [each for each in limits if each <= usual <= 1.3 * each + 1000]
    return f"members stay for {length(usual)}, and max.poll.interval.ms is {length(fits[0])}" if fits else ""


def usual_step(spans: list[Span]) -> int | None:
    """The distance that 95 % of the commits of a partition did not exceed; None if the log has too few commits."""
    return usual_most(after.offset - before.offset for before, after in pairwise(spans) if after.offset > before.offset)


def or_after(step: int | None) -> str:
    """What to add after the stuck offset to describe where the failing record is. Consumers that do not commit each
    record separately process some records after the committed offset before they fail."""
    return "" if step == 1 else " or one soon after it"


def look_at(context: RuleContext, place: Place, offset: int, step: int | None = None) -> NextStep:
    """The step of looking at the record on which members fail, or at the records after the committed offset, one of
    which it is. `step` is the usual distance between commits."""
    topic, partition = place
    if step == 1:
        what = f"Look at the record at offset {offset} of {topic}-{partition}, and in the log of the application for "
        what += "what fails"
    else:
        what = f"Look at the records of {topic}-{partition} from offset {offset} on, and in the log of the application "
        what += "for the one that fails"
        what += "" if step is None else f" (commits usually advance by up to {step})"
    number = 1 if step == 1 else min(max(step or 0, _RECORDS), _MOST_RECORDS)
    return context.ask_kafka(
        what,
        "kafka-console-consumer",
        *option("--topic", topic),
        *("--partition", str(partition), "--offset", str(offset), "--max-messages", str(number)),
        *(() if step == 1 else ("--property", "print.offset=true")),
    )


def how_they_left(context: RuleContext, group: str, stays: list[int]) -> str:
    """A sentence that says whether members left voluntarily or timed out."""
    timeout = session_timeout(context, group)
    if timeout is not None and stays and median(stays) < timeout:
        return f" They leave by themselves: the session timeout is {length(timeout)}, and had not passed."
    groups = context.rows_of_group("groups", group)
    kind = groups["group_kind"][0].as_py() if groups.num_rows else None
    if timeout is None and stays and min(stays) < SECOND_MS:
        return f" They left by themselves: {length(min(stays))}, the shortest stay, is no session timeout."
    if timeout is None and stays and min(stays) < (SESSION_MS if kind in _OF_BROKERS else LEAST_SESSION_MS):
        setting = f"group.{kind}.session.timeout.ms of the brokers" if kind in _OF_BROKERS else "their session timeout"
        return f" Either they left by themselves, or {setting} is at most {length(min(stays))}, their shortest stay."
    return " No record shows whether they left on their own or timed out."


def step_past(context: RuleContext, group: str, place: Place, offset: int, step: int | None = None) -> NextStep:
    """The step of setting the group's offset past the record on which members fail. That record's offset is known only
    if each record is committed separately."""
    words = ("--group", group), ("--topic", f"{place[0]}:{place[1]}")
    where = str(offset + 1) if step == 1 else f"{AFTER_RECORD}, the offset after that record,"
    return context.ask_kafka(
        f"If the record cannot be processed, save it elsewhere and stop the members of {shown(group)}; this shows "
        f"what continuing at {where} would do, and does it with --execute in place of --dry-run",
        "kafka-consumer-groups",
        "--reset-offsets",
        *(word for name, value in words for word in option(name, value)),
        "--to-offset",
        str(offset + 1) if step == 1 else AFTER_RECORD,
        "--dry-run",
    )


def departures_shown(tries: Sequence[MemberLife], most: int = MOST_EVIDENCE) -> tuple[Evidence, ...]:
    """The first departures of members as evidence."""
    return tuple(
        Evidence(
            f"{each.name} is gone after {length(stopped_quickly(each) or 0)}",
            OFFSETS,
            each.log_partition,
            each.left_at,
            each.left_ms,
        )
        for each in tries[:most]
    )


def who_left(group: str, tries: Sequence[MemberLife]) -> tuple[Actor, ...]:
    """The clients whose members left most often, each with its first host."""
    hosts: dict[str, str | None] = {}
    for each in tries:
        hosts.setdefault(each.name, each.host)
    counts = Counter(each.name for each in tries)
    return tuple(
        Actor(f"left {counted(count, 'time')}", group, None, name, hosts[name]) for name, count in counts.most_common(5)
    )
