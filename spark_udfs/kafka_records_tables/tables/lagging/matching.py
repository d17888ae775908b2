"""Joins rows by their keys. It finds the positions of matching rows, so that existing columns are not copied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.records.latest import codes_of_same


def with_columns(rows: pa.Table, others: pa.Table, key: Sequence[str]) -> pa.Table:
    """A left outer join: the rows in order, with the columns of the row of `others` that has the same key, or null. A
    null in a key does not equal anything. If several rows of `others` have the same key, the row is repeated for each
    of them, in no particular order."""
    found = _places(rows, others, key)
    if found is None:
        return rows.join(others, list(key), use_threads=False)
    for name in others.column_names:
        if name not in key:
            rows = rows.append_column(others.schema.field(name), others[name].combine_chunks().take(found))
    return rows


def has_match(rows: pa.Table, others: pa.Table, key: Sequence[str]) -> pa.Array:
    """For each row, whether a row of `others` has the same key."""
    own, theirs = _codes(rows, others, key)
    return pc.is_in(own, theirs.drop_null())


def _places(rows: pa.Table, others: pa.Table, key: Sequence[str]) -> pa.Array | None:
    """For each row, the index of the row in `others` with the same key, or null; None if several of them have the same
    key."""
    own, theirs = _codes(rows, others, key)
    known = pc.index_in(own, theirs.drop_null() if theirs.null_count else theirs)
    if theirs.null_count:
        known = pa.array(np.flatnonzero(theirs.is_valid()), pa.int64()).take(known)
    return known if pc.count_distinct(theirs, mode="only_valid").as_py() == len(theirs) - theirs.null_count else None


def _codes(rows: pa.Table, others: pa.Table, key: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """A number for each key in both tables, equal for equal keys; null if any part of the key is null."""
    both = pa.concat_tables([rows.select(key), others.select(key)])
    columns = [both[name] for name in key]
    is_null = np.logical_or.reduce([pc.is_null(each).to_numpy() for each in columns])
    found = pa.array(codes_of_same(columns), pa.int64(), mask=is_null)
    return found.slice(0, rows.num_rows), found.slice(rows.num_rows)
