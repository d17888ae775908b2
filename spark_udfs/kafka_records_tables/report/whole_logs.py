"""Handles logs that lack records. In such logs, the absence of a record proves nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import DAMAGED_LOG
from kafka_records_tables.report.case_columns import equal, kept, true_where
from kafka_records_tables.report.facts.known_logs import absent_partitions
from kafka_records_tables.tables.words.check_words import STATE_UNNAMED
from kafka_records_tables.topics import OFFSETS, TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext

_FROM_ABSENCE: Final = frozenset(
    (
        *("group_stands_still", "too_slow", "partitions_not_given_up", "partitions_left_out", "uneven_assignments"),
        *("offsets_expiring", "offsets_below_log_start", "offsets_unneeded", "share_groups_empty"),
        *("partitions_unassigned", "assignments_broken", "share_state_broken", "share_state_left"),
        *(
            "transaction_open",
            "transaction_of_dead_instance",
            "deleted_before_read",
            "never_commits",
            "commits_one_too_low",
            "clients_shut_out",
            "members_unsettled",
            "subscription_dropped",
            "group_id_changed",
            "grows_since_consumed",
            "streams_partitions_differ",
        ),
    )
)
"""The kinds of findings that depend on what a group or a transactional id has not done since."""

_END: Final = 2**63 - 1


def seen_by(context: RuleContext, kind: str) -> RuleContext:
    """The context for a rule. A rule that draws conclusions from absent records does not see groups and transactional
    ids whose later records may be among those that could not be read."""
    return context.once(_whole_logs) if kind in _FROM_ABSENCE else context


def _whole_logs(context: RuleContext) -> RuleContext:
    unread = _unread_from(context)
    is_unsure = any(topic == OFFSETS for topic, _ in unread) or _lacks_groups(context)
    if not unread and not is_unsure:
        return context
    groups = _last_seen(context, OFFSETS, "group_id", ("groups", "current_offsets"), unread)
    transactional = _last_seen(context, TRANSACTIONS, "transactional_id", ("transactions",), unread)
    tables = {}
    for name, rows in context.tables.items():
        whole = _without(_without(rows, "group_id", groups), "transactional_id", transactional)
        tables[name] = _without_unnamed(whole) if is_unsure and name == "checks" else whole
    return replace(context, tables=tables)


def _lacks_groups(context: RuleContext) -> bool:
    """Whether the source has no log with groups. Checked only if a rule depends on it."""
    checks = context.table("checks")
    return kept(checks, equal(checks, "check", STATE_UNNAMED)).num_rows > 0 and bool(
        absent_partitions(context, OFFSETS)
    )


def _unread_from(context: RuleContext) -> dict[tuple[str, int], int]:
    """By topic and partition, the first offset from which records are missing or unreadable. A log that ends just
    before the time of the report is complete enough if it may have been copied while a broker wrote to it."""
    settles = context.limit("report.group_settles_within")
    found: dict[tuple[str, int], int] = {}
    for each in context.ends:
        if each.is_certain or each.last_ms is None or context.at_ms - each.last_ms > settles:
            found[each.topic, each.partition] = _END
    for finding in context.reading:
        if finding.reason == DAMAGED_LOG and finding.topic is not None and finding.partition is not None:
            place = finding.topic, finding.partition
            offset = finding.base_offset if finding.base_offset is not None else _END
            found[place] = max(found.get(place, 0), offset)
    return found


def _last_seen(
    context: RuleContext, topic: str, key: str, names: tuple[str, ...], unread: dict[tuple[str, int], int]
) -> list[str]:
    """The groups, or transactional ids, whose last record precedes unreadable records."""
    last: dict[str, int] = {}
    numbers = {partition: offset for (of_topic, partition), offset in unread.items() if of_topic == topic}
    if not numbers:
        return []
    for name in names:
        rows = context.table(name).select([key, "log_partition", "log_offset"])
        for value, partition, offset in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            if partition in numbers:
                left = (offset or 0) - numbers[partition]
                last[value] = max(last.get(value, left), left)
    return [value for value, left in last.items() if left < 0]


def _without(rows: pa.Table, column: str, values: list[str]) -> pa.Table:
    if not values or column not in rows.column_names:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows[column], pa.array(values, rows.schema.field(column).type))))


def _without_unnamed(checks: pa.Table) -> pa.Table:
    """The rows, except those about share state without a group, because the group may be in records that were not
    read."""
    return kept(checks, ~true_where(equal(checks, "check", STATE_UNNAMED)))
