"""Reads the tagged fields at the end of a struct of a flexible version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns._arrow_types import UNKNOWN_TAGS_TYPE
from kafka_records_engine.columns._cursor import Cursor, ElementSet, RowBlock, Slices
from kafka_records_engine.columns._interfaces import Broken, Members, Plan
from kafka_records_engine.columns._leaves import raw_bytes
from kafka_records_engine.columns._slots import Scanned, Slot, SlotVectors
from kafka_records_engine.columns._steps import hop_uvarint
from kafka_records_engine.columns.arrow_arrays import Constant, at, joined, lists, structs
from kafka_records_engine.numpy_types import INT64
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS
from kafka_records_runtime.wire.primitives import MAX_TAG

_MOST_TAGS: Final = 64
"""The maximum number of tags in one struct. Rows with more are left to the schema walker, because each tag costs one
step over the vectors."""


@dataclass(frozen=True, slots=True)
class KnownTag:
    """A tagged field: its name, the plan that reads its payload, and its value in structs without it."""

    name: str
    plan: Plan
    default: Constant


@dataclass(slots=True)
class _Payloads:
    """The payloads of a tag: the elements they belong to, their starts and stops, and their tags."""

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
        """Elements, starts, stops and tags of all payloads, sorted by element and then by position."""
        vectors = [np.concatenate(each) for each in (self.index, self.starts, self.stops, self.tags)]
        order = np.argsort(vectors[0], kind="stable")
        index, starts, stops, tags = (vector[order] for vector in vectors)
        return index, starts, stops, tags


@dataclass(slots=True)
class _Found:
    """The payloads of known fields by tag, and the payloads of all other tags."""

    known: dict[int, _Payloads] = field(default_factory=dict)
    unknown: _Payloads = field(default_factory=_Payloads)


class TagSection:
    """The section of tagged fields: a count, then for each field its tag, the size of its payload, and the payload.

    Tags are in ascending order. Only the position and the count are noted: `build` reads the sections that have tags a
    second time.
    """

    def __init__(self, known: Mapping[int, KnownTag], misplaced: Iterable[int], keeps_unknown: bool) -> None:
        """`known` are the fields by tag, `misplaced` the tags that must not occur here, because their fields are not
        tagged in this version. With `keeps_unknown`, tags that the schema does not define become a member."""
        self._known = known
        self._misplaced = np.array(sorted(misplaced), np.int64)
        self._keeps_unknown = keeps_unknown
        self._none: Final = Constant(UNKNOWN_TAGS_TYPE, [])
        self._positions = Slot("tagged fields: positions", "i8")
        self._counts = Slot("tagged fields: counts", "i8")
        self.slots = [self._positions, self._counts]

    def scan(self, cursor: Cursor, notes: SlotVectors) -> None:
        pos = cursor.pos
        counts = self._walk(cursor, None)
        notes[self._positions] = pos
        notes[self._counts] = counts

    def build(self, scanned: Scanned, members: Members) -> None:
        pos, counts = scanned.vector(self._positions), scanned.vector(self._counts)
        found = _Found()
        index = np.flatnonzero(scanned.live(counts > 0))
        if index.size:
            some = scanned.inside(pos[index], index)
            self._walk(some, found, index)
        self._fill(scanned, found, members)

    def read(self, cursor: Cursor, members: Members) -> None:
        found = _Found()
        self._walk(cursor, found)
        self._fill(cursor, found, members)

    def _fill(self, elements: ElementSet, found: _Found, members: Members) -> None:
        for tag, known in self._known.items():
            members[known.name] = self._field(elements, known, found.known.get(tag))
        if self._keeps_unknown:
            members[UNKNOWN_TAGS] = self._unknown(elements, found.unknown)

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

    def _walk(self, cursor: Cursor, found: _Found | None, names: INT64 | None = None) -> INT64:
        """Move past the section, add its payloads to `found`, and return the number of payloads per element.

        `names` are the numbers of the elements in `found`, if these differ from their numbers in the cursor.
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
            some.fail_where((tags <= last) | (tags > MAX_TAG) | np.isin(tags, self._misplaced))
            starts, stops, _ = some.slices(0, sizes)
            alive = np.ones(index.size, np.bool_) if some.dead is None else ~some.dead
            if found is not None:
                called = index if names is None else names[index]
                rows = some.rows_of(alive)
                self._add(cursor.block, rows, found, called[alive], starts[alive], stops[alive], tags[alive])
            left, last = left - 1, tags
            cursor.adopt(some, index)
            more = alive & (left > 0)
            some, index, left, last = some.select(more), index[more], left[more], last[more]
        return counts

    def _add(
        self,
        block: RowBlock,
        rows: INT64,
        found: _Found,
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
                found.known.setdefault(tag, _Payloads()).add(index[hit], starts[hit], stops[hit], tags[hit])
        if unknown.any():
            block.unknown_tags[rows[unknown]] = True
            found.unknown.add(index[unknown], starts[unknown], stops[unknown], tags[unknown])

    def _field(self, elements: ElementSet, known: KnownTag, payloads: _Payloads | None) -> pa.Array:
        count = len(elements)
        if payloads is None:
            return known.default.times(count)
        index, starts, stops, _ = payloads.in_order()
        cursor = Cursor(elements.block, starts, stops.copy(), elements.rows_of(index))
        values = known.plan.read(cursor)
        cursor.fail_where(cursor.live(cursor.pos != stops))
        if cursor.dead is not None:
            elements.fail_at(index[cursor.dead])
        if len(index) == count:
            return values
        places = np.zeros(count, np.int64)
        places[index] = np.arange(1, len(index) + 1)
        return at(joined([known.default.times(1), values]), places)

    def _unknown(self, elements: ElementSet, payloads: _Payloads) -> pa.Array:
        count = len(elements)
        if not payloads.index:
            return self._none.times(count)
        index, starts, stops, tags = payloads.in_order()
        first = np.concatenate(([0], np.cumsum(np.bincount(index, minlength=count))))
        cursor = Cursor(elements.block, starts, stops, elements.rows_of(index))
        numbers = pa.array(tags.astype(np.int32))
        data = raw_bytes(cursor, Slices(starts, stops), None)
        return lists(UNKNOWN_TAGS_TYPE, first, structs(UNKNOWN_TAGS_TYPE.value_type, [numbers, data], len(index)), None)
