"""The last record of each key, out of all records of a log partition.

A thousand commits of one key cost one decode: rows gather, and whenever there are enough of them all but the last of
each key are dropped, as Kafka's own cleaner does it. Memory follows the number of keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from kafka_records_arrow.varints import FLAGS, INT64

LAST_VALUE: Final = "last_value"
"""The column that `Latest` adds: the offset of the last record of the key that was no tombstone, whatever became of
it; -1 where none was seen."""

_MOST_ROWS: Final = 262_144
"""Rows that gather before they are squeezed, or as many as there are keys if that is more."""

_MOST_BYTES: Final = 64 * 1024 * 1024


class Latest:
    """Keeps the row with the highest offset per key; `columns` of it, `key` and `offset` among them.

    Rows may come in any order of offsets. Keys are compared as bytes: two that Kafka takes for one (types 0 and 1,
    bytes behind a key) stay two here.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self._columns = list(columns)
        self._rows: list[pa.RecordBatch] = []
        self._count = 0
        self._bytes = 0
        self._kept = 0
        self._kept_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in some rows; they have a `value`, also where it is not kept."""
        if not batch.num_rows:
            return
        chosen = batch.select([name for name in self._columns if name in batch.schema.names])
        if LAST_VALUE in self._columns:
            offsets = batch.column("offset").to_numpy()
            values = batch.column("value")
            last = offsets
            if values.null_count:
                last = np.where(values.is_null().to_numpy(zero_copy_only=False), -1, offsets)
            chosen = chosen.append_column(LAST_VALUE, pa.array(last))
        self._rows.append(chosen)
        self._count += batch.num_rows
        self._bytes += chosen.nbytes
        if self._count > max(_MOST_ROWS, 2 * self._kept) or self._bytes > max(_MOST_BYTES, 2 * self._kept_bytes):
            self._squeeze()

    def rows(self) -> pa.RecordBatch | None:
        """The rows that are left, by their offsets; None when there was none."""
        if not self._rows:
            return None
        self._squeeze()
        return self._rows[0]

    def _squeeze(self) -> None:
        rows = joined(self._rows)
        offsets = rows.column("offset").to_numpy()
        if len(offsets) > 1 and not (offsets[1:] >= offsets[:-1]).all():
            rows = rows.take(pa.array(np.argsort(offsets, kind="stable")))
        codes = rows.column("key").dictionary_encode().indices
        codes = codes.fill_null(-1) if codes.null_count else codes
        last = _last_of_each(codes.to_numpy())
        if len(last) < rows.num_rows:
            kept = rows.take(pa.array(last))
            if LAST_VALUE in self._columns:
                kept = _with_last_value(kept, codes.to_numpy(), rows.column(LAST_VALUE).to_numpy(), last)
            rows = kept
        self._rows = [rows]
        self._count = self._kept = rows.num_rows
        self._bytes = self._kept_bytes = rows.nbytes


def _last_of_each(codes: INT64) -> INT64:
    """The index of the last row of each code, ascending."""
    if not len(codes):
        return np.zeros(0, np.int64)
    # Among equal indexes the last assignment wins.
    last = np.full(int(codes.max()) + 2, -1, np.int64)
    last[codes] = np.arange(len(codes))
    return np.sort(last[last >= 0])


def _with_last_value(kept: pa.RecordBatch, codes: INT64, values: INT64, last: INT64) -> pa.RecordBatch:
    highest = np.full(int(codes.max()) + 2, -1, np.int64)
    np.maximum.at(highest, codes, values)
    at = kept.schema.get_field_index(LAST_VALUE)
    return kept.set_column(at, LAST_VALUE, pa.array(highest[codes[last]]))


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch with the rows of all."""
    if len(batches) == 1:
        return batches[0]
    columns = []
    for index, field in enumerate(batches[0].schema):
        parts = [batch.column(index) for batch in batches]
        if pa.types.is_dictionary(field.type):
            whole = pa.chunked_array(parts).unify_dictionaries()
            parts = whole.chunks
        columns.append(pa.concat_arrays(parts))
    return pa.RecordBatch.from_arrays(columns, names=batches[0].schema.names)


def last_of_same(offsets: INT64, *keys: pa.Array) -> FLAGS:
    """Which rows have the highest offset among those that are equal in all `keys`."""
    codes = np.zeros(len(offsets), np.int64)
    for key in keys:
        part = key.dictionary_encode().indices
        part = part.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        _, codes = np.unique(codes * (len(offsets) + 2) + part, return_inverse=True)
    order = np.argsort(offsets, kind="stable")
    chosen = np.zeros(len(offsets), np.bool_)
    chosen[order[_last_of_each(codes[order])]] = True
    return chosen
