"""Applies a query to the rows of a table, either as they arrive or sorted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import translate
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.query import Condition, Query, QueryError, topic_columns
from kafka_records_tables.tables.sorted_rows import is_sorted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kafka_records_tables.tables.declaration import Table

HELD: Final = 512 * 1024 * 1024
"""The number of bytes of rows to keep for sorting if no order was requested."""

_SPARE: Final = 65_536
"""The number of rows beyond a limit to collect before they are sorted and cut off."""

_COMPARED: Final = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


class Selection:
    """The rows of `table` that a query requests, as `pyarrow.RecordBatch`es of `schema`. They can be read only once.

    Parameters
    ----------
    table
        The table that the rows are from.
    rows
        All rows, in any order.
    query
        The rows, columns and order to return.
    most_held
        The maximum number of bytes of rows to keep for sorting. If there are more, all rows are returned in no
        particular order. None means that all rows are sorted, regardless of memory. With a limit, memory is needed only
        for that many rows.
    soon
        The number of rows to return before all rows are sorted, for a reader that may not need more.
    """

    def __init__(
        self,
        table: Table,
        rows: Iterable[pa.RecordBatch],
        query: Query,
        most_held: int | None = None,
        *,
        soon: int = 0,
    ) -> None:
        self._table = table
        self._rows = rows
        self._query = query
        self._most_held = most_held
        self._soon = soon
        self.schema = pa.schema([table.schema.field(name) for name in query.columns])
        sorted_by = [key.column for key in query.order if key.column not in query.columns]
        self._held = pa.schema([*self.schema, *(table.schema.field(name) for name in sorted_by)])
        self.is_sorted = True
        """Whether the rows are sorted as the query requests. Known once the first row is returned."""
        self.matching = 0
        """The number of rows that match, complete after the last row. With a limit, fewer rows may be returned."""
        self.nulls: Counter[str] = Counter()
        """For each column, the number of rows that a condition excluded because their value is null."""
        self.stopping = 0
        """The number of all rows about a record that a coordinator refuses to load (`Column.stopping`)."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        rows = self._matching()
        if self._query.limit is None:
            yield from self._all(rows)
        else:
            yield from self._shown(self._first(rows, self._query.limit).to_batches())

    def _matching(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rows:
            kept = batch
            self.stopping += _stopping(batch, self._table)
            for each in self._query.conditions:
                if each.operator not in ("is null", "is not null"):
                    self.nulls[each.column] += kept.column(each.column).null_count
                kept = kept.filter(holds(kept, each))
            if self._query.topics:
                kept = kept.filter(_about(kept, self._table, self._query.topics))
            if kept.num_rows:
                self.matching += kept.num_rows
                yield _projected(kept, self._held)

    def _all(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in rows:
            held.append(batch)
            size += batch.nbytes
            if self._most_held is not None and size > self._most_held:
                self.is_sorted = False
                yield from self._shown(held)
                held = []
                yield from self._shown(rows)
                return
        soon = self._soon if self.matching > self._soon else 0
        if soon:
            yield from self._shown(self._ordered(self._candidates(held, soon)).slice(0, soon).to_batches())
        yield from self._shown(self._ordered(held).slice(soon).to_batches())

    def _first(self, rows: Iterator[pa.RecordBatch], limit: int) -> pa.Table:
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in rows:
            held.append(batch)
            count += batch.num_rows
            if count > 2 * limit + _SPARE:
                held = self._ordered(self._candidates(held, limit)).slice(0, limit).to_batches()
                count = sum(each.num_rows for each in held)
        return self._ordered(self._candidates(held, limit)).slice(0, limit)

    def _candidates(self, rows: list[pa.RecordBatch], limit: int) -> list[pa.RecordBatch]:
        """The rows that may be among the first `limit`, judged by the first sort column only, because sorting all rows
        takes much longer than finding the last value that counts."""
        if not limit or not self._query.order or sum(batch.num_rows for batch in rows) <= _SPARE:
            return rows
        key = self._query.order[0]
        kind = self._held.field(key.column).type
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_timestamp(kind)):
            return rows
        column = pa.chunked_array([batch.column(key.column) for batch in rows]).drop_null()
        if len(column) < limit:
            return rows
        order = "descending" if key.descending else "ascending"
        places = pc.select_k_unstable(pa.table({"key": column}), limit, [("key", order)])
        last = column[places[-1].as_py()]
        is_first = pc.greater_equal if key.descending else pc.less_equal
        return [batch.filter(pc.fill_null(is_first(batch.column(key.column), last), False)) for batch in rows]

    def _ordered(self, rows: list[pa.RecordBatch]) -> pa.Table:
        table = pa.Table.from_batches(rows, self._held)
        order = [(key.column, "descending" if key.descending else "ascending") for key in self._query.order]
        if not any(key.descending for key in self._query.order) and is_sorted(
            table, [key.column for key in self._query.order]
        ):
            return table
        try:
            return table.sort_by(order)
        except pa.ArrowInvalid as error:
            # The offsets of a string column have 32 bits.
            raise QueryError(
                "one column of the rows has more than 2 GiB of text, which cannot be sorted: select fewer rows or "
                "columns, or write json, csv or parquet without sorting"
            ) from error

    def _shown(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            yield _projected(batch, self.schema)


def _projected(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)


def holds(rows: pa.RecordBatch, condition: Condition) -> pa.Array:
    """Flags rows for which a condition is true, without nulls."""
    column = rows.column(condition.column)
    if condition.operator == "is null":
        return pc.is_null(column)
    if condition.operator == "is not null":
        return pc.is_valid(column)
    if condition.operator == "~":
        return pc.fill_null(pc.match_substring(column, str(condition.value)), False)
    value = pa.scalar(condition.value, column.type)
    return pc.fill_null(_COMPARED[condition.operator](column, value), False)


def _stopping(rows: pa.RecordBatch, table: Table) -> int:
    return sum(
        int(pc.sum(pc.is_in(rows.column(column.name), pa.array(column.stopping))).as_py() or 0)
        for column in table.columns
        if column.stopping
    )


def _about(rows: pa.RecordBatch, table: Table, patterns: Iterable[str]) -> pa.Array:
    """Flags rows about a topic that one of the patterns matches."""
    found = [names_topic(rows.column(name), patterns) for name in topic_columns(table)]
    return pa.array(np.logical_or.reduce(found))


def names_topic(column: Any, patterns: Iterable[str]) -> NDArray[np.bool_]:
    """Flags rows in which a column names a topic that matches one of the patterns. The column has strings, lists of
    strings, or lists of structs with a `topic`."""
    if not pa.types.is_list(column.type):
        return np.asarray(_hits(column, patterns))
    members = column.flatten()
    topics = members if pa.types.is_string(members.type) else members.field("topic")
    found = np.bincount(pc.list_parent_indices(column).to_numpy()[_hits(topics, patterns)], minlength=len(column))
    return np.asarray(found > 0)


def _hits(topics: pa.Array, patterns: Iterable[str]) -> Any:
    matches = [re.compile(translate(pattern)).match for pattern in patterns]
    coded = topics.dictionary_encode()
    known = [name is not None and any(match(name) for match in matches) for name in coded.dictionary.to_pylist()]
    # The last element represents null.
    return np.array([*known, False])[coded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)]
