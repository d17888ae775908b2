"""Finds the last record of each key in a log partition.

Rows are collected. Once there are enough, all but the last row of each key are dropped, as Kafka's log cleaner does. So
only one of a thousand commits with the same key is decoded. Memory grows with the number of keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.records.lot_size import LOT_BYTES, LOT_ROWS

LAST_VALUE: Final = "last_value"
"""A column that `Latest` adds: the offset of the key's last record that was not a tombstone, whether or not it was
committed; -1 if there was none."""


class Latest:
    """Keeps the row with the highest offset for each key, with the given `columns`, which must include `key` and
    `offset`.

    Rows may be in any order. Keys are compared as bytes, so two keys that Kafka treats as the same (record types 0 and
    1, extra bytes after a key) are different here.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self._columns = list(columns)
        self._rows: list[pa.RecordBatch] = []
        self._count = 0
        self._bytes = 0
        self._kept = 0
        self._kept_bytes = 0

    def add(self, batch: pa.RecordBatch, which: FLAGS | None = None) -> None:
        """Add all rows, or only the rows that `which` selects. They must have the column `value`, even if it is not
        kept."""
        if not batch.num_rows or (which is not None and not which.any()):
            return
        chosen = batch.select([name for name in self._columns if name in batch.schema.names])
        if LAST_VALUE in self._columns:
            offsets = batch.column("offset").to_numpy()
            values = batch.column("value")
            last = offsets
            if values.null_count:
                last = np.where(values.is_null().to_numpy(zero_copy_only=False), -1, offsets)
            chosen = chosen.append_column(LAST_VALUE, pa.array(last))
        if which is not None and not which.all():
            chosen = chosen.filter(pa.array(which))
        self._rows.append(chosen)
        self._count += chosen.num_rows
        self._bytes += chosen.nbytes
        if self._count > max(LOT_ROWS, 2 * self._kept) or self._bytes > max(LOT_BYTES, 2 * self._kept_bytes):
            self._squeeze()

    def rows(self) -> pa.RecordBatch | None:
        """The remaining rows, sorted by offset; None if there are none."""
        if not self._rows:
            return None
        self._squeeze()
        return self._rows[0]

    def _squeeze(self) -> None:
        if not _ascending(self._rows):
            rows = joined(self._rows)
            self._rows = [rows.take(pa.array(np.argsort(rows.column("offset").to_numpy(), kind="stable")))]
        codes = codes_of([rows.column("key") for rows in self._rows])
        last = _last_of_each(codes)
        if len(last) < len(codes):
            kept = joined(_taken(self._rows, last))
            if LAST_VALUE in self._columns:
                values = np.concatenate([rows.column(LAST_VALUE).to_numpy() for rows in self._rows])
                kept = _with_last_value(kept, codes, values, last)
        else:
            kept = joined(self._rows)
        self._rows = [kept]
        self._count = self._kept = kept.num_rows
        self._bytes = self._kept_bytes = kept.nbytes


def _ascending(parts: list[pa.RecordBatch]) -> bool:
    """Whether the offsets never decrease."""
    before = -1
    for part in parts:
        offsets = part.column("offset").to_numpy()
        if len(offsets) and (offsets[0] < before or not (offsets[1:] >= offsets[:-1]).all()):
            return False
        before = offsets[-1] if len(offsets) else before
    return True


def codes_of(keys: list[pa.Array]) -> INT64:
    """A number for each key, equal for equal bytes; -1 for null."""
    # One dictionary is shared by all chunks, so their bytes need not be copied into one array first.
    encoded = pa.chunked_array(keys).dictionary_encode().chunks
    indices = [each.indices.fill_null(-1) if each.null_count else each.indices for each in encoded]
    return np.concatenate([each.to_numpy() for each in indices])


def _taken(parts: list[pa.RecordBatch], rows: INT64) -> list[pa.RecordBatch]:
    """The rows at these ascending indexes of all parts taken together."""
    ends = np.cumsum([part.num_rows for part in parts])
    cuts = np.searchsorted(rows, ends)
    begins = np.concatenate([[0], cuts[:-1]])
    firsts = ends - [part.num_rows for part in parts]
    return [
        part.take(pa.array(rows[begin:end] - first))
        for part, begin, end, first in zip(parts, begins, cuts, firsts, strict=True)
        if end > begin
    ]


def _last_of_each(codes: INT64) -> INT64:
    """The index of the last row of each code, ascending."""
    # numpy keeps the last assignment to an index.
    last = np.full(int(codes.max()) + 2, -1, np.int64)
    last[codes] = np.arange(len(codes))
    return np.sort(last[last >= 0])


def _with_last_value(kept: pa.RecordBatch, codes: INT64, values: INT64, last: INT64) -> pa.RecordBatch:
    highest = np.full(int(codes.max()) + 2, -1, np.int64)
    np.maximum.at(highest, codes, values)
    at = kept.schema.get_field_index(LAST_VALUE)
    return kept.set_column(at, LAST_VALUE, pa.array(highest[codes[last]]))


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One record batch with the rows of all `batches`."""
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


def codes_of_same(keys: Sequence[pa.Array | pa.ChunkedArray]) -> INT64:
    """For each row, a number starting at 0. Rows with equal values in all `keys` have the same number. Nulls are
    equal."""
    codes = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        numbers, nothing = _numbers(key)
        pairs = pa.array(codes * (nothing + 1) + numbers)
        codes = pairs.dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def _numbers(column: pa.Array | pa.ChunkedArray) -> tuple[Any, int]:
    """A number for each row, equal for equal values, and the number for null, which is higher than all others."""
    encoded = column.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        # With one dictionary for all chunks, their values need not be copied into one array.
        chunks = encoded.unify_dictionaries().chunks
        nothing = len(chunks[0].dictionary) if chunks else 0
        parts = [each.indices.fill_null(nothing).to_numpy() for each in chunks]
        return np.concatenate([np.zeros(0, np.int64), *parts]), nothing
    nothing = len(encoded.dictionary)
    return encoded.indices.fill_null(nothing).to_numpy(), nothing


def last_of_same(offsets: INT64, *keys: pa.Array) -> FLAGS:
    """Flags for the rows that have the highest offset among all rows with the same `keys`."""
    codes = codes_of_same(keys)
    order = np.argsort(offsets, kind="stable")
    chosen = np.zeros(len(offsets), np.bool_)
    chosen[order[_last_of_each(codes[order])]] = True
    return chosen
