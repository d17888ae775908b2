"""Groups that keep up, and scale as often as before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.group_facts import Place
from kafka_records_tables.report.facts.known_logs import ends_of_logs, without_end
from kafka_records_tables.report.facts.short_stays import short_stays
from kafka_records_tables.report.facts.usual_values import as_often_as_ever
from kafka_records_tables.report.rule_context import RuleContext, length
from kafka_records_tables.report.rules.slow_groups import find as find_slow
from kafka_records_tables.tables.words.timeline_words import UNCHANGED


def rebalances(context: RuleContext) -> pa.Table:
    """Epoch changes that give some member a new target."""
    rows = context.table("timeline")
    return kept(
        rows, equal(rows, "event", "epoch"), pc.invert(pc.match_substring(rows["detail"], f'"target": "{UNCHANGED}"'))
    )


def usual_of_scaling(context: RuleContext, groups: list[str]) -> dict[str, str]:
    """A sentence about each given group that scales, is not known to fall behind anywhere, and rebalances as often as
    before."""
    slow = _slow_groups(context)
    unknown = {group: without_end(context, [group]) for group in groups if group not in slow}
    moved = _last_moves(context, unknown)
    rows = rebalances(context)
    rows = kept(rows, equal(rows, "group_id", *moved))
    events: dict[str, list[tuple[int, int]]] = {each: [] for each in moved}
    for row in rows.select(["group_id", "at_timestamp_ms", "member_count"]).to_pylist():
        if row["at_timestamp_ms"] is not None and row["member_count"]:
            events[row["group_id"]].append((row["at_timestamp_ms"], row["member_count"]))
    found = {}
    for group, changes in events.items():
        gap, half = as_often_as_ever(at for at, _ in changes), len(changes) // 2
        sizes = {size for _, size in changes[half:]}
        places = unknown[group]
        # Without log ends, the group may have stopped consuming, unless it still commits.
        works = not places or moved[group] >= sorted(at for at, _ in changes)[half]
        # If members drop out and return one at a time, the size changes by one.
        if gap is not None and works and max(sizes) - min(sizes) > 1:
            behind = "no partition falls behind"
            if places:
                behind = f"whether a partition falls behind is unknown: the source lacks {ends_of_logs(places)}"
            found[group] = (
                f" That is usual for this group: half of the first {half} of its rebalances in the log"
                f" came within {length(gap.median_ms)} of the previous one, and later ones at most twice as often. It"
                f" scales between {min(sizes)} and {max(sizes)} members, and {behind}."
            )
    return found


def falls_behind(context: RuleContext, groups: Sequence[str]) -> set[str]:
    """The given groups that are known to fall behind in a partition."""
    progress = context.table("progress")
    progress = kept(progress, equal(progress, "group_id", *groups), pc.invert(equal(progress, "state", "ok", "idle")))
    behind = set(kept(progress, pc.is_valid(progress["state"]))["group_id"].to_pylist())
    return behind | _slow_groups(context).intersection(groups)


def _slow_groups(context: RuleContext) -> set[str]:
    return {group for each in context.once(find_slow) for group in each.finding.group_ids}


def _last_moves(context: RuleContext, unknown: Mapping[str, Sequence[Place]]) -> dict[str, int]:
    """The groups that do not fall behind in any partition, except in given partitions, where this is unknown. For each
    group, the time at which its offset in one of these last moved."""
    progress = context.table("progress")
    progress = kept(progress, equal(progress, "group_id", *unknown))
    moved: dict[str, int] = {}
    behind = set(context.once(short_stays))
    columns = ["group_id", "topic", "partition", "state", "changed_timestamp_ms"]
    for group, *place, state, changed_ms in zip(*(progress[name].to_pylist() for name in columns), strict=True):
        is_unknown = state is None and tuple(place) in unknown[group]
        moved[group] = max(moved.get(group, 0), (changed_ms or 0) if is_unknown else 0)
        # A partition whose state is unknown for another reason may also fall behind.
        if state not in ("ok", "idle") and not is_unknown:
            behind.add(group)
    return {group: at_ms for group, at_ms in moved.items() if group not in behind}
