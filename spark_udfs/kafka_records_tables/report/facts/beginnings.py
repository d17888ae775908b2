"""Determines where a group began if it had no offset to continue from, and whether all records of a group are
available."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafka_records_engine.findings import INCOMPLETE_HISTORY
from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.report_parts import AT_LEAST
from kafka_records_tables.report.rule_context import RuleContext, counted
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import LogEnds, MemberLife, Place, Span
    from kafka_records_tables.report.report_parts import Consequence


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a group began in a log partition because of auto.offset.reset, judged by its first commit."""

    again: int
    """The number of records that the group read a second time, if it began at the start."""
    skipped: int
    """The number of records that the group never read, if it began at the end."""
    is_unsure: bool = False
    """Whether records do not show if the group began at the start or at the end. Otherwise, one of the two numbers is
    0."""
    end: int | None = None
    """The end of the log when the group's first member joined; None if files do not show it."""
    is_start_known: bool = True
    """Whether the start of the log is known; otherwise `again` is a lower bound."""


def beginning(ends: LogEnds, place: Place, own: int, first: int, joined_ms: int | None) -> Beginning:
    """Where a group began again after it had read up to `own`, judged by its first commit, `first`. `joined_ms` is the
    time at which its first member joined; nothing was fetched before. A consumer that begins at the end never commits
    below the end that the log had then. A consumer that begins at the start may have read everything before its first
    commit.
    """
    start, end = ends.start(place), ends.end_at(place, joined_ms)
    again = max(own - (min(own, first) if start is None else start), 0)
    if first < own or (end is not None and own < first < end):
        return Beginning(again, 0, False, end, start is not None)
    if end is not None and first == own < end:
        # someone restored the old offset
        return Beginning(0, 0, False, end)
    skipped = max((first if end is None else end) - own, 0)
    is_unsure = bool(again or skipped or (start is None and own))
    return Beginning(again, skipped, is_unsure, end, start is not None)


def started(own: int, first: int) -> Beginning:
    """Where a group began that certainly started at `first`, if the group before it had read up to `own`."""
    return Beginning(max(own - first, 0), max(first - own, 0), end=first)


def first_member(place: Place, first: Span, lives: Sequence[MemberLife]) -> MemberLife | None:
    """The member that had a partition when the first commit for it was written, and so began there; None if records do
    not show exactly one."""
    found = [
        each
        for each in lives
        if place in each.places
        and each.log_partition == first.log_partition
        and each.joined_at < first.log_offset
        and (each.left_at is None or each.left_at > first.log_offset)
    ]
    return found[0] if len(found) == 1 else None


def agreed(found: Sequence[tuple[Beginning, MemberLife | None]]) -> list[Beginning]:
    """The beginnings, each given with its `first_member`, made consistent. auto.offset.reset is a consumer setting, so
    a member that certainly began at the start of one partition did so in all of its partitions. This does not hold for
    other members, or after a restart of the application, because their setting may differ."""
    at_start = {id(member) for began, member in found if member is not None and began.again and not began.is_unsure}
    return [
        replace(began, skipped=0, is_unsure=False) if began.is_unsure and id(member) in at_start else began
        for began, member in found
    ]


def either_words(who: str, whose: str, found: list[Beginning]) -> str:
    """A sentence that says whether the group began at the end or at the start, and the effect."""
    skipped, again = sum(each.skipped for each in found), repeated_words(found)
    of_end = "nothing was lost" if not skipped else f"{skipped_words(found)} were never read"
    of_start = "nothing was lost" if again is None else f"{again} were read again before {whose} first commit"
    return (
        f"either {who} began at the end of the log (auto.offset.reset latest), and {of_end}, or at the start "
        f"(earliest), and {of_start}: no record shows which"
    )


def skipped_words(found: list[Beginning]) -> str:
    """A sentence with the number of records that were never read; an upper bound if files do not show where the log
    ended."""
    most = "" if all(each.end is not None for each in found if each.skipped) else "at most "
    return most + counted(sum(each.skipped for each in found), "record")


def repeated_words(found: list[Beginning]) -> str | None:
    """A sentence with the number of records that were read again; None if there are none."""
    again, is_least = sum(each.again for each in found), not all(each.is_start_known for each in found)
    if not again:
        return "earlier records" if is_least else None
    return ("at least " if is_least else "") + counted(again, "record")


def scale_of(found: Iterable[Beginning]) -> dict[str, int]:
    """The numbers of lost and repeated records, for the scale of a finding. Records that were lost or repeated only if
    the group began at a particular end of the log are counted separately, as possible."""
    every = list(found)
    counts: dict[str, int] = {}
    for possibly in ("", "possibly_"):
        begins = [each for each in every if each.is_unsure == bool(possibly)]
        counts[f"records_{possibly}lost"] = sum(each.skipped for each in begins)
        is_least = any(each.again and not each.is_start_known for each in begins)
        counts[f"records_{possibly}repeated{AT_LEAST if is_least else ''}"] = sum(each.again for each in begins)
    return counts


def consequence_of(scale: Mapping[str, int]) -> Consequence:
    """The certain consequence of such beginnings, given their scale (`scale_of`)."""
    if scale["records_lost"]:
        return "data_lost"
    is_repeated = any(scale.get(f"records_repeated{bound}") for bound in ("", AT_LEAST))
    return "work_repeated" if is_repeated else "none"


def has_all_records(context: RuleContext, log_partition: int) -> bool:
    """Whether a partition of `__consumer_offsets` still has all records of its groups, from the first one on.

    If a cleaner has removed older records of a group, its members appear to have joined later than they did.
    """
    ends = context.table("log_ends")
    of_log = kept(ends, equal(ends, "topic", OFFSETS), equal(ends, "partition", log_partition))
    if any(of_log["log_start_offset"].to_pylist()):
        return False
    return not any(
        each.reason == INCOMPLETE_HISTORY and (each.topic, each.partition) == (OFFSETS, log_partition)
        for each in context.reading
    )
