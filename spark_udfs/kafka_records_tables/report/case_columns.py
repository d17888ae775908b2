"""Operations on columns of cases, which rules apply to all rows of a table at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.levels import Level

RowMask = Any
"""A boolean array of numpy, without nulls."""


def true_where(condition: Any) -> RowMask:
    """Converts Arrow booleans to numpy; null becomes false."""
    filled = pc.fill_null(condition, False)
    if isinstance(filled, pa.ChunkedArray):
        filled = filled.combine_chunks()
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=bool)


def kept(rows: pa.Table, *conditions: Any) -> pa.Table:
    """The rows for which all conditions are true. Null counts as false."""
    holds = np.ones(rows.num_rows, bool)
    for condition in conditions:
        holds &= condition if isinstance(condition, np.ndarray) else true_where(condition)
    return rows.filter(pa.array(holds))


def equal(rows: pa.Table, column: str, *words: Any) -> Any:
    """Selects the rows in which a column has one of the given values."""
    return pc.is_in(rows[column], pa.array(words, rows.schema.field(column).type))


def numbers(rows: pa.Table, column: str, null: int = 0) -> Any:
    """A column of whole numbers or booleans as int64 in numpy."""
    filled = pc.fill_null(rows[column].cast(pa.int64()), null)
    return np.asarray(filled.to_numpy(), dtype=np.int64)


def grouped(rows: pa.Table, keys: Sequence[str], aggregates: Sequence[tuple[str, str]]) -> pa.Table:
    """One row for each value of `keys`, ordered by first appearance, with aggregates named `<column>_<function>`; lists
    keep the order of the rows."""
    return rows.group_by(list(keys), use_threads=False).aggregate(list(aggregates))


def looked_up(keys: Any, table: pa.Table, key: str, value: str) -> Any:
    """For each key, the `value` of the first row of a table with this key; null if there is none."""
    found = pc.index_in(keys, table[key].combine_chunks())
    return table[value].combine_chunks().take(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found)


def with_columns(rows: pa.Table, **columns: Any) -> pa.Table:
    """The rows with additional columns, which replace columns with the same name."""
    for name, values in columns.items():
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        at = rows.schema.get_field_index(name)
        rows = rows.append_column(name, column) if at < 0 else rows.set_column(at, name, column)
    return rows


def ranked(rows: pa.Table, levels: Any, rank: Any) -> pa.Table:
    """The rows as cases, with the additional columns `level` and `rank`."""
    return with_columns(rows, level=np.asarray(levels, np.int8), rank=np.asarray(rank, np.float64))


def level_by(*choices: tuple[RowMask, Level], default: Level) -> Any:
    """For each row, the level of the first condition that is true."""
    return np.select([mask for mask, _ in choices], [int(level) for _, level in choices], int(default))
