"""Groups with records in a partition of `__consumer_offsets` that their coordinators do not read, and what these groups
did afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_runtime.kafka.partitioner import partition_for
from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.beginnings import Beginning, agreed, beginning, first_member
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    LogEnds,
    MemberLife,
    Offset,
    Span,
    commit_spans,
    log_ends,
    member_lives,
)
from kafka_records_tables.report.facts.usual_values import STOP, usual_gap
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_records_tables.report.rule_context import RuleContext

_SHARE: Final = "share"
STILL: Final = 2**62
"""A time later than any other, for groups that still have members."""


@dataclass(slots=True)
class MovedGroup:
    """A group with records in a partition that its coordinator does not read."""

    group_id: str
    home: int
    """The partition that its coordinator reads now."""
    old: tuple[int, ...]
    kind: str | None = None
    """The kind of the group according to its record, such as `classic`."""
    is_there: bool = False
    """Whether the group has members in its new partition."""
    had_members_until_ms: int | None = None
    """When its last member in its old partition left; STILL if it has not left, 0 if there never was one, None if no
    record shows it. After a restart, a coordinator removes the members of old copies when their sessions expire."""
    last_old_ms: int | None = None
    """The time of its last commit to an old partition."""
    first_new_ms: int | None = None
    last_new_ms: int | None = None
    """The times of its first and last commit to the new partition."""
    settles_ms: int = 0
    """The group counts as stopped after this time without a commit."""
    read_again: int = 0
    is_least: bool = False
    """Whether the start of a log is unknown, so the group may have reread more records."""
    unsure: list[Beginning] = field(default_factory=list)
    """Partitions that the group either reread from the start or in which it skipped records; no record shows which."""
    has_passed: bool = False
    """Whether the group has since committed its old offset or a higher one in every partition."""
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def gains_nothing(self) -> bool:
        """Whether restoring its old offsets would only repeat records, because the group has passed them and skipped
        none."""
        return self.has_passed and not self.skipped

    @property
    def skipped(self) -> int:
        """The number of records it never read, if it began at the ends of the logs."""
        return sum(each.skipped for each in self.unsure)

    @property
    def is_share(self) -> bool:
        """Whether it is a share group, which commits no offsets."""
        return self.kind == _SHARE

    def is_stopped(self, until_ms: int | None, now_ms: int) -> bool:
        """Whether the group was active until its coordinator stopped at `until_ms` and no longer is: it has no members
        in the new partition and no longer commits there."""
        if self.is_there or self._worked(until_ms) is not True:
            return False
        return self.last_new_ms is None or now_ms - self.last_new_ms > self.settles_ms

    def is_idle(self, until_ms: int | None) -> bool:
        """Whether the group was already inactive when its coordinator stopped, and has been inactive since."""
        return not self.is_there and self.last_new_ms is None and self._worked(until_ms) is False

    def _worked(self, until_ms: int | None) -> bool | None:
        """Whether the group was active until its coordinator stopped: it had members or, if no record shows this, its
        last commit was shortly before. None if unknown."""
        if self.had_members_until_ms is not None:
            return self.had_members_until_ms > (until_ms or 0)
        if self.last_old_ms is None or until_ms is None:
            return None
        return until_ms - self.last_old_ms <= self.settles_ms


def moved_groups(context: RuleContext) -> tuple[int | None, list[MovedGroup]]:
    """The number of partitions, if known, and the groups with records in other partitions than their own."""
    count, old = context.once(_old_places)
    return count, (
        [] if count is None else [MovedGroup(group, partition_for(group, count), each) for group, each in old.items()]
    )


def without_old_copies(context: RuleContext, rows: pa.Table) -> pa.Table:
    """Rows of groups or members, without rows from partitions that their coordinators do not read."""
    _, old = context.once(_old_places)
    copies = kept(rows, equal(rows, "group_id", *old))
    if not copies.num_rows:
        return rows
    of_group = zip(rows["group_id"].to_pylist(), rows["log_partition"].to_pylist(), strict=True)
    return rows.filter(pa.array([partition not in old.get(group, ()) for group, partition in of_group], pa.bool_()))


def _old_places(context: RuleContext) -> tuple[int | None, dict[str, tuple[int, ...]]]:
    """The number of partitions, if known, and the partitions of each group that has records outside its coordinator's
    partition."""
    places: dict[str, set[int]] = {}
    for name in ("current_offsets", "groups"):
        rows = context.table(name).group_by(["group_id", "log_partition"]).aggregate([])
        for row in rows.to_pylist():
            places.setdefault(row["group_id"], set()).add(row["log_partition"])
    count = _partition_count(context, places)
    if count is None:
        return None, {}
    others = {group: tuple(sorted(each - {partition_for(group, count)})) for group, each in places.items()}
    return count, {group: each for group, each in others.items() if each}


def _partition_count(context: RuleContext, places: dict[str, set[int]]) -> int | None:
    """The number of partitions of the topic: from the user, from the metadata log, or from the available logs if a
    group is in two of them."""
    said = context.request.partitions
    if said is not None and OFFSETS in said:
        return said[OFFSETS]
    if all(len(each) == 1 for each in places.values()) and not context.table("checks").num_rows:
        return None
    for row in context.look("topics").to_pylist():
        if row["topic"] == OFFSETS and row["deleted_timestamp_ms"] is None:
            found: int | None = row["partition_count"]
            return found
    twice = {group: each for group, each in places.items() if len(each) > 1}
    highest = max((max(each) for each in places.values()), default=0)
    counts = [
        count
        for count in range(highest + 1, 2 * highest + 64)
        if all(partition_for(group, count) in each for group, each in twice.items())
    ]
    # If a group is in two partitions, one of them is its new partition. A few such groups determine the number of
    # partitions.
    return counts[0] if twice and len(counts) == 1 else None


def count_before(moved: Sequence[MovedGroup]) -> int | None:
    """The earlier number of partitions, with which every old copy is in the right partition."""
    highest = max(max(each.old) for each in moved)
    fits = [
        count
        for count in range(highest + 1, highest + 200)
        if all(partition_for(each.group_id, count) in each.old for each in moved)
    ]
    return fits[0] if fits else None


def add_effects(context: RuleContext, moved: Sequence[MovedGroup]) -> None:
    """Add facts from the groups' records: whether the groups continue and, for the first MOST_GROUPS, what they
    reread."""
    names = tuple(each.group_id for each in moved[:MOST_GROUPS])
    of_group: dict[str, dict[Offset, list[Span]]] = {}
    for key, value in commit_spans(context, names).items():
        of_group.setdefault(key[0], {})[key] = value
    lives, ends = member_lives(context, names), log_ends(context)
    rows: dict[tuple[str, int], dict[str, Any]] = {
        (row["group_id"], row["log_partition"]): row for row in context.table("groups").to_pylist()
    }
    last = _last_commits(context, [each.group_id for each in moved])
    settles_ms = context.limit("report.group_settles_within")
    for each in moved:
        spans = of_group.get(each.group_id, {})
        each.is_there = bool(rows.get((each.group_id, each.home), {}).get("member_count"))
        copies = [row for old in each.old if (row := rows.get((each.group_id, old)))]
        each.kind = copies[0]["group_kind"] if copies else None
        if any(row["member_count"] for row in copies):
            each.had_members_until_ms = STILL
        elif copies and each.group_id in names:
            of_old = [life.left_ms or 0 for life in lives.get(each.group_id, ()) if life.log_partition in each.old]
            each.had_members_until_ms = max(of_old, default=0)
        each.settles_ms = max(settles_ms, STOP * _usual_ms(spans))
        each.last_old_ms = max((last.get((each.group_id, old), 0) for old in each.old), default=0) or None
        each.last_new_ms = last.get((each.group_id, each.home))
        at_home = [life for life in lives.get(each.group_id, ()) if life.log_partition == each.home]
        add_commits(each, spans, ends, at_home)


def _last_commits(context: RuleContext, groups: Sequence[str]) -> dict[tuple[str, int], int]:
    """When groups last committed, by group and partition of `__consumer_offsets`."""
    rows = kept(context.table("current_offsets"), equal(context.table("current_offsets"), "group_id", *groups))
    rows = rows.group_by(["group_id", "log_partition"]).aggregate([("commit_timestamp_ms", "max")])
    return {
        (row["group_id"], row["log_partition"]): row["commit_timestamp_ms_max"]
        for row in rows.to_pylist()
        if row["commit_timestamp_ms_max"] is not None
    }


def _usual_ms(spans: Mapping[Offset, Sequence[Span]]) -> int:
    usual = usual_gap(each.from_ms for of_place in spans.values() for each in of_place)
    return 0 if usual is None else usual.high_ms


def add_commits(
    moved: MovedGroup, spans: Mapping[Offset, list[Span]], ends: LogEnds, lives: Sequence[MemberLife]
) -> None:
    """Add what a group's commits show; `lives` are its members in the new partition.

    If the group began below the end that the log had when it joined, it began at the earliest record (`beginning`), and
    so did that member in its other partitions (`agreed`).
    """
    joined_ms = min((each.joined_ms for each in lives if each.joined_ms is not None), default=None)
    found: list[tuple[Beginning, MemberLife | None]] = []
    passed = []
    for (_, topic, partition), every in spans.items():
        place = topic, partition
        old = [each for each in every if each.log_partition != moved.home]
        new = [each for each in every if each.log_partition == moved.home]
        if old:
            passed.append(bool(new) and new[-1].offset >= old[-1].offset)
        if not new:
            continue
        first = new[0]
        moved.first_new_ms = min(moved.first_new_ms or 2**62, first.from_ms or 2**62)
        if not old:
            continue
        own = old[-1].offset
        began = beginning(ends, place, own, first.offset, joined_ms)
        found.append((began, first_member(place, first, lives)))
        if began.again and not began.is_unsure:
            start = ends.start(place)
            least = first.offset if start is None else min(start, first.offset)
            _count(moved, min(own, new[-1].offset) - least, began)
            shows = f"{moved.group_id} had committed {own} for {topic}-{partition}, and started over at {first.offset}"
            moved.evidence.append(Evidence(shows, OFFSETS, first.log_partition, first.log_offset, first.from_ms))
    for (alone, _), began in zip(found, agreed(found), strict=True):
        if began.is_unsure:
            moved.unsure.append(began)
        elif alone.is_unsure:
            _count(moved, began.again, began)
    moved.has_passed = bool(passed) and all(passed)


def _count(moved: MovedGroup, again: int, began: Beginning) -> None:
    moved.read_again += again
    moved.is_least = moved.is_least or not began.is_start_known
