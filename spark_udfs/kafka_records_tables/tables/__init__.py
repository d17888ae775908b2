"""The tables, one module each: a declaration, and a function that turns the records of one log partition into rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_records_tables.tables import (
    activity,
    assigned_partitions,
    assignments,
    brokers,
    checks,
    commit_progress,
    configs,
    current_offsets,
    deletable_offsets,
    disappearances,
    expirations,
    features,
    group_checks,
    group_lag,
    groups,
    history,
    lag,
    loaded_offsets,
    loaded_share_state,
    loaded_transactions,
    log_ends,
    log_files,
    log_sizes,
    members,
    offset_commits,
    open_producers,
    open_transactions,
    partitions,
    pending_offsets,
    progress,
    regressions,
    share_checks,
    share_disappearances,
    share_group_topics,
    share_lag,
    share_partitions,
    timeline,
    topics,
    transaction_checks,
    transactions,
)
from kafka_records_tables.tables.declaration import Column, Option, Table

__all__ = [
    "TABLES",
    "Column",
    "Option",
    "Table",
    "input_called",
    "inputs_of",
    "is_of_records",
    "of_a_moment",
    "tables_read",
]

TABLES: Final[Mapping[str, Table]] = {
    module.TABLE.name: module.TABLE
    for module in (
        current_offsets,
        groups,
        members,
        assignments,
        offset_commits,
        pending_offsets,
        regressions,
        expirations,
        deletable_offsets,
        timeline,
        history,
        disappearances,
        activity,
        share_partitions,
        share_group_topics,
        share_lag,
        share_disappearances,
        transactions,
        open_transactions,
        log_ends,
        log_files,
        lag,
        group_lag,
        progress,
        checks,
        topics,
        partitions,
        configs,
        brokers,
        features,
    )
}
"""The tables by name."""

_PARTS: Final[Mapping[str, Table]] = {
    module.TABLE.name: module.TABLE
    for module in (
        assigned_partitions,
        commit_progress,
        group_checks,
        loaded_offsets,
        loaded_share_state,
        loaded_transactions,
        log_sizes,
        open_producers,
        share_checks,
        transaction_checks,
    )
}
"""Inputs of views that users cannot request."""


def input_called(name: str) -> Table:
    """The input of a view: a table, or an input that only views use."""
    return TABLES[name] if name in TABLES else _PARTS[name]


def inputs_of(view: Table) -> list[Table]:
    """The tables whose rows a view joins."""
    return [input_called(name) for name in view.inputs]


def tables_read(table: Table) -> list[Table]:
    """The tables to read for `table`: the table itself or, for a view, the tables below its inputs, which may also be
    views."""
    return [read for each in inputs_of(table) for read in tables_read(each)] if table.inputs else [table]


def of_a_moment(table: Table) -> str:
    """A hint for messages: the tables, among those from which a table is computed, that can be read as of an earlier
    time."""
    names = [each.name for each in tables_read(table) if each.name in _OF_A_MOMENT]
    return f", or ask {' and '.join(names)}, which can show that moment" if names else ""


_OF_A_MOMENT: Final = ("current_offsets", "share_partitions", "transactions")


def is_of_records(table: Table) -> bool:
    """Whether all rows are computed from records, so that the table can be read as of an earlier time, and from saved
    records. This includes views that do not require log ends."""
    return all(each.helper != "ends" or each.name in table.optional_inputs for each in tables_read(table))
