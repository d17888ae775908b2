"""A position in each of many rows, moved together.

A row whose bytes are not as they should be is *dead*: its position and its end are zero from then on, so that every
later read finds it out of bounds again. Dead rows keep their place in all vectors, which keeps the usual case, no dead
row at all, free of any bookkeeping; what is read for them means nothing and is thrown away at the end.

Every read checks each position against the end of its own row, and what lies behind that end is never believed: no row
sees the bytes of another.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafka_records_engine.numpy_types import FLAGS, INT64

Vector = NDArray[Any]

_LONGEST_UVARINT: Final = 5
_UNSIGNED_32: Final = 1 << 32


def _keep_free_memory() -> None:
    """Have glibc keep what a batch frees for the next one, which otherwise pays for every page of it again.

    It does once it has seen a large block come and go; other allocators take no notice.
    """
    np.empty(16 << 20, np.uint8)


_keep_free_memory()


class Batch:
    """What all cursors over one buffer share: its bytes, and what was found out about its rows."""

    __slots__ = ("_views", "buffer", "data", "failed", "unknown_tags")

    def __init__(self, buffer: pa.Buffer, data: NDArray[np.uint8], rows: int) -> None:
        self.buffer = buffer
        self.data = data
        self.failed: FLAGS = np.zeros(rows, np.bool_)
        self.unknown_tags: FLAGS = np.zeros(rows, np.bool_)
        self._views: dict[str, Vector] = {}

    def at(self, kind: str, pos: INT64) -> Vector:
        """What lies at positions, as numpy's type `kind`; rubbish where the buffer ends before."""
        view = self._views.get(kind)
        if view is None:
            view = self._views[kind] = self._view(kind)
        try:
            return view[pos]
        except IndexError:  # the last row may end before an item does
            return view[np.minimum(pos, len(view) - 1)] if len(view) else np.zeros(len(pos), view.dtype)

    def _view(self, kind: str) -> Vector:
        """An item for every position of the buffer, without a copy."""
        size = np.dtype(kind).itemsize
        return np.ndarray(max(len(self.data) - size + 1, 0), kind, self.data, strides=1)


class Cursor:
    """Vectors with an element per row: the position `pos`, and the `end` of what may be read.

    `rows` are the rows of the batch that the elements belong to, None when they are all of them in order. `order` says
    where in the vectors of notes each element is, None when they are in order.
    """

    __slots__ = ("batch", "dead", "end", "order", "pos", "rows")

    def __init__(self, batch: Batch, pos: INT64, end: INT64, rows: INT64 | None = None) -> None:
        self.batch = batch
        self.pos = pos
        self.end = end
        self.rows = rows
        self.dead: FLAGS | None = None
        self.order: INT64 | None = None

    def __len__(self) -> int:
        return len(self.pos)

    def rows_of(self, which: Any) -> INT64:
        """The rows of the batch that some elements (a mask or indices) belong to."""
        if self.rows is not None:
            chosen: INT64 = self.rows[which]
            return chosen
        named: INT64 = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return named

    def select(self, which: Any) -> Cursor:
        """A cursor over some of the elements, which are alive. Moving it moves nothing here."""
        return Cursor(self.batch, self.pos[which], self.end[which], self.rows_of(which))

    def inside(self, pos: INT64, index: INT64) -> Cursor:
        """A cursor at positions inside the elements at `index`, up to their ends."""
        return Cursor(self.batch, pos.astype(np.int64, copy=False), self.end[index], self.rows_of(index))

    def in_order(self, note: Vector) -> Vector:
        """A vector of notes with an element for each of the cursor's."""
        return note if self.order is None else note[self.order]

    def live(self, mask: FLAGS) -> FLAGS:
        """`mask` without the dead."""
        return mask if self.dead is None else mask & ~self.dead

    def fail(self, mask: FLAGS) -> None:
        """Declare elements dead, and with them their rows. Vectors that were handed out stay as they are."""
        self._bury(mask)
        self.pos = np.where(mask, 0, self.pos)
        self.end = np.where(mask, 0, self.end)

    def _bury(self, mask: FLAGS) -> None:
        self.dead = mask if self.dead is None else self.dead | mask
        self.batch.failed[self.rows_of(mask)] = True

    def fail_where(self, mask: FLAGS) -> None:
        """`fail`, if there is anything to fail."""
        if np.count_nonzero(mask):
            self.fail(mask)

    def fail_at(self, indices: INT64) -> None:
        """`fail`, if there is anything to fail, by indices."""
        if len(indices):
            mask = np.zeros(len(self), np.bool_)
            mask[indices] = True
            self.fail(mask)

    def split(self, count: int) -> Cursor:
        """Keep the first `count` elements; a cursor over the others."""
        behind = Cursor(self.batch, self.pos[count:], self.end[count:], self.rows_of(np.arange(count, len(self.pos))))
        self.pos, self.end = self.pos[:count], self.end[:count]
        self.rows = None if self.rows is None else self.rows[:count]
        if self.dead is not None:
            self.dead, behind.dead = self.dead[:count], self.dead[count:]
        return behind

    def adopt(self, some: Cursor, index: INT64) -> None:
        """Take over positions and deaths of `some` of the elements, which are those at `index`."""
        self.pos[index] = some.pos
        if some.dead is not None:
            self.fail_at(index[some.dead])

    def peek(self, kind: str) -> Vector:
        """What lies at the position of each element, as numpy's type `kind`.

        Where an element has too few bytes for it, it means nothing: `need` or `spans` has to follow.
        """
        return self.batch.at(kind, self.pos)

    def need(self, size: int) -> None:
        """Move on by `size` bytes, which are more than none; elements that have fewer die."""
        pos = self.pos + size
        over = pos > self.end
        self.pos = pos
        if np.count_nonzero(over):
            self.fail(over)

    def spans(self, size: int, lengths: INT64) -> tuple[INT64, INT64]:
        """From where to where `lengths` bytes (none negative), `size` bytes from here, lie; moves behind them.

        Together they are at least one byte, so that the dead stay dead.
        """
        starts = self.pos + size
        stops = starts + lengths
        over = stops > self.end
        self.pos = stops
        if np.count_nonzero(over):
            self.fail(over)
        return starts, stops

    def bytes(self) -> NDArray[np.uint8]:
        """The next byte of each element, zero for the dead."""
        found = self.peek("u1")
        self.need(1)
        return found if self.dead is None else np.where(self.dead, 0, found).astype(np.uint8)

    def uvarints(self) -> INT64:
        """An unsigned varint of each element, 0 to 2³²-1; longer forms than needed are taken."""
        values = self.bytes().astype(np.int64)
        if not len(values) or values.max() < 0x80:
            return values
        more = np.flatnonzero(values >= 0x80)
        values[more] &= 0x7F
        data = self.batch.data
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


class Scanned(Cursor):
    """The elements of arrays after their scan, `counts` of them in each element of `outer`: it does not move any more,
    and has no positions.

    What only broken bytes and nested values ask for is made when they do.
    """

    __slots__ = ("_counts", "_outer", "_owners", "_total")

    def __init__(self, outer: Cursor, counts: INT64, total: int, order: INT64 | None) -> None:
        """`total` is the sum of `counts`; `order` is that of the notes."""
        self.batch = outer.batch
        self.order = order
        self._outer = outer
        self._counts = counts
        self._total = total
        self._owners: INT64 | None = None
        self.dead = None if outer.dead is None else outer.dead[self.owners]

    def __len__(self) -> int:
        return self._total

    @property
    def owners(self) -> INT64:
        """The element of `outer` that each element is in."""
        if self._owners is None:
            self._owners = np.repeat(np.arange(len(self._counts)), self._counts)
        return self._owners

    def rows_of(self, which: Any) -> INT64:
        return self._outer.rows_of(self.owners[which])

    def inside(self, pos: INT64, index: INT64) -> Cursor:
        return self._outer.inside(pos, self.owners[index])

    def fail(self, mask: FLAGS) -> None:
        self._bury(mask)
