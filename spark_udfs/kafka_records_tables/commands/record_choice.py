"""Selects the records that `dump` shows by their offsets and key bytes, before they are decoded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from kafka_records_runtime.records.framing import COORDINATOR, KEY_VERSION, Framing, framing_of
from kafka_records_tables.console.endings import UsageError
from kafka_records_tables.near_names import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.commands.catalog import Catalog

_GROUP: Final = ("group", "group_id")
_TRANSACTIONAL_ID: Final = ("transactional_id",)

Mask = Callable[[Any], "pa.BooleanArray"]


@dataclass(frozen=True)
class RecordChoice:
    """The records selected by the options."""

    catalog: Catalog
    types: Sequence[str] = ()
    """Names or numbers of record types."""
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    offsets: tuple[int, int] | None = None
    """The first and the last offset, both inclusive."""

    def __post_init__(self) -> None:
        """Raises a UsageError for a record type that does not exist."""
        names = self.catalog.record_names
        for each in self.types:
            if each not in names and not re.fullmatch(r"-?[0-9]{1,5}", each):
                close = did_you_mean(each, names) or f": there are {', '.join(sorted(names))}"
                raise UsageError(f"--type: no record type is called {each}{close}")

    @property
    def is_everything(self) -> bool:
        """Whether all records are selected."""
        return not (self.types or self.groups or self.transactional_ids or self.offsets)

    def mask(self, topic: str) -> Mask | None:
        """A function that selects the rows to show from raw rows of `topic` (`offset`, `key`, `value`, `control`); None
        if all rows are shown."""
        masks: list[Mask] = []
        if self.offsets is not None:
            masks.append(_of_offsets(*self.offsets))
        if self.types:
            masks.append(_of_types(framing_of(self.catalog.records(topic)), self._numbers(topic)))
        for ids, names in ((self.groups, _GROUP), (self.transactional_ids, _TRANSACTIONAL_ID)):
            if ids:
                masks.append(_of_starts(self._types_that_begin_with(topic, names), [*map(os.fsencode, ids)]))
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
            if record.framing == COORDINATOR
            and (fields := record.key.root.fields)
            and fields[0].name in names
            and fields[0].type == "string"
            and not record.key.is_flexible(KEY_VERSION)
        }


def _both(one: pa.BooleanArray, other: pa.BooleanArray) -> pa.BooleanArray:
    import pyarrow.compute as pc

    return pc.and_(one, other)


def _of_offsets(first: int, last: int) -> Mask:
    import pyarrow.compute as pc

    return lambda rows: pc.and_(
        pc.greater_equal(rows.column("offset"), first), pc.less_equal(rows.column("offset"), last)
    )


def _of_types(framing: Framing, numbers: set[int]) -> Mask:
    import numpy as np
    import pyarrow as pa

    from kafka_records_engine.columns.framing_in_columns import type_column

    wanted = np.array(sorted(numbers), np.int64)

    def mask(rows: Any) -> pa.BooleanArray:
        types, has_type = type_column(framing, rows.column("key"), rows.column("value"))
        is_record = rows.column("control").is_null().to_numpy(zero_copy_only=False)
        return pa.array(has_type & np.isin(types, wanted) & is_record)

    return mask


def _of_starts(numbers: set[int], texts: list[bytes]) -> Mask:
    import pyarrow.compute as pc

    from kafka_records_engine.columns.framing_in_columns import begins_with

    of_types = _of_types(COORDINATOR, numbers)
    return lambda rows: pc.and_(of_types(rows), begins_with(rows.column("key"), texts))
