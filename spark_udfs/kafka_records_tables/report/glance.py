"""Key figures: counts and sums of rows, each with the rows it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from kafka_records_tables.query import query_of
from kafka_records_tables.report.report_parts import Number, Rows
from kafka_records_tables.selection import Selection
from kafka_records_tables.tables import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

_COUNTED: Final = (
    ("groups", "groups", "groups", ()),
    ("groups_with_members", "groups with members", "groups", ("member_count>0",)),
    ("classic_groups", "classic groups", "groups", ("group_kind=classic",)),
    ("simple_groups", "simple groups", "groups", ("group_kind=simple",)),
    ("consumer_groups", "consumer groups", "groups", ("group_kind=consumer",)),
    ("share_groups", "share groups", "groups", ("group_kind=share",)),
    ("streams_groups", "streams groups", "groups", ("group_kind=streams",)),
    ("members", "members", "members", ()),
    ("offsets", "committed offsets", "current_offsets", ()),
    ("pending_offsets", "offsets that wait for a transaction", "pending_offsets", ()),
    ("share_partitions", "share partitions with state", "share_partitions", ()),
    ("transactional_ids", "transactional ids", "transactions", ()),
    ("open_transactions", "open transactions", "open_transactions", ()),
    ("regressions", "offsets that went backwards", "regressions", ()),
)
"""Name, label, table, conditions."""

_SUMMED: Final = (
    ("lag", "lag of all groups, as far as it is known", "group_lag", "lag", "offsets"),
    ("commits", "commits in the log", "activity", "commits", None),
    ("completed_rebalances", "rebalances in the log", "activity", "completed_rebalances", None),
    ("key_bytes", "bytes of keys in the offsets topic", "activity", "key_bytes", "bytes"),
    ("value_bytes", "bytes of values in the offsets topic", "activity", "value_bytes", "bytes"),
)
"""Name, label, table, column, unit."""


def numbers_of(tables: Mapping[str, pa.Table]) -> tuple[Number, ...]:
    """The key figures at the top of the report, from the tables that are available."""
    return (*_counts(tables), *_sums(tables))


def _counts(tables: Mapping[str, pa.Table]) -> Iterator[Number]:
    for name, label, table, where in _COUNTED:
        if table in tables:
            yield Number(name, label, rows_of(tables[table], Rows(table, where)).num_rows, None, Rows(table, where))


def _sums(tables: Mapping[str, pa.Table]) -> Iterator[Number]:
    for name, label, table, column, unit in _SUMMED:
        if table in tables:
            total: Any = pc.sum(tables[table][column]).as_py()
            yield Number(name, label, total, unit, Rows(table), column)


def rows_of(table: pa.Table, rows: Rows) -> pa.Table:
    """The rows of a table that `table NAME --where …` prints."""
    import pyarrow as pa

    declaration = TABLES[rows.table]
    found = Selection(declaration, iter(table.to_batches()), query_of(declaration, where=rows.where), None)
    return pa.Table.from_batches(list(found), declaration.schema)
