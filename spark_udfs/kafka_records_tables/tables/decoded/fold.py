"""Records one after another, as a coordinator replays them, for what the last record of a key does not tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords

SIZE: Final = "#"
"""Behind the name of an array in `Picked`: how many elements it has."""

INSIDE: Final = "."
"""Between the name of a member and that of a member inside of it, or inside of each of its elements."""

Picked = Mapping[str, tuple[str, ...]]
"""By record, the members of its value that a fold needs. Only these become Python objects: a value may be large."""


class Event(NamedTuple):
    """One record as a fold sees it."""

    offset: int
    record: str
    key: tuple[Any, ...]
    """The fields of the key, in their order."""
    value: tuple[Any, ...] | None
    """The members of the value that were picked; None for a tombstone, and where `is_broken` or `is_past`."""
    is_broken: bool
    """Whether the value is there and could not be decoded."""
    is_past: bool
    """Whether this is a value of which only the offset is known, because a later tombstone of the key deleted it."""
    timestamp_ms: int | None
    """When it was written; None where rows came without timestamps, and where `is_past`."""


_OFFSET: Final = itemgetter(0)


def events(found: DecodedRecords, picked: Picked) -> Iterator[Event]:
    """The records whose keys can be read, of those that `picked` names, by their offsets.

    Where the rows come from `latest.Latest` with LAST_VALUE, a tombstone is preceded by the value it deleted, as far as
    one was seen.
    """
    ordered: list[Event] = []
    times = found.timestamps
    for number, column in found.columns.records.items():
        record = found.record_name(number)
        if record not in picked:
            continue
        rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        chosen = pa.array(rows)
        keys = list(zip(*_members(column, "key", found.key_names(number), chosen), strict=True))
        members = _members(column, "value", picked[record], chosen)
        values = list(zip(*members, strict=True)) if members else [()] * len(rows)
        vectors: tuple[Any, ...] = (found.offsets, found.has_error, found.is_tombstone, found.last_value)
        parts = (vector[rows].tolist() for vector in vectors)
        written = [None] * len(rows) if times is None else [times[row] for row in rows.tolist()]
        for key, value, time, offset, is_broken, is_tombstone, last in zip(keys, values, written, *parts, strict=True):
            if is_tombstone and last >= 0:
                ordered.append(Event(last, record, key, None, False, True, None))
            told = None if is_tombstone or is_broken else value
            ordered.append(Event(offset, record, key, told, is_broken, False, time))
    ordered.sort(key=_OFFSET)
    return iter(ordered)


def _members(records: pa.StructArray, part: str, names: Iterable[str], chosen: pa.Array) -> list[list[Any]]:
    """Some members of the key or the value of the rows `chosen`."""
    # What is not picked is not taken either: a record may have twenty members, and one of them be large.
    return [_member(records, part, name).take(chosen).to_pylist() for name in names]


def _member(records: pa.StructArray, part: str, name: str) -> pa.Array:
    first, *path = name.removesuffix(SIZE).split(INSIDE)
    member = _inside(pc.struct_field(records, [part, first]), path)
    return pc.list_value_length(member) if name.endswith(SIZE) else member


def _inside(array: pa.Array, path: list[str]) -> pa.Array:
    """What stands at `path` in each element, in lists as long as those of `array`."""
    if not path:
        return array
    if pa.types.is_list(array.type):
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, _inside(array.values, path), mask=mask)
    return _inside(pc.struct_field(array, path[0]), path[1:])
