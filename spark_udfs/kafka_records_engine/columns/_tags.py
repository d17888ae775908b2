"""The section of tagged fields at the end of a struct of a flexible version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._arrow_types import UNKNOWN_TAGS_TYPE
from kafka_records_engine.columns._cursor import Cursor, Vector
from kafka_records_engine.columns._leaves import raw_bytes
from kafka_records_engine.columns._steps import Broken, Notes, Plan, Slots, hop_uvarint
from kafka_records_engine.columns.arrow_arrays import Constant, at, joined, lists, structs
from kafka_records_engine.numpy_types import INT64
from kafka_records_runtime.wire import MAX_TAG

_MOST_TAGS: Final = 64
"""Tags of one struct; a row with more is left to the walker, since each of them would be a round of vectors."""


@dataclass(frozen=True, slots=True)
class Known:
    """A field that may be tagged: where it goes, how its payload is read, and what it is when it is not there."""

    slot: int
    plan: Plan
    default: Constant


@dataclass(slots=True)
class _Found:
    """Payloads: the elements they belong to, where they start and stop; a tag's own number for unknown ones."""

    index: list[INT64] = field(default_factory=list)
    starts: list[INT64] = field(default_factory=list)
    stops: list[INT64] = field(default_factory=list)
    tags: list[INT64] = field(default_factory=list)

    def add(self, index: INT64, starts: INT64, stops: INT64, tags: INT64) -> None:
        self.index.append(index)
        self.starts.append(starts)
        self.stops.append(stops)
        self.tags.append(tags)

    def in_order(self) -> tuple[INT64, INT64, INT64, INT64]:
        """The same, by element and then by place in the section."""
        vectors = [np.concatenate(each) for each in (self.index, self.starts, self.stops, self.tags)]
        order = np.argsort(vectors[0], kind="stable")
        index, starts, stops, tags = (vector[order] for vector in vectors)
        return index, starts, stops, tags


class TagSection:
    """A count, then for each field its tag, the size of its payload, and the payload. Tags go up.

    `known` fields by tag; `elsewhere` are the tags of fields that are not tagged in this version, which may not come.
    `slot` is where unknown tagged fields go, None when they are not kept.
    """

    def __init__(self, known: Mapping[int, Known], elsewhere: frozenset[int], slot: int | None) -> None:
        self._known = known
        self._elsewhere = np.array(sorted(elsewhere), np.int64)
        self._slot = slot
        self._none: Final = Constant(UNKNOWN_TAGS_TYPE, [])

    notes = ("i8", "i8")

    def scan(self, cursor: Cursor, notes: Notes) -> None:
        pos = cursor.pos
        notes.extend((pos, self._walk(cursor, None)))

    def build(self, cursor: Cursor, notes: Iterator[Vector], slots: Slots) -> None:
        pos, counts = cursor.in_order(next(notes)), cursor.in_order(next(notes))
        found: dict[int | None, _Found] = {}
        index = np.flatnonzero(cursor.live(counts > 0))
        if index.size:
            some = cursor.inside(pos[index], index)
            self._walk(some, found, index)
        self._fill(cursor, found, slots)

    def read(self, cursor: Cursor, slots: Slots) -> None:
        found: dict[int | None, _Found] = {}
        self._walk(cursor, found)
        self._fill(cursor, found, slots)

    def _fill(self, cursor: Cursor, found: dict[int | None, _Found], slots: Slots) -> None:
        for tag, known in self._known.items():
            slots[known.slot] = self._field(cursor, known, found.get(tag))
        if self._slot is not None:
            slots[self._slot] = self._unknown(cursor, found.get(None))

    def skip(self, cursor: Cursor) -> None:
        self._walk(cursor, None)

    def hop(self, data: Any, pos: int, end: int) -> int:
        if pos < end and data[pos] == 0:
            return pos + 1
        count, pos = hop_uvarint(data, pos, end)
        if count > _MOST_TAGS:
            raise Broken
        for _ in range(count):
            _, pos = hop_uvarint(data, pos, end)
            size, pos = hop_uvarint(data, pos, end)
            pos += size
            if pos > end:
                raise Broken
        return pos

    def _walk(self, cursor: Cursor, found: dict[int | None, _Found] | None, names: INT64 | None = None) -> INT64:
        """Move behind the section, note its payloads in `found`, and return how many there are.

        `names` are what `found` calls the elements of the cursor; their own numbers when not given.
        """
        counts = cursor.uvarints()
        if not len(counts) or not counts.any():
            return counts
        cursor.fail_where(counts > _MOST_TAGS)
        index = np.flatnonzero(cursor.live(counts > 0))
        some, left = cursor.select(index), counts[index]
        cursor.pos = cursor.pos.copy()
        last = np.full(index.size, -1)
        while index.size:
            tags, sizes = some.uvarints(), some.uvarints()
            some.fail_where((tags <= last) | (tags > MAX_TAG) | np.isin(tags, self._elsewhere))
            starts, stops = some.spans(0, sizes)
            alive = np.ones(index.size, np.bool_) if some.dead is None else ~some.dead
            if found is not None:
                called = index if names is None else names[index]
                rows = some.rows_of(alive)
                self._note(cursor, rows, found, called[alive], starts[alive], stops[alive], tags[alive])
            left, last = left - 1, tags
            cursor.adopt(some, index)
            more = alive & (left > 0)
            some, index, left, last = some.select(more), index[more], left[more], last[more]
        return counts

    def _note(
        self,
        cursor: Cursor,
        rows: INT64,
        found: dict[int | None, _Found],
        index: INT64,
        starts: INT64,
        stops: INT64,
        tags: INT64,
    ) -> None:
        unknown = np.ones(index.size, np.bool_)
        for tag in self._known:
            hit = tags == tag
            if hit.any():
                unknown &= ~hit
                found.setdefault(tag, _Found()).add(index[hit], starts[hit], stops[hit], tags[hit])
        if unknown.any():
            cursor.batch.unknown_tags[rows[unknown]] = True
            found.setdefault(None, _Found()).add(index[unknown], starts[unknown], stops[unknown], tags[unknown])

    def _field(self, cursor: Cursor, known: Known, found: _Found | None) -> pa.Array:
        count = len(cursor)
        if found is None:
            return known.default.times(count)
        index, starts, stops, _ = found.in_order()
        payloads = Cursor(cursor.batch, starts, stops.copy(), cursor.rows_of(index))
        values = known.plan.read(payloads)
        payloads.fail_where(payloads.live(payloads.pos != stops))
        if payloads.dead is not None:
            cursor.fail_at(index[payloads.dead])
        if len(index) == count:
            return values
        places = np.zeros(count, np.int64)
        places[index] = np.arange(1, len(index) + 1)
        return at(joined([known.default.times(1), values]), places)

    def _unknown(self, cursor: Cursor, found: _Found | None) -> pa.Array:
        count = len(cursor)
        if found is None:
            return self._none.times(count)
        index, starts, stops, tags = found.in_order()
        first = np.concatenate(([0], np.cumsum(np.bincount(index, minlength=count))))
        payloads = Cursor(cursor.batch, starts, stops, cursor.rows_of(index))
        numbers = pa.array(tags.astype(np.int32))
        pairs = structs(UNKNOWN_TAGS_TYPE.value_type, [numbers, raw_bytes(payloads, starts, stops, None)], len(index))
        return lists(UNKNOWN_TAGS_TYPE, first, pairs, None)
