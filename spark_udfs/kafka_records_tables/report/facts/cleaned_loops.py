"""Finds partitions with an offset that members cannot get past, even if a cleaner has removed most of the members'
records.

A cleaner leaves the last commit, the last epoch, the tombstones of members (`departed_members`), and all records that
it has not reached yet. The log of the topic shows when the record at the committed offset was written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import INCOMPLETE_HISTORY
from kafka_records_tables.report.case_columns import equal, grouped, kept, looked_up, numbers, with_columns
from kafka_records_tables.report.facts.departed_members import TABLE as DEPARTED
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    MemberLife,
    Offset,
    Place,
    Span,
    commit_spans,
    log_ends,
    member_lives,
)
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from kafka_records_tables.report.rule_context import RuleContext

_TIMES: Final = 5
"""The factor by which members must leave more often after the record was written than before."""
_SOON_MS: Final = 10_000
"""A member that fails on a record leaves within this time after the record was written, or within a few of the usual
intervals if that is longer."""
_LEAST_SEEN: Final = 2
"""The minimum number of members that the log must still show joining, having the partition, and leaving."""


@dataclass(frozen=True, slots=True)
class CleanedLoop:
    """A group with a partition whose offset does not move, as seen in a cleaned log."""

    group_id: str
    place: Place
    lag: int
    span: Span
    """The last commit."""
    written_ms: int
    """The time at which the record at the committed offset was written."""
    departures: tuple[int, ...]
    """When members left after `written_ms`, ascending."""
    seen: tuple[MemberLife, ...]
    """Members that had the partition, and that the log still shows joining and leaving."""
    every_ms: float
    """The usual time between two departures."""
    seen_from_ms: int
    """When the log begins to contain all records of the group."""
    slots: int
    """The number of the group's partitions or, if larger, of its members."""
    epoch: int
    lives: Sequence[MemberLife]
    """All members that the log shows."""
    moved: tuple[Place, ...] = ()
    """Other partitions of the group that were read in the meantime."""
    others: tuple[tuple[Place, int], ...] = field(default=())
    """Other partitions whose offset does not move either, with their offsets."""

    @property
    def by_tombstones(self) -> bool:
        """Whether tombstones show more departures than do members with complete records."""
        return len(self.departures) > len(self.seen)


def is_cut(context: RuleContext, group: str, since_ms: int) -> bool:
    """Whether a cleaner may have removed records of a group that were written since a given time."""
    rows = context.once(_groups)
    first = kept(rows, equal(rows, "group_id", group))["first"].to_pylist()
    return bool(first) and first[0] is not None and first[0] > since_ms


def cleaned_loops(context: RuleContext, known: Container[str]) -> list[CleanedLoop]:
    """One loop per group, except for `known` groups: the one whose record has waited longest."""
    rows = _waiting(context)
    names = [each for each in dict.fromkeys(rows["group_id"].to_pylist()) if each not in known][:MOST_GROUPS]
    if not names:
        return []
    waiting: dict[str, list[dict[str, Any]]] = {each: [] for each in names}
    for row in rows.to_pylist():
        if row["group_id"] in waiting:
            waiting[row["group_id"]].append(row)
    spans, lives = commit_spans(context, names), member_lives(context, names)
    departed: dict[str, dict[str, int]] = {}
    for row in context.look(DEPARTED, names).to_pylist():
        departed.setdefault(row["group_id"], {})[row["member_id"]] = row["log_timestamp_ms"]
    found = []
    for group in names:
        for life in lives.get(group, []):
            if life.left_ms is not None:
                departed.setdefault(group, {})[life.member_id] = life.left_ms
        of_group = (
            _loop(context, row, spans, lives.get(group, []), sorted(departed.get(group, {}).values()))
            for row in waiting[group]
        )
        loops = sorted((each for each in of_group if each is not None), key=lambda each: (each.written_ms, each.place))
        if loops:
            found.append(_whole(context, loops, spans))
    return found


def _groups(context: RuleContext) -> Any:
    """The groups in cleaned logs, with the time from which the log has all their records, and the time of their last
    epoch. Older remaining records, such as the last commit, show nothing about the time in between."""
    whole_from = {
        each.partition: each.complete_from or 0
        for each in context.reading
        if each.reason == INCOMPLETE_HISTORY and each.topic == OFFSETS and each.partition is not None
    }
    rows = context.table("groups")
    rows = kept(rows, equal(rows, "log_partition", *whole_from))
    events = context.table("timeline")
    whole = pa.table(
        {"partition": pa.array([*whole_from], pa.int32()), "offset": pa.array([*whole_from.values()], pa.int64())}
    )
    events = kept(events, equal(events, "log_partition", *whole_from))
    events = with_columns(events, whole_from=looked_up(events["log_partition"], whole, "partition", "offset"))
    later = kept(events, pc.greater_equal(events["log_offset"], events["whole_from"]))
    firsts = grouped(later, ["group_id"], [("at_timestamp_ms", "min")])
    epochs = grouped(kept(events, equal(events, "event", "epoch")), ["group_id"], [("at_timestamp_ms", "max")])
    first = looked_up(rows["group_id"], firsts, "group_id", "at_timestamp_ms_min")
    return with_columns(
        rows.select(["group_id", "group_kind", "epoch", "member_count"]),
        first=pc.fill_null(first, context.at_ms),
        changed=looked_up(rows["group_id"], epochs, "group_id", "at_timestamp_ms_max"),
    )


def _waiting(context: RuleContext) -> Any:
    """Partitions with an unread record that was written before the log begins to contain all records of the group.
    Members must have joined or left since. Partitions with the most records come first."""
    groups = context.once(_groups)
    least = 2 * context.limit("crash_loop.attempts")
    groups = kept(
        groups, equal(groups, "group_kind", "classic", "consumer", "streams"), numbers(groups, "epoch") >= least
    )
    rows = context.table("lag")
    rows = kept(
        rows,
        pc.is_valid(rows["unread_timestamp_ms"]),
        pc.greater(rows["lag"], 0),
        equal(rows, "group_id", *groups["group_id"].to_pylist()),
        numbers(rows, "unread", 1) > 0,
    )
    columns = {
        name: looked_up(rows["group_id"], groups, "group_id", name)
        for name in ("first", "changed", "epoch", "member_count")
    }
    rows = with_columns(rows.select(["group_id", "topic", "partition", "lag", "unread_timestamp_ms"]), **columns)
    written = rows["unread_timestamp_ms"]
    rows = kept(rows, pc.less(written, rows["first"]), pc.less(written, rows["changed"]))
    return rows.sort_by([("lag", "descending")])


def _loop(
    context: RuleContext,
    row: dict[str, Any],
    spans: dict[Offset, list[Span]],
    lives: Sequence[MemberLife],
    departed: Sequence[int],
) -> CleanedLoop | None:
    """The loop of a partition; `departed` are the times at which members left the group, ascending."""
    group, place, written = row["group_id"], (row["topic"], row["partition"]), row["unread_timestamp_ms"]
    of_place = spans.get((group, *place), [])
    if not of_place or of_place[-1].to_ms is not None or len(of_place) > 1 or of_place[-1].from_ms is None:
        # If the log still shows another offset, the offset moved or was reset.
        return None
    span = of_place[-1]
    departures = [each for each in departed if each >= written]
    seen = tuple(
        each
        for each in lives
        if place in each.places
        and each.left_ms is not None
        and each.left_ms >= (span.from_ms or 0)
        and each.joined_ms is not None
        and each.joined_ms > row["first"]
    )
    places = {key[1:] for key in spans if key[0] == group} | {each for life in lives for each in life.places}
    slots = max(len(places), row["member_count"] or 0, 1)
    enough = context.limit("crash_loop.attempts") * slots
    if len(departures) >= enough and _begins_with(written, departures, departed):
        every = (departures[-1] - departures[0]) / (len(departures) - 1)
    elif len(seen) >= _LEAST_SEEN:
        last = max(each.left_ms or 0 for each in seen)
        every = (last - row["first"]) / len(seen)
        # Each member that joins or leaves raises the epoch; two that do so together raise it once.
        if not enough * every <= last - written <= 2 * row["epoch"] * every:
            return None
        departures = sorted(each.left_ms or 0 for each in seen)
    else:
        return None
    return CleanedLoop(
        group,
        place,
        row["lag"],
        span,
        written,
        tuple(departures),
        seen,
        every,
        row["first"],
        slots,
        row["epoch"],
        lives,
    )


def _begins_with(written_ms: int, since: Sequence[int], all_times: Sequence[int]) -> bool:
    """Whether members began to leave when a record was written: the first one left soon after, and few or none left in
    an equally long time before. `since` are the times after the record was written."""
    lasts = since[-1] - written_ms
    usual = sorted(after - before for before, after in pairwise(since))[len(since) // 2 - 1]
    before = sum(written_ms - lasts <= each < written_ms for each in all_times)
    return since[0] - written_ms <= max(3 * usual, _SOON_MS) and len(since) >= _TIMES * (before + 1)


def _whole(context: RuleContext, loops: list[CleanedLoop], spans: dict[Offset, list[Span]]) -> CleanedLoop:
    """The first loop of a group, with facts about its other partitions."""
    first = loops[0]
    still = {each.place for each in loops}
    moved: list[Place] = []
    for (group, topic, partition), of_place in spans.items():
        place = topic, partition
        if group != first.group_id or place in still:
            continue
        end = log_ends(context).end_at(place, first.departures[0])
        if end is not None and of_place[-1].offset > end:
            moved.append(place)
    others = tuple((each.place, each.span.offset) for each in loops[1:])
    return replace(first, moved=tuple(sorted(moved)), others=others)
