"""Facts about groups that several rules use: how long they were in use, when they last committed, and their present
state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import RowMask, equal, grouped, kept, looked_up, numbers, with_columns
from kafka_records_tables.report.facts.known_logs import without_end
from kafka_records_tables.report.rule_context import RuleContext, counted, listed, moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

SETTLES: Final = "report.group_settles_within"


def last_commits(context: RuleContext) -> pa.Table:
    """`group_id` and `last`, the time of each group's last commit of an offset that still exists, in milliseconds since
    1970."""
    rows = grouped(context.table("current_offsets"), ["group_id"], [("commit_timestamp_ms", "max")])
    return rows.select(["group_id", "commit_timestamp_ms_max"]).rename_columns(["group_id", "last"])


def settled(context: RuleContext, rows: pa.Table) -> RowMask:
    """Selects rows of groups without any event for `report.group_settles_within`: no member joined or left, and nothing
    was assigned. A finding about any other group may be wrong a moment later. A group without such records counts as
    settled."""
    last = looked_up(rows["group_id"], context.once(_last_events), "group_id", "at_timestamp_ms_max")
    latest = context.at_ms - context.limit(SETTLES)
    return numbers(with_columns(rows, last_event_ms=last), "last_event_ms", -(2**62)) <= latest


def _last_events(context: RuleContext) -> pa.Table:
    return grouped(context.table("timeline"), ["group_id"], [("at_timestamp_ms", "max")])


def spans(context: RuleContext) -> tuple[pa.Table, pa.Table]:
    """For each group, the start of its first window with a record (`first`) and of its last one (`last`). The latter
    has the column `is_lower_bound`, which says whether earlier records may be missing."""
    rows = context.table("activity")
    used = kept(rows, pc.or_(pc.greater(rows["commits"], 0), pc.greater(rows["completed_rebalances"], 0)))
    found = grouped(
        used,
        ["group_id"],
        [("window_start_timestamp_ms", "min"), ("window_start_timestamp_ms", "max"), ("is_lower_bound", "any")],
    )
    first = found.select(["group_id", "window_start_timestamp_ms_min"]).rename_columns(["group_id", "first"])
    names = ["group_id", "window_start_timestamp_ms_max", "is_lower_bound_any"]
    return first, found.select(names).rename_columns(["group_id", "last", "is_lower_bound"])


def stands_now(context: RuleContext, group: str, topics: Sequence[str]) -> str:
    """A sentence with the number of members that a group has at the time of the report, and its lag on topics if
    known."""
    groups = context.rows_of_group("groups", group)
    members = (groups["member_count"][0].as_py() or 0) if groups.num_rows else 0
    assigns_itself = groups["group_kind"].to_pylist() == ["simple"]
    # Clients that assign partitions to themselves are not group members.
    who = "" if assigns_itself else counted(members, "member") if members else "no members"
    has = " and ".join(filter(None, (who, to_consume(context, group, topics))))
    return f"Now it has {has}." if has else ""


def to_consume(context: RuleContext, group: str, topics: Sequence[str]) -> str:
    """The lag of a group on topics in words, empty if unknown: `12 records of "orders" to consume`."""
    rows = context.rows_of_group("lag", group)
    lag = pc.sum(kept(rows, equal(rows, "topic", *topics))["lag"]).as_py()
    least = "at least " if lag is not None and without_end(context, [group], topics) else ""
    return "" if lag is None else f"{least}{counted(lag, 'record')} of {listed(topics)} to consume"


def emptied_at(context: RuleContext, group: str) -> int | None:
    """When the last member of a group left, in milliseconds since 1970; null if no record shows it."""
    rows = context.once(_emptied)
    at: int | None = pc.max(kept(rows, equal(rows, "group_id", group))["at_timestamp_ms"]).as_py()
    return at


def _emptied(context: RuleContext) -> pa.Table:
    """The events in which groups lost their last member."""
    rows = context.table("timeline")
    return kept(rows, equal(rows, "event", "emptied"))


def with_life(context: RuleContext, rows: pa.Table, alive_within_ms: int) -> pa.Table:
    """The rows of groups, with `members`, `last_ms` (the last commit of the group) and `works` (whether it has members,
    or has committed within `alive_within_ms`)."""
    ids = rows["group_id"]
    members = pc.fill_null(looked_up(ids, context.table("groups"), "group_id", "member_count"), 0)
    rows = with_columns(rows, members=members, last_ms=looked_up(ids, context.once(last_commits), "group_id", "last"))
    works = (numbers(rows, "members") > 0) | (numbers(rows, "last_ms", -(2**62)) > context.at_ms - alive_within_ms)
    return with_columns(rows, works=works)


def life_words(context: RuleContext, group: str, members: int, last_ms: int | None) -> str:
    """Whether a group has consumers, as words that follow its name: `has 2 members, and last committed at …`."""
    committed = "" if last_ms is None else f", and last committed at {moment(last_ms)}"
    if members:
        return f"has {counted(members, 'member')}{committed}"
    emptied = emptied_at(context, group)
    return f"has {'no members' if emptied is None else f'had no members since {moment(emptied)}'}{committed}"
