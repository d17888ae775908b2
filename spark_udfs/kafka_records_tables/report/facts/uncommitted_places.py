"""Partitions that a group's members have, and get records from, but for which the group has never committed an
offset."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    LogEnds,
    Place,
    Span,
    commit_spans,
    log_ends,
    places_of,
)
from kafka_records_tables.report.facts.known_logs import known_ends, members_known
from kafka_records_tables.report.facts.moved_groups import without_old_copies
from kafka_records_tables.report.facts.usual_values import STOP, usual_gap
from kafka_records_tables.tables.lagging.matching import has_match
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext

_INTERNAL: Final = "__"
_PLACE: Final = ["group_id", "topic", "partition"]
_OF_TOOLS: Final = re.compile(r"console-consumer-\d+|spark-kafka-(source|relation)-.*|spark-executor-.*")
"""Groups of tools that never commit: the console consumer without `--group` (`ConsoleConsumerOptions` sets
`enable.auto.commit` to false), and sources of Spark Structured Streaming."""

_LEAST_STAY_MS: Final = 10_000
"""A member that stays for less may not have had time to commit: twice the default of auto.commit.interval.ms."""

_Given = tuple[int, int, int]
"""When a partition was assigned, and the log partition and offset of the record that shows it."""


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """A group with partitions for which it has never committed."""

    group: str
    members: list[dict[str, Any]]
    """The members that have these partitions."""
    places: list[Place]
    since_ms: int
    """When a member was first assigned one of them."""
    first_at: tuple[int | None, int | None]
    """The log partition and offset of the record that shows it."""
    held_ms: int
    """How long the present members have had all of them, or any members if `with_former` is set."""
    with_former: bool
    """Whether earlier members count too, because the present ones have not been there long enough."""
    records: int | None
    """The number of records written to them since these members got them; None if their times are unknown."""
    restarts: int
    """How often all members of the group left and new ones joined."""
    between: int | None
    """The number of records written to these partitions while the group had no members; None if unknown."""
    others: dict[Place, Span]
    """The group's last commits for its members' other partitions."""
    former: Span | None
    """The last commit for which the offset was deleted; None if the group committed nothing else."""


def uncommitted_groups(context: RuleContext, after_ms: int) -> list[Uncommitted]:
    """The groups with such partitions, if they have had them for at least `after_ms` and twice the longest time between
    two of their commits."""
    owned = _suspects(context)
    names = sorted(owned)[:MOST_GROUPS]
    spans: dict[str, dict[Place, list[Span]]] = {each: {} for each in names}
    for (group, topic, partition), of_place in commit_spans(context, names).items():
        spans[group][topic, partition] = of_place
    found = (_uncommitted(context, group, owned[group], spans[group], after_ms) for group in names)
    return [each for each in found if each is not None]


def _suspects(context: RuleContext) -> dict[str, list[dict[str, Any]]]:
    """The partitions with records that members of stable groups have but that have no committed offset, by group."""
    groups = context.table("groups")
    # Skip Kafka Streams groups, because Streams commits offsets itself, and Connect groups, because their members are
    # not assigned topic partitions.
    groups = kept(
        groups,
        equal(groups, "group_kind", "classic", "consumer"),
        equal(groups, "state", "Stable"),
        pc.greater(groups["member_count"], 0),
        pc.equal(pc.fill_null(groups["protocol_type"], "consumer"), "consumer"),
        pc.not_equal(pc.fill_null(groups["protocol"], ""), "stream"),
    )
    if not groups.num_rows:
        return {}
    rows = context.table("assignments")
    committed = pa.concat_tables(
        [context.table(name).select(_PLACE) for name in ("current_offsets", "pending_offsets")]
    )
    rows = kept(
        rows.select([*_PLACE, "member_id", "log_timestamp_ms", "log_partition", "log_offset"]),
        equal(rows, "role", "current"),
        pc.is_in(rows["group_id"], groups["group_id"].combine_chunks()),
        pc.is_in(rows["topic"], _topics_with_records(context)),
        pc.invert(has_match(rows, committed, _PLACE)),
    )
    names = set(rows["group_id"].unique().to_pylist())
    whole = without_old_copies(context, kept(groups, equal(groups, "group_id", *names)))
    begins = {each["partition"]: each["log_start_offset"] for each in _offsets_logs(context)}
    known = {
        each["group_id"]
        for each in whole.to_pylist()
        if not _OF_TOOLS.fullmatch(each["group_id"])
        and not begins.get(each["log_partition"])
        and members_known(context, each["group_id"])
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for row in kept(rows, equal(rows, "group_id", *known)).to_pylist() if known else ():
        found.setdefault(row["group_id"], []).append(row)
    return found


def _offsets_logs(context: RuleContext) -> list[dict[str, Any]]:
    rows = context.table("log_ends")
    found: list[dict[str, Any]] = kept(rows, equal(rows, "topic", OFFSETS)).to_pylist()
    return found


def _topics_with_records(context: RuleContext) -> Any:
    rows = context.table("log_ends")
    rows = kept(
        rows,
        pc.invert(pc.starts_with(rows["topic"], _INTERNAL)),
        pc.greater(rows["log_end_offset"], rows["log_start_offset"]),
    )
    return rows["topic"].unique()


def _uncommitted(
    context: RuleContext,
    group: str,
    owned: list[dict[str, Any]],
    spans: dict[Place, list[Span]],
    after_ms: int,
) -> Uncommitted | None:
    times = [each.from_ms for of_place in spans.values() for each in of_place]
    usual = usual_gap(times)
    limit = after_ms if usual is None else max(after_ms, STOP * usual.most_ms)
    stays, readable = _stays(context, group), _readable_ends(context)
    held: list[tuple[dict[str, Any], _Held]] = []
    for row in owned:
        place = row["topic"], row["partition"]
        if place in spans or place not in readable:
            continue
        found = _held(context, row, stays.get(place, []), limit, readable[place])
        if found is not None:
            held.append((row, found))
    if not held:
        return None
    places = sorted({(row["topic"], row["partition"]) for row, _ in held})
    firsts = [stays[place][0].given for place in places if stays.get(place)]
    row, of_row = held[0]
    since, *first = min(firsts) if firsts else (of_row.since_ms, row["log_partition"], row["log_offset"])
    counts = [each.records for _, each in held]
    owners = {row["member_id"] for row, _ in held}
    empty = _times_without_members(context, group, since)
    members = kept(context.table("members"), equal(context.table("members"), "group_id", group))
    current = {place: of_place[-1] for place, of_place in spans.items() if of_place[-1].to_ms is None}
    ended = [of_place[-1] for place, of_place in spans.items() if place not in current]
    return Uncommitted(
        group,
        [each for each in without_old_copies(context, members).to_pylist() if each["member_id"] in owners],
        places,
        since,
        (first[0], first[1]),
        min(each.held_ms for _, each in held),
        any(each.with_former for _, each in held),
        _sum_if_known(counts),
        len(empty),
        _sum_if_known([_written_between(log_ends(context), place, *gap) for place in places for gap in empty]),
        current,
        max(ended, key=lambda each: each.from_ms or 0, default=None),
    )


def _readable_ends(context: RuleContext) -> dict[Place, int]:
    """How far clients with any isolation level can read: not beyond an open transaction."""
    return context.once(_readable)


def _readable(context: RuleContext) -> dict[Place, int]:
    rows = context.table("log_ends").select(["topic", "partition", "log_start_offset", "last_stable_offset"])
    ends, found = known_ends(context), {}
    for row in rows.to_pylist():
        place = row["topic"], row["partition"]
        if place in ends:
            stable = row["last_stable_offset"]
            end = ends[place] if stable is None else min(ends[place], stable)
            if end > (row["log_start_offset"] or 0):
                found[place] = end
    return found


@dataclass(slots=True)
class _Stay:
    """The time for which a member had a partition."""

    member_id: str
    given: _Given
    to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Held:
    """How long members had a partition without a commit."""

    since_ms: int
    held_ms: int
    with_former: bool
    records: int | None


def _held(context: RuleContext, row: dict[str, Any], stays: list[_Stay], limit: int, end: int) -> _Held | None:
    """How long a partition was held, if that is long enough: by its present member or else by all members that stayed
    long enough to commit."""
    place, ends = (row["topic"], row["partition"]), log_ends(context)
    own = [each.given[0] for each in stays if each.member_id == row["member_id"]]
    since = own[-1] if own else row["log_timestamp_ms"]
    if since is None:
        return None
    records = _written(ends, place, since, context.at_ms - limit, end)
    if context.at_ms - since >= limit:
        return None if records == 0 else _Held(since, context.at_ms - since, False, records)
    spans = [(each.given[0], context.at_ms if each.to_ms is None else each.to_ms) for each in stays]
    spans = [(start, to) for start, to in spans if to - start >= _LEAST_STAY_MS]
    held = sum(to - start for start, to in spans)
    if held < limit:
        return None
    records = _written(ends, place, spans[0][0], context.at_ms - limit, end)
    return _Held(spans[0][0], held, True, records) if records != 0 else None


def _stays(context: RuleContext, group: str) -> dict[Place, list[_Stay]]:
    """The members that had each partition, in log order. A stay ends when the member leaves."""
    rows = context.table("timeline")
    rows = kept(
        rows,
        equal(rows, "group_id", group),
        equal(rows, "event", "assignment_changed", "member_left", "member_replaced"),
        pc.is_valid(rows["at_timestamp_ms"]),
    )
    found: dict[Place, list[_Stay]] = {}
    for row in rows.to_pylist():
        detail, at_ms = json.loads(row["detail"]) if row["detail"] else {}, row["at_timestamp_ms"]
        gone = detail.get("former_member_id") if row["event"] == "member_replaced" else row["member_id"]
        lost = None if row["event"] != "assignment_changed" else set(places_of(detail.get("lost", {})))
        for place, stays in found.items():
            if stays[-1].member_id == gone and stays[-1].to_ms is None and (lost is None or place in lost):
                stays[-1].to_ms = at_ms
        for place in places_of(detail.get("gained", {})):
            of_place = found.setdefault(place, [])
            if of_place and of_place[-1].to_ms is None:
                of_place[-1].to_ms = at_ms
            of_place.append(_Stay(row["member_id"], (at_ms, row["log_partition"], row["log_offset"])))
    return found


def _times_without_members(context: RuleContext, group: str, since_ms: int) -> list[tuple[int, int]]:
    """The finished periods in which the group had no members, after a given time."""
    rows = context.table("timeline")
    rows = kept(rows, equal(rows, "group_id", group), equal(rows, "event", "emptied", "member_joined"))
    found: list[tuple[int, int]] = []
    emptied: int | None = None
    for event, at_ms in zip(rows["event"].to_pylist(), rows["at_timestamp_ms"].to_pylist(), strict=True):
        if event == "emptied":
            emptied = at_ms
        elif emptied is not None and at_ms is not None:
            if emptied >= since_ms:
                found.append((emptied, at_ms))
            emptied = None
    return found


def _written_between(logs: LogEnds, place: Place, from_ms: int, to_ms: int) -> int | None:
    first, then = logs.end_at(place, from_ms), logs.end_at(place, to_ms)
    return None if first is None or then is None else max(then - first, 0)


def _sum_if_known(counts: list[int | None]) -> int | None:
    return None if None in counts else sum(each for each in counts if each is not None)


def _written(logs: LogEnds, place: Place, since_ms: int | None, until_ms: int, end: int) -> int | None:
    """The number of records that a member could read since it was assigned a partition; 0 if the first of them are too
    new, None if the times of the records are unknown."""
    first, then = logs.end_at(place, since_ms), logs.end_at(place, until_ms)
    if first is None or then is None:
        return None if logs.written_ms(place, logs.start(place) or 0) is None else 0
    return max(end - first, 0) if min(then, end) > first else 0
