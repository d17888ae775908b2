"""Sorts the rows of pieces of one log partition by offset, with each offset once. The pieces may be in any order.

Pieces with disjoint offsets are returned one after another, so only overlapping pieces are in memory at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.sources._saved.file_pieces import FilePiece

_ROWS: Final = 65_536
_BYTES: Final = 256 * 1024 * 1024
"""The maximum number of bytes in a batch with more than one row. From 2 GiB, Arrow cannot combine a column of bytes
into one array."""

OnDiffering = Callable[[int], None]
"""Called with an offset at which two rows have different records."""


def together(pieces: Sequence[FilePiece]) -> Iterator[list[FilePiece]]:
    """Group the pieces with overlapping offsets. The groups are sorted by offset."""
    group: list[FilePiece] = []
    last = -1
    for piece in sorted(pieces, key=lambda each: (each.first, each.file, each.group or 0)):
        if group and not piece.overlaps(last):
            yield group
            group = []
        group.append(piece)
        last = max(last, piece.last) if len(group) > 1 else piece.last
    if group:
        yield group


def in_order(batches: Iterator[Any], on_differing: OnDiffering) -> Iterator[Any]:
    """All rows sorted by offset, each offset once; if an offset has several rows, the first one is used. All rows are
    kept in memory."""
    parts = [_large(batch) for batch in batches]
    if not parts:
        return
    rows = pa.Table.from_batches(parts).combine_chunks()
    offsets = rows["offset"].combine_chunks().to_numpy()
    if (offsets[1:] > offsets[:-1]).all():
        order = None
    else:
        order = np.argsort(offsets, kind="stable")
        ordered = offsets[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = ordered[1:] != ordered[:-1]
        if not is_first.all():
            _compare(rows, order, is_first, on_differing)
            order = order[is_first]
    for start in range(0, len(offsets) if order is None else len(order), _ROWS):
        part = rows.slice(start, _ROWS) if order is None else rows.take(pa.array(order[start : start + _ROWS]))
        yield from _small(part)


def _compare(rows: Any, order: Any, is_first: Any, on_differing: OnDiffering) -> None:
    """Report offsets whose rows have different records, because two logs were saved as one."""
    again = np.flatnonzero(~is_first)
    firsts = np.flatnonzero(is_first)
    kept = firsts[np.searchsorted(firsts, again, side="right") - 1]
    for start in range(0, len(again), _ROWS):
        one = rows.take(pa.array(order[kept[start : start + _ROWS]]))
        other = rows.take(pa.array(order[again[start : start + _ROWS]]))
        for name in ("key", "value"):
            if name not in rows.column_names:
                continue
            same = pc.fill_null(pc.equal(one[name], other[name]), False)
            both_null = pc.and_(one[name].is_null(), other[name].is_null())
            differs = ~pc.or_(same, both_null).combine_chunks().to_numpy(zero_copy_only=False)
            for at in np.flatnonzero(differs).tolist():
                on_differing(int(one["offset"][at].as_py()))


def _large(batch: Any) -> Any:
    """The rows with column types that can hold more than 2 GiB."""
    return batch.cast(
        pa.schema(
            [
                (field.name, pa.large_binary() if pa.types.is_binary(field.type) else field.type)
                for field in batch.schema
            ]
        )
    )


def _small(rows: Any) -> Iterator[Any]:
    """The rows with column types that can hold at most 2 GiB. Batches are halved until they fit."""
    if rows.num_rows > 1 and rows.nbytes > _BYTES:
        half = rows.num_rows // 2
        for part in (rows.slice(0, half), rows.slice(half)):
            yield from _small(part)
        return
    schema = pa.schema(
        [(field.name, pa.binary() if pa.types.is_large_binary(field.type) else field.type) for field in rows.schema]
    )
    (batch,) = rows.cast(schema).combine_chunks().to_batches()
    yield batch
