"""Which records `dump` shows, decided by their offsets and the bytes of their keys before anything is decoded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.near_names import did_you_mean
from kafka_records_tables.runs.endings import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.runs.catalog import Catalog

_GROUP: Final = ("group", "group_id")
_TRANSACTIONAL_ID: Final = ("transactional_id",)
_TYPE_BYTES: Final = 2

Mask = Callable[[Any], "pa.BooleanArray"]


@dataclass(frozen=True)
class RecordChoice:
    """The records that the options ask for."""

    catalog: Catalog
    types: Sequence[str] = ()
    """Names or numbers."""
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    offsets: tuple[int, int] | None = None
    """The first and the last, both included."""

    def __post_init__(self) -> None:
        """Raises a UsageError for a type that does not exist."""
        names = self.catalog.record_names
        for each in self.types:
            if each not in names and not re.fullmatch(r"-?[0-9]{1,5}", each):
                close = did_you_mean(each, names) or f": there are {', '.join(sorted(names))}"
                raise UsageError(f"--type: no record type is called {each}{close}")

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.types or self.groups or self.transactional_ids or self.offsets)

    def mask(self, topic: str) -> Mask | None:
        """A function from raw rows (`offset`, `key`, `control`) of `topic` to which of them are shown; None: all."""
        masks: list[Mask] = []
        if self.offsets is not None:
            masks.append(_of_offsets(*self.offsets))
        if self.types:
            masks.append(_of_types(self._numbers(topic)))
        for ids, names in ((self.groups, _GROUP), (self.transactional_ids, _TRANSACTIONAL_ID)):
            if ids:
                masks.append(_of_starts(self._types_that_begin_with(topic, names), [*map(_string, ids)]))
        if not masks:
            return None
        return lambda rows: reduce(_both, (mask(rows) for mask in masks))

    def _numbers(self, topic: str) -> set[int]:
        records, retired = self.catalog.records(topic), self.catalog.retired(topic)
        named = {record.name: number for number, record in records.items()} | {
            gone.name: number for number, gone in retired.items()
        }
        numbers = {int(each) for each in self.types if re.fullmatch(r"-?[0-9]+", each)}
        return numbers | {named[each] for each in self.types if each in named}

    def _types_that_begin_with(self, topic: str, names: Sequence[str]) -> set[int]:
        return {
            number
            for number, record in self.catalog.records(topic).items()
            if (fields := record.key.root.fields)
            and fields[0].name in names
            and fields[0].type == "string"
            and not record.key.is_flexible(0)
        }


def _string(text: str) -> bytes:
    """As a key of version 0 holds it: an int16 length, then UTF-8."""
    encoded = os.fsencode(text)
    return len(encoded).to_bytes(2, "big") + encoded if len(encoded) < 1 << 15 else b"\xff"


def _both(one: pa.BooleanArray, other: pa.BooleanArray) -> pa.BooleanArray:
    import pyarrow.compute as pc

    return pc.and_(one, other)


def _of_offsets(first: int, last: int) -> Mask:
    import pyarrow.compute as pc

    return lambda rows: pc.and_(
        pc.greater_equal(rows.column("offset"), first), pc.less_equal(rows.column("offset"), last)
    )


def _of_types(numbers: set[int]) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    inside = [number for number in numbers if -(1 << 15) <= number < 1 << 15]
    starts = pa.array([number.to_bytes(_TYPE_BYTES, "big", signed=True) for number in inside], pa.binary())

    def mask(rows: Any) -> pa.BooleanArray:
        start = pc.binary_slice(rows.column("key"), 0, _TYPE_BYTES)
        return pc.and_(pc.is_in(start, starts), rows.column("control").is_null())

    return mask


def _of_starts(numbers: set[int], texts: list[bytes]) -> Mask:
    import pyarrow.compute as pc

    of_types = _of_types(numbers)

    def mask(rows: Any) -> pa.BooleanArray:
        key = rows.column("key")
        found = [
            pc.equal(pc.binary_slice(key, _TYPE_BYTES, _TYPE_BYTES + len(text)), text).fill_null(False)
            for text in texts
        ]
        return pc.and_(of_types(rows), reduce(pc.or_, found))

    return mask
