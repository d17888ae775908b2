"""The memory of an array, including the memory of its nulls."""

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
    """All buffers of an array and of the arrays inside it, completely."""
    for buffer in array.buffers():
        if buffer is not None:
            yield buffer.to_pybytes()


def without_nulls(array: pa.Array) -> pa.Array:
    """The same buffers without the null bitmaps, which shows the values in the memory of nulls."""
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
    """The end of the bytes that each element may read: for elements of arrays, the end of their owner's."""
    if isinstance(elements, Scanned):
        return _ends(elements.outer)[elements.owners]
    assert isinstance(elements, Cursor)
    return elements.end


@contextmanager
def guarded_copies() -> Iterator[list[int]]:
    """Assert that every slice that is copied from rows is inside its own row. Yields the number of slices of each copy.

    Arrow does not check this, and would copy bytes after the buffer.
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
