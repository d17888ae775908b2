"""Partitions that members of a group have, and get records of, but for which the group has never committed an
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
)
from kafka_records_tables.report.facts.known_logs import known_ends, members_known
from kafka_records_tables.report.facts.moved_groups import without_old_copies
from kafka_records_tables.report.facts.usual_values import STOP, usual_gap
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext

_INTERNAL: Final = "__"
_PLACE: Final = ["group_id", "topic", "partition"]
_OF_TOOLS: Final = re.compile(r"console-consumer-\d+|spark-kafka-(source|relation)-.*|spark-executor-.*")
"""Groups of tools that are known not to commit: the console consumer without `--group`
(`ConsoleConsumerOptions` sets `enable.auto.commit` to false), and sources of Spark Structured Streaming."""

_Given = tuple[int, int, int]
"""When a partition was assigned, with partition and offset of the record that shows it."""


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
    """Partition and offset of the record that shows it."""
    held_ms: int
    """How long their present members have had all of them."""
    records: int | None
    """Records that were written to them since their present members have them; None if their times are unknown."""
    others: dict[Place, Span]
    """The last commits of the group for other partitions that its members have."""
    former: Span | None
    """The last commit of which the offset was deleted; None if it never committed anything else."""


def uncommitted_groups(context: RuleContext, after_ms: int) -> list[Uncommitted]:
    """The groups with such partitions, if they have had them for `after_ms`, and twice as long as ever passed between
    two of their commits."""
    owned = _suspects(context)
    names = sorted(owned)[:MOST_GROUPS]
    spans: dict[str, dict[Place, list[Span]]] = {each: {} for each in names}
    for (group, topic, partition), of_place in commit_spans(context, names).items():
        spans[group][topic, partition] = of_place
    found = (_uncommitted(context, group, owned[group], spans[group], after_ms) for group in names)
    return [each for each in found if each is not None]


def _suspects(context: RuleContext) -> dict[str, list[dict[str, Any]]]:
    """The partitions with records that members of stable groups have and for which there is no offset, by group."""
    groups = context.table("groups")
    # Kafka Streams commits by itself, and the members of Connect have no partitions of topics.
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
    rows = kept(
        rows,
        equal(rows, "role", "current"),
        pc.is_in(rows["group_id"], groups["group_id"].combine_chunks()),
        pc.is_in(rows["topic"], _topics_with_records(context)),
    )
    committed = pa.concat_tables(
        [context.table(name).select(_PLACE) for name in ("current_offsets", "pending_offsets")]
    )
    columns = [*_PLACE, "member_id", "log_timestamp_ms", "log_partition", "log_offset"]
    rows = rows.select(columns).join(committed, _PLACE, join_type="left anti", use_threads=False)
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
    (gains, first_gains), readable = _gains(context, group), _readable_ends(context)
    held: list[tuple[dict[str, Any], int, int | None]] = []
    for row in owned:
        place = row["topic"], row["partition"]
        if place in spans or place not in readable:
            continue
        since = gains.get((row["member_id"], place), (row["log_timestamp_ms"],))[0]
        records = _written(log_ends(context), place, since, context.at_ms - limit, readable[place])
        if since is not None and context.at_ms - since >= limit and records != 0:
            held.append((row, since, records))
    if not held:
        return None
    places = sorted({(row["topic"], row["partition"]) for row, *_ in held})
    firsts = [first_gains[place] for place in places if place in first_gains]
    since, *first = min(firsts) if firsts else (held[0][1], held[0][0]["log_partition"], held[0][0]["log_offset"])
    counts = [records for *_, records in held]
    owners = {row["member_id"] for row, *_ in held}
    members = kept(context.table("members"), equal(context.table("members"), "group_id", group))
    current = {place: of_place[-1] for place, of_place in spans.items() if of_place[-1].to_ms is None}
    ended = [of_place[-1] for place, of_place in spans.items() if place not in current]
    return Uncommitted(
        group,
        [each for each in without_old_copies(context, members).to_pylist() if each["member_id"] in owners],
        places,
        since,
        (first[0], first[1]),
        context.at_ms - max(at for _, at, _ in held),
        None if None in counts else sum(each for each in counts if each is not None),
        current,
        max(ended, key=lambda each: each.from_ms or 0, default=None),
    )


def _readable_ends(context: RuleContext) -> dict[Place, int]:
    """Where clients with any isolation level can read up to: not beyond an open transaction."""
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


def _gains(context: RuleContext, group: str) -> tuple[dict[tuple[str, Place], _Given], dict[Place, _Given]]:
    """When each member was last assigned each partition, and when each was assigned to any member first."""
    rows = context.table("timeline")
    rows = kept(rows, equal(rows, "group_id", group), equal(rows, "event", "assignment_changed"))
    last: dict[tuple[str, Place], _Given] = {}
    first: dict[Place, _Given] = {}
    for row in rows.to_pylist():
        for topic, partitions in (json.loads(row["detail"]) if row["detail"] else {}).get("gained", {}).items():
            if row["at_timestamp_ms"] is not None and isinstance(partitions, list):
                given = row["at_timestamp_ms"], row["log_partition"], row["log_offset"]
                for each in partitions:
                    last[row["member_id"], (topic, each)] = given
                    first.setdefault((topic, each), given)
    return last, first


def _written(logs: LogEnds, place: Place, since_ms: int | None, until_ms: int, end: int) -> int | None:
    """Records that a member could read since it was assigned a partition; 0 if the first of them are too new, None if
    the times of its records are unknown."""
    first, then = logs.end_at(place, since_ms), logs.end_at(place, until_ms)
    if first is None or then is None:
        return None if logs.written_ms(place, logs.start(place) or 0) is None else 0
    return max(end - first, 0) if min(then, end) > first else 0
