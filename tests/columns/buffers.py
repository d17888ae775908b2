"""What lies in memory after an array, nulls included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records_engine.columns import _leaves
from kafka_records_engine.columns._cursor import Cursor, ElementSet, Slices
from kafka_records_engine.columns._slots import Scanned


def all_bytes(array: pa.Array) -> Iterator[bytes]:
    """Every buffer of an array and of all arrays inside it, whole."""
    for buffer in array.buffers():
        if buffer is not None:
            yield buffer.to_pybytes()


def without_nulls(array: pa.Array) -> pa.Array:
    """The same buffers without the bitmaps of nulls: shows the values that lie below nulls."""
    kind, count, offset = array.type, len(array), array.offset
    if pa.types.is_struct(kind):
        return pa.Array.from_buffers(
            kind, count, [None], children=[without_nulls(array.field(place)) for place in range(kind.num_fields)]
        )
    if pa.types.is_list(kind):
        places = array.buffers()[1]
        return pa.Array.from_buffers(kind, count, [None, places], 0, offset, [without_nulls(array.values)])
    _, *others = array.buffers()
    return pa.Array.from_buffers(kind, count, [None, *others], 0, offset)


def is_blank(value: Any) -> bool:
    """Whether a value is zero, false or empty, and all of its members are."""
    if isinstance(value, dict):
        return all(is_blank(held) for held in value.values())
    return not value


def _ends(elements: ElementSet) -> Any:
    """The end of what each element may read: for elements of arrays, that of their owners."""
    if isinstance(elements, Scanned):
        return _ends(elements.outer)[elements.owners]
    assert isinstance(elements, Cursor)
    return elements.end


@contextmanager
def guarded_copies() -> Iterator[list[int]]:
    """Asserts of every slice that is copied out of rows that it lies inside its own row; gives the number of slices of
    each copy.

    Arrow does not check that: it copies regardless of what lies after the buffer.
    """
    pieces: list[int] = []
    copied = _leaves._copied

    def guarded(elements: ElementSet, slices: Slices) -> Any:
        firsts, lasts = slices.by_element()
        alive = elements.live(np.ones(len(elements), np.bool_))
        assert len(firsts) == len(lasts) == len(elements)
        assert np.all(firsts[alive] >= 0)
        assert np.all(firsts[alive] <= lasts[alive])
        assert np.all(lasts[alive] <= _ends(elements)[alive])
        assert np.all(lasts[alive] <= elements.block.buffer.size)
        pieces.append(len(elements))
        return copied(elements, slices)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_leaves, "_copied", guarded)
        yield pieces
