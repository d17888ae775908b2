"""Keeps a position in each of many rows, and moves all positions together.

An element is one entry of the vectors: a row, or a part of a row such as an element of an array. An element with
invalid bytes is *dead*, and its row has failed: its position and its end become zero, so every later read finds it out
of bounds again. Dead elements keep their places in all vectors, so reading needs no bookkeeping in the usual case, in
which no element is dead. Values read for a dead element are meaningless and are discarded at the end.

Every read checks each position against the end of its own row, so no row sees the bytes of another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafka_records_engine.numpy_types import FLAGS, INT64

Vector = NDArray[Any]

_LONGEST_UVARINT: Final = 5
_UNSIGNED_32: Final = 1 << 32


def _keep_free_memory() -> None:
    """Make glibc keep the memory that a batch frees, so that the next batch does not page it in again.

    glibc does so after a large block has been allocated and freed. Other allocators are not affected.
    """
    np.empty(16 << 20, np.uint8)


_keep_free_memory()


class RowBlock:
    """Rows that are decoded together: their bytes and facts about each row."""

    __slots__ = ("_views", "buffer", "data", "failed", "unknown_tags")

    def __init__(self, buffer: pa.Buffer, data: NDArray[np.uint8], rows: int) -> None:
        self.buffer = buffer
        self.data = data
        self.failed: FLAGS = np.zeros(rows, np.bool_)
        self.unknown_tags: FLAGS = np.zeros(rows, np.bool_)
        self._views: dict[str, Vector] = {}

    def at(self, kind: str, pos: INT64) -> Vector:
        """The values at some positions, as numpy's type `kind`. A value is meaningless if the buffer ends too early."""
        view = self._views.get(kind)
        if view is None:
            view = self._views[kind] = self._view(kind)
        try:
            return view[pos]
        except IndexError:  # an item may begin in the last row and end beyond the end of the buffer
            return view[np.minimum(pos, len(view) - 1)] if len(view) else np.zeros(len(pos), view.dtype)

    def _view(self, kind: str) -> Vector:
        """An item for every position of the buffer, without copying."""
        size = np.dtype(kind).itemsize
        return np.ndarray(max(len(self.data) - size + 1, 0), kind, self.data, strides=1)


class Slices(NamedTuple):
    """Ranges of bytes in the row buffer: slice i is from `starts[i]` to `stops[i]`.

    `order` is the index of each element's slice; None means that element i has slice i. Slices of dead elements are
    meaningless.
    """

    starts: INT64
    stops: INT64
    order: INT64 | None = None

    def by_element(self) -> tuple[INT64, INT64]:
        """Starts and stops in the order of the elements."""
        if self.order is None:
            return self.starts, self.stops
        return self.starts[self.order], self.stops[self.order]


class ElementSet(ABC):
    """Elements that are read together, the rows they belong to, and a flag for each dead one (`dead`, None if there are
    none)."""

    __slots__ = ("block", "dead")

    block: RowBlock
    dead: FLAGS | None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def rows_of(self, which: Any) -> INT64:
        """The rows of the block to which some elements belong. `which` is a mask or indices."""

    @abstractmethod
    def inside(self, pos: INT64, index: INT64) -> Cursor:
        """A cursor at positions inside the elements at `index`. It can move up to the ends of their rows."""

    def fail(self, mask: FLAGS) -> None:
        """Mark elements as dead and their rows as failed. Vectors that were returned before do not change."""
        self.dead = mask if self.dead is None else self.dead | mask
        self.block.failed[self.rows_of(mask)] = True

    def fail_where(self, mask: FLAGS) -> None:
        """Call `fail` unless `mask` selects no element."""
        if np.count_nonzero(mask):
            self.fail(mask)

    def fail_at(self, indices: INT64) -> None:
        """Call `fail` for the given indices, unless there are none."""
        if len(indices):
            mask = np.zeros(len(self), np.bool_)
            mask[indices] = True
            self.fail(mask)

    def live(self, mask: FLAGS) -> FLAGS:
        """`mask` restricted to the elements that are not dead."""
        return mask if self.dead is None else mask & ~self.dead


class Cursor(ElementSet):
    """Elements with a position (`pos`) and an end (`end`) each; bytes after the end must not be read.

    `rows` is the row of the block for each element; None means that element i belongs to row i.
    """

    __slots__ = ("end", "pos", "rows")

    def __init__(self, block: RowBlock, pos: INT64, end: INT64, rows: INT64 | None = None) -> None:
        self.block = block
        self.dead = None
        self.pos = pos
        self.end = end
        self.rows = rows

    def __len__(self) -> int:
        return len(self.pos)

    def rows_of(self, which: Any) -> INT64:
        if self.rows is not None:
            chosen: INT64 = self.rows[which]
            return chosen
        named: INT64 = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return named

    def inside(self, pos: INT64, index: INT64) -> Cursor:
        return Cursor(self.block, pos.astype(np.int64, copy=False), self.end[index], self.rows_of(index))

    def fail(self, mask: FLAGS) -> None:
        super().fail(mask)
        self.pos = np.where(mask, 0, self.pos)
        self.end = np.where(mask, 0, self.end)

    def select(self, which: Any) -> Cursor:
        """A new cursor over the selected elements, none of which may be dead. If the new cursor moves, this cursor does
        not; see `adopt`."""
        return Cursor(self.block, self.pos[which], self.end[which], self.rows_of(which))

    def split(self, count: int) -> Cursor:
        """Keep the first `count` elements and return a cursor over the others."""
        behind = Cursor(self.block, self.pos[count:], self.end[count:], self.rows_of(np.arange(count, len(self.pos))))
        self.pos, self.end = self.pos[:count], self.end[:count]
        self.rows = None if self.rows is None else self.rows[:count]
        if self.dead is not None:
            self.dead, behind.dead = self.dead[:count], self.dead[count:]
        return behind

    def adopt(self, some: Cursor, index: INT64) -> None:
        """Copy the positions and the dead elements from `some`, a cursor over the elements at `index`."""
        self.pos[index] = some.pos
        if some.dead is not None:
            self.fail_at(index[some.dead])

    def peek(self, kind: str) -> Vector:
        """The value at the position of each element, as numpy's type `kind`.

        It is meaningless for an element with too few bytes, so `need` or `slices` must follow, which marks that element
        as dead.
        """
        return self.block.at(kind, self.pos)

    def need(self, size: int) -> None:
        """Move forward by `size` bytes (at least one). Elements that have fewer bytes left become dead."""
        pos = self.pos + size
        over = pos > self.end
        self.pos = pos
        if np.count_nonzero(over):
            self.fail(over)

    def slices(self, size: int, lengths: INT64) -> Slices:
        """Slices of `lengths` bytes (none negative) that begin `size` bytes after each position. The cursor moves past
        them.

        `size` plus any length must be at least one byte, so that dead elements stay dead.
        """
        starts = self.pos + size
        stops = starts + lengths
        over = stops > self.end
        self.pos = stops
        if np.count_nonzero(over):
            self.fail(over)
        return Slices(starts, stops)

    def bytes(self) -> NDArray[np.uint8]:
        """Read the next byte of each element; it is zero for dead elements."""
        found = self.peek("u1")
        self.need(1)
        return found if self.dead is None else np.where(self.dead, 0, found).astype(np.uint8)

    def uvarints(self) -> INT64:
        """Read an unsigned varint of each element, 0 to 2³²-1. Encodings that are longer than necessary are
        accepted."""
        values = self.bytes().astype(np.int64)
        if not len(values) or values.max() < 0x80:
            return values
        more = np.flatnonzero(values >= 0x80)
        values[more] &= 0x7F
        data = self.block.data
        self.pos = self.pos.copy()
        for step in range(1, _LONGEST_UVARINT):
            at, end = self.pos[more], self.end[more]
            over = at >= end
            if over.any():
                self.fail_at(more[over])
                more, at = more[~over], at[~over]
            byte = data[at].astype(np.int64)
            values[more] |= (byte & 0x7F) << (7 * step)
            self.pos[more] = at + 1
            more = more[byte >= 0x80]
            if not more.size:
                break
        else:
            self.fail_at(more)
        self.fail_where(values >= _UNSIGNED_32)
        return values if self.dead is None else np.where(self.dead, 0, values)
