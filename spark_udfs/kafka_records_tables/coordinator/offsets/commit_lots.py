"""Collects commits and tombstones of offsets into large batches, so that each key is decoded only once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_engine.findings import reason_of
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.records.decoded_records import (
    DecodedRecords,
    are_of_types,
    numbers_of,
    undecodable,
)
from kafka_records_tables.coordinator.records.latest import codes_of, joined
from kafka_records_tables.coordinator.records.lot_size import LOT_BYTES, LOT_ROWS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema


_MOST_LOTS: Final = 4
"""The number of small batches after which rows may be cut even within a batch of the log, because a source may report
the same base offset for all rows."""


class Lots:
    """Joins small batches into larger ones, so that many rows share few keys. Records from one batch of the log stay
    together if the source reports batches, unless the batch is very large."""

    def __init__(self) -> None:
        self._waiting: list[pa.RecordBatch] = []
        self._count = self._size = 0
        self._wanted = 1
        """The number of small batches to collect before they are joined again."""

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add the rows that follow. Yields rows once enough have been collected."""
        self._waiting.append(batch)
        self._count += batch.num_rows
        self._size += batch.nbytes
        if self._count < self._wanted * LOT_ROWS and self._size < self._wanted * LOT_BYTES:
            return
        rows = joined(self._waiting)
        whole = _whole_batches(rows)
        if not whole and self._wanted < _MOST_LOTS:
            # Wait for twice as many rows before the next attempt, because each attempt concatenates all rows.
            self._waiting, self._wanted = [rows], 2 * self._wanted
            return
        whole, self._wanted = whole or rows.num_rows, 1
        left = rows.slice(whole)
        self._waiting, self._count, self._size = [left], left.num_rows, left.nbytes
        yield rows.slice(0, whole)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The remaining rows."""
        if self._waiting:
            yield joined(self._waiting)
            self._waiting = []


def _whole_batches(rows: pa.RecordBatch) -> int:
    """The number of rows before the last batch."""
    if "base_offset" not in rows.schema.names:
        return int(rows.num_rows)
    batches = rows.column("base_offset").fill_null(-1).to_numpy()
    if batches[-1] < 0:
        return len(batches)
    return int(np.append(-1, np.flatnonzero(batches != batches[-1]))[-1]) + 1


def of_offsets(batch: pa.RecordBatch, schemas: Mapping[int, RecordSchema]) -> pa.RecordBatch:
    """The commits and tombstones of offsets among raw rows."""
    numbers, _ = prefix_column(batch.column("key"))
    is_commit = are_of_types(numbers, numbers_of(schemas, COMMITS))
    is_commit &= batch.column("control").is_null().to_numpy(zero_copy_only=False)
    return batch if is_commit.all() else batch.filter(pa.array(is_commit))


class CommitLot:
    """The commits and tombstones among the given raw rows, in log order. Each array has one element per commit or
    tombstone."""

    def __init__(self, batch: pa.RecordBatch, schemas: Mapping[int, RecordSchema]) -> None:
        self.types = numbers_of(schemas, COMMITS)
        self.rows = of_offsets(batch, schemas)
        self.codes = codes_of([self.rows.column("key")]) if self.rows.num_rows else np.zeros(0, np.int64)
        """For each row, the number of its key. Keys are compared as bytes."""
        first = first_of_each(self.codes)
        places = [name for name in ("offset", "key", "file", "position", "base_offset") if name in batch.schema.names]
        self.keys = DecodedRecords(self.rows.select(places).take(pa.array(first)), schemas)
        """The keys; the number of a key is its index here."""

    @cached_property
    def _groups(self) -> pa.DictionaryArray:
        return self.keys.member(self.types, "key", "group").dictionary_encode()

    @cached_property
    def _topics(self) -> pa.DictionaryArray:
        return self.keys.member(self.types, "key", "topic").dictionary_encode()

    @cached_property
    def groups(self) -> list[str]:
        """The distinct groups."""
        names: list[str] = self._groups.dictionary.to_pylist()
        return names

    @cached_property
    def topics(self) -> list[str]:
        """The distinct topics."""
        names: list[str] = self._topics.dictionary.to_pylist()
        return names

    @cached_property
    def group(self) -> INT64:
        """For each row, the index of its group in `groups`; -1 if the key cannot be read."""
        return _places(self._groups)[self.codes]

    @cached_property
    def topic(self) -> INT64:
        """For each row, the index of its topic in `topics`; -1 if the key cannot be read."""
        return _places(self._topics)[self.codes]

    @cached_property
    def offsets(self) -> INT64:
        """The offset of each row in the log."""
        offsets: INT64 = self.rows.column("offset").to_numpy()
        return offsets

    @cached_property
    def is_tombstone(self) -> FLAGS:
        """Whether the value is null."""
        flags: FLAGS = self.rows.column("value").is_null().to_numpy(zero_copy_only=False)
        return flags

    @cached_property
    def pair(self) -> INT64:
        """For each row, a number for the pair of group and topic. Each unreadable key has its own number."""
        group, topic = _places(self._groups), _places(self._topics)
        of_key = np.where(group < 0, -1, group * (len(self.topics) + 1) + topic)
        _, numbers = np.unique(of_key, return_inverse=True)
        found: INT64 = numbers[self.codes]
        return found

    def report(self, context: Context, consequence: str) -> None:
        """Report the rows with undecodable keys. Count the irregularities accepted in all other keys, once per row
        although each key was decoded only once."""
        found, rows = self.keys.columns, self.rows
        for row in np.flatnonzero(np.isin(self.codes, list(found.errors))).tolist() if found.errors else ():
            code = int(self.codes[row])
            error = found.errors[code]
            if context.findings.has_room("damage", reason_of(error)):
                number = int(found.record_type[code]) if found.has_type[code] else None
                context.findings.add(undecodable(rows, row, error, context, number, consequence))
        times = np.bincount(self.codes, minlength=len(found.key_bytes_left))
        context.counts.bytes_left += int((times * found.key_bytes_left).sum())
        context.counts.with_bytes_left += int(times[found.key_bytes_left > 0].sum())
        for code, names in found.leniencies.items():
            for name in names:
                context.counts.leniencies[name] += int(times[code])

    def batch_offsets(self) -> INT64:
        """For each row, the offset of the first record in its batch of the log; the row's own offset if the source does
        not report batches."""
        if "base_offset" not in self.rows.schema.names:
            return self.offsets
        told = self.rows.column("base_offset").fill_null(-1).to_numpy()
        return np.where(told < 0, self.offsets, told)

    def group_names(self, rows: INT64) -> pa.DictionaryArray:
        """The groups of the chosen rows."""
        return _named(self.group[rows], self.groups)


def _places(encoded: pa.DictionaryArray) -> INT64:
    """The indexes of a dictionary array, with -1 for null."""
    places: INT64 = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
    return places


def _named(codes: INT64, names: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int64(), mask=codes < 0), pa.array(names, pa.string()))


def first_of_each(codes: INT64) -> INT64:
    """For each code, the index of the first row with this code; -1 counts as a code."""
    if not len(codes):
        return np.zeros(0, np.int64)
    first = np.full(int(codes.max()) + 2, -1, np.int64)
    # numpy keeps the last assignment to an index.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first[first >= 0]


def first_behind(ends: list[tuple[int, int]], codes: INT64, offsets: INT64) -> INT64:
    """For each code and offset in `ends`, the index of the first row with that code after that offset, if there is one.
    The rows are sorted by offset."""
    if not ends:
        return np.zeros(0, np.int64)
    ended, ended_at = np.array(ends, np.int64).T
    rows = np.flatnonzero(np.isin(codes, ended))
    # Combine code and place into one number, so that one binary search finds the next row of a code.
    width = len(codes) + 1
    there = np.sort(codes[rows].astype(np.int64) * width + rows)
    found = np.append(there, -1)[np.searchsorted(there, ended * width + np.searchsorted(offsets, ended_at))]
    behind: INT64 = found[found // width == ended] % width
    return behind
