"""Decodes single records as a coordinator replays them, for tables that need more than the last record of a key."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import repeat
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import INT64
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

SIZE: Final = "#"
"""A suffix in `Picked`: after the name of an array, it picks the array's number of elements."""

INSIDE: Final = "."
"""A separator in `Picked` between a field and a field inside it, or inside each of its elements."""

Picked = Mapping[str, tuple[str, ...]]
"""For each record type, the fields of its value that a replay needs. Only these become Python objects, because a value
may be large."""


_OFFSET: Final = itemgetter(0)


class Event(NamedTuple):
    """A record with the fields that a replay needs."""

    offset: int
    record: str
    key: tuple[Any, ...]
    """The fields of the key, in the order of the schema."""
    value: Any
    """The picked fields of the value, as a named tuple (`attribute` returns the names); None for a tombstone, and also
    if `is_broken` or `is_past`."""
    is_broken: bool
    """Whether the record has a value that could not be decoded."""
    is_past: bool
    """Whether only the offset of this value is known, because a later tombstone deleted its key."""
    timestamp_ms: int | None
    """The time of the record; None if rows have no timestamps or if `is_past`."""

    @property
    def group_id(self) -> str:
        """The first field of the key, which is the group id in every record of `__consumer_offsets`."""
        group_id: str = self.key[0]
        return group_id

    @property
    def member_id(self) -> str:
        """The last field of the key: the member id or the regular expression if the record is about one of them,
        otherwise the group id."""
        member_id: str = self.key[-1]
        return member_id

    @property
    def is_tombstone(self) -> bool:
        """Whether the record is a tombstone, which deletes its key."""
        return self.value is None and not self.is_broken and not self.is_past


def attribute(member: str) -> str:
    """The name of a picked field in `Event.value`: `members_client_id` for `members.client_id`, `members_count` for the
    number of `members`."""
    return member.replace(INSIDE, "_").replace(SIZE, "_count")


def value_of(record: str, members: tuple[str, ...], parts: Iterable[Any]) -> Any:
    """Make an `Event.value` with the picked fields `members`."""
    return _kind_of(record, members)(*parts)


@lru_cache
def _kind_of(record: str, members: tuple[str, ...]) -> Any:
    """The class for the values of a record. Its objects are pickled with their fields, because pickle cannot find a
    class created here by name."""
    fields = namedtuple(f"{record}Value", map(attribute, members))  # type: ignore[misc]
    again = {"__slots__": (), "__reduce__": lambda value: (value_of, (record, members, tuple(value)))}
    return type(f"{record}Value", (fields,), again)


def events(found: DecodedRecords, picked: Picked) -> Iterator[Event]:
    """The records of the types in `picked` whose keys can be read, sorted by offset.

    If the rows come from `latest.Latest` with the column LAST_VALUE, the value that a tombstone deleted, if any,
    precedes it.
    """
    offsets, last_values = found.offsets, found.last_value
    of_record: dict[int, Iterator[Event]] = {}
    turns = np.full(len(offsets), -1)
    past: list[Event] = []
    for number, column in found.columns.records.items():
        if found.record_name(number) not in picked:
            continue
        rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        turns[rows] = number
        of_record[number] = _events_of(found, number, column, picked, rows)
        deleted = rows[found.is_tombstone[rows] & (last_values[rows] >= 0)]
        if len(deleted):
            keys = zip(*_members(column, "key", found.key_names(number), pa.array(deleted)), strict=True)
            past += [
                Event(offset, found.record_name(number), key, None, False, True, None)
                for offset, key in zip(last_values[deleted].tolist(), keys, strict=True)
            ]
    in_turn = (next(of_record[number]) for number in turns[turns >= 0].tolist())
    if not past and (offsets[1:] >= offsets[:-1]).all():
        # Yield the records one at a time, because Python's garbage collector scans all live objects.
        return in_turn
    return iter(sorted([*past, *in_turn], key=_OFFSET))


def _events_of(
    found: DecodedRecords, number: int, column: pa.StructArray, picked: Picked, rows: INT64
) -> Iterator[Event]:
    """The records of one type, found in `rows`."""
    record, chosen = found.record_name(number), pa.array(rows)
    keys = zip(*_members(column, "key", found.key_names(number), chosen), strict=True)
    members = _members(column, "value", picked[record], chosen)
    # Avoid a Python-level call for each row, because there are many.
    make = partial(tuple.__new__, _kind_of(record, picked[record]))
    values: Iterable[Any] = map(make, zip(*members, strict=True)) if members else repeat(make(()), len(rows))
    is_broken = found.has_error[rows]
    has_none = found.is_tombstone[rows] | is_broken
    if has_none.any():
        values = (None if is_none else value for value, is_none in zip(values, has_none.tolist(), strict=True))
    times = repeat(None) if found.timestamps is None else map(found.timestamps.__getitem__, rows.tolist())
    parts = found.offsets[rows].tolist(), repeat(record), keys, values, is_broken.tolist(), repeat(False), times
    return map(partial(tuple.__new__, Event), zip(*parts, strict=False))


def _members(records: pa.StructArray, part: str, names: Iterable[str], chosen: pa.Array) -> list[Iterable[Any]]:
    """Some fields of the key or the value of the rows `chosen`."""
    # Convert only the requested fields. A record may have twenty fields, and one of them may be large.
    return [_in_python(_member(records, part, name).take(chosen)) for name in names]


def _in_python(array: pa.Array) -> Iterable[Any]:
    """The result of `to_pylist`, but faster, because that method creates an intermediate object for every element and
    an array for every list. Here each list and struct is created only when it is accessed."""
    kind = array.type
    found: Iterable[Any]
    if pa.types.is_list(kind):
        elements = list(_in_python(array.flatten()))
        ends = np.cumsum(pc.list_value_length(array).fill_null(0).to_numpy()).tolist()
        found = (elements[start:end] for start, end in zip([0, *ends], ends, strict=False))
    elif pa.types.is_struct(kind) and kind.num_fields:
        names = [field.name for field in kind]
        members = zip(*map(_in_python, array.flatten()), strict=True)
        found = (dict(zip(names, each, strict=True)) for each in members)
    elif pa.types.is_string(kind) or pa.types.is_boolean(kind) or (pa.types.is_integer(kind) and not array.null_count):
        return list(array.to_numpy(zero_copy_only=False).tolist())
    else:
        return list(array.to_pylist())
    if not array.null_count:
        return found
    is_there = array.is_valid().to_numpy(zero_copy_only=False).tolist()
    return (each if is_valid else None for each, is_valid in zip(found, is_there, strict=True))


def _member(records: pa.StructArray, part: str, name: str) -> pa.Array:
    first, *path = name.removesuffix(SIZE).split(INSIDE)
    member = _inside(pc.struct_field(records, [part, first]), path)
    return pc.list_value_length(member) if name.endswith(SIZE) else member


def _inside(array: pa.Array, path: list[str]) -> pa.Array:
    """The values at `path` in each element, in lists of the same length as `array`."""
    if not path:
        return array
    if pa.types.is_list(array.type):
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, _inside(array.values, path), mask=mask)
    return _inside(pc.struct_field(array, path[0]), path[1:])
