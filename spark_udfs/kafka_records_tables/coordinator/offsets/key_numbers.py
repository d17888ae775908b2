"""Assigns a number to each combination of group, topic and partition, so that commits can be compared by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commit_lots import first_of_each
from kafka_records_tables.coordinator.records.latest import codes_of

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot
    from kafka_records_tables.coordinator.offsets.last_commits import CommitKey
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

UNREADABLE: Final = -1
"""The number of a row whose key cannot be read."""


class KeyNumbers:
    """Assigns numbers to keys. A key keeps its number until it is forgotten."""

    def __init__(self) -> None:
        self.keys: list[CommitKey] = []
        """The group, the topic and the partition of each number."""
        self._numbers: dict[CommitKey, int] = {}
        self._free: list[int] = []
        self._new_ones: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def of_rows(self, found: DecodedRecords, types: tuple[int, ...]) -> INT64:
        """The number of each row's key, or UNREADABLE; `types` are the numbers of the record types of commits."""
        if not found.rows.num_rows:
            return np.zeros(0, np.int64)
        codes = codes_of([found.rows.column("key")])
        first = pa.array(first_of_each(codes))
        parts = (found.member(types, "key", name).take(first) for name in ("group", "topic", "partition"))
        return self._of_parts(parts, codes)

    def of_lot(self, lot: CommitLot) -> INT64:
        """The number of each row's key in `lot`, or UNREADABLE."""
        parts = (lot.keys.member(lot.types, "key", name) for name in ("group", "topic", "partition"))
        return self._of_parts(parts, lot.codes)

    def _of_parts(self, parts: Iterable[pa.Array], codes: INT64) -> INT64:
        """The number of each code; `parts` are the parts of the keys."""
        # Keys with different bytes may name the same offset: an older record type, or extra bytes after the fields.
        numbers, known = [], self._numbers.get
        for key in zip(*(part.to_pylist() for part in parts), strict=True):
            number = known(key)
            numbers.append(self._new(key) if number is None else number)
        of_rows: INT64 = np.array(numbers, np.int64)[codes]
        return of_rows

    def taken_again(self) -> list[int]:
        """The numbers assigned since the last call, whether new or reused for another key."""
        new, self._new_ones = self._new_ones, []
        return new

    def keep(self, is_kept: FLAGS) -> None:
        """Free the numbers for which `is_kept` is false."""
        self.forget([number for number in self._numbers.values() if not is_kept[number]])

    def forget(self, numbers: Iterable[int]) -> None:
        """Free some numbers, so that other keys can get them."""
        for number in numbers:
            del self._numbers[self.keys[number]]
            self._free.append(number)

    def _new(self, key: CommitKey) -> int:
        if None in key:
            return UNREADABLE
        if self._free:
            number = self._free.pop()
            self.keys[number] = key
        else:
            number = len(self.keys)
            self.keys.append(key)
        self._numbers[key] = number
        self._new_ones.append(number)
        return number
