"""Columns that stand beside decoded ones and say the same in nearly every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns.leaves import Constant, at, bitmap, joined
from kafka_records_engine.numpy_types import FLAGS, INTEGERS


def numbers(kind: pa.DataType, vector: INTEGERS, valid: FLAGS | None = None) -> pa.Array:
    """Integers of any width, null where `valid` says so."""
    content = pa.py_buffer(vector.astype(f"i{kind.bit_width // 8}"))
    bits = None if valid is None or valid.all() else bitmap(valid)
    return pa.Array.from_buffers(kind, len(vector), [bits, content])


def sparse(usual: Constant, others: Mapping[int, Any], count: int) -> pa.Array:
    """`usual` in all rows but those that `others` names."""
    if not others:
        return usual.times(count)
    one = usual.times(1)
    places = np.zeros(count, np.int64)
    places[list(others)] = np.arange(1, len(others) + 1)
    return at(joined([one, pa.array(list(others.values()), one.type)]), places)


_NO_BYTES: Final = Constant(pa.binary(), None)


def bytes_of(array: pa.Array, which: FLAGS) -> pa.Array:
    """The bytes of some rows, null in all others."""
    if not which.any():
        return _NO_BYTES.times(len(array))
    if pa.types.is_binary_view(array.type):  # which cannot be taken from
        array = array.cast(pa.large_binary())
    rows = np.flatnonzero(which)
    places = np.full(len(array), -1)
    places[rows] = np.arange(len(rows))
    return at(array.take(pa.array(rows)).cast(pa.binary()), places)
