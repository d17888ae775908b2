"""Stores columns that several tables of an answer share only once in memory."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import pyarrow as pa

_FEW: Final = 10_000
"""The number of rows up to which a table is not worth the search."""


class SharedColumns:
    """The columns of an answer's tables so far. With a million committed offsets, half of the tables repeat groups,
    topics and partitions."""

    def __init__(self) -> None:
        self._known: defaultdict[tuple[int, str], list[pa.ChunkedArray]] = defaultdict(list)

    def shared(self, table: pa.Table) -> pa.Table:
        """The same rows. Columns that are equal to earlier columns share their memory."""
        if table.num_rows <= _FEW:
            return table
        return pa.table([self._column(column) for column in table.columns], schema=table.schema)

    def _column(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        same = self._known[len(column), str(column.type)]
        for known in same:
            if known.null_count == column.null_count and known.equals(column):
                return known
        same.append(column)
        return column
