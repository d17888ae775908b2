"""Selects the findings of a report about some topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.query import topic_columns
from kafka_records_tables.selection import names_topic
from kafka_records_tables.tables import TABLES

if TYPE_CHECKING:
    from kafka_records_tables.report.case_columns import RowMask
    from kafka_records_tables.report.rule_context import RuleContext

_OF_CASES: Final = ("topic", "topic_list", "partitions", "holds_back")
"""Columns with topics in the cases of rules; the last two are from `open_transactions`."""
_OF_A_LOG: Final = "log_topic"
"""The column with the coordinator's topic whose log a case is about."""


def about_topics(context: RuleContext, cases: pa.Table) -> pa.Table:
    """The cases about the requested topics.

    A case that names topics is kept if one of them matches. A case that names only a group is kept if the group has a
    row about such a topic. A case that names neither, such as a damaged coordinator log, is kept because findings about
    all topics depend on it. Rules see all rows, so their counts for a group or a transaction are complete.
    """
    patterns = context.request.topic_filter
    if not patterns or _OF_A_LOG in cases.column_names:
        return cases
    columns = [cases[name].combine_chunks() for name in _OF_CASES if name in cases.column_names]
    names_any, passes = _any_of(columns, ("*",), cases), _any_of(columns, patterns, cases)
    if "group_id" in cases.column_names:
        ids = cases["group_id"].combine_chunks()
        of_group = pc.or_(pc.is_null(ids), pc.is_in(ids, context.once(_groups)))
        return cases.filter(pa.array(passes | (~names_any & of_group.to_numpy(zero_copy_only=False))))
    return cases.filter(pa.array(passes | ~names_any))


def _groups(context: RuleContext) -> Any:
    """The groups with a row about a selected topic, or with members that subscribe to one."""
    found = [pa.array([], pa.string())]
    for name, rows in context.tables.items():
        columns = ("subscribed_topics", "regex_topics") if name == "members" else topic_columns(TABLES[name])
        if columns and "group_id" in rows.column_names:
            told = [rows[column].combine_chunks() for column in columns]
            hits = _any_of(told, context.request.topic_filter, rows)
            found.append(rows["group_id"].filter(pa.array(hits)).combine_chunks().unique())
    return pa.concat_arrays(found)


def _any_of(columns: list[Any], patterns: tuple[str, ...], rows: pa.Table) -> RowMask:
    """Selects rows in which any of the columns names a selected topic."""
    found = np.zeros(rows.num_rows, bool)
    for column in columns:
        found |= names_topic(column, patterns)
    return found
