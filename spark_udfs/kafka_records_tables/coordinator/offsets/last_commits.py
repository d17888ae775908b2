"""Finds the last commit or tombstone for each group, topic and partition. It determines the committed offset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_tables.coordinator.offsets.commits import COMMITS, report_undecided
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, numbers_of
from kafka_records_tables.coordinator.records.latest import Latest, joined, last_of_same
from kafka_records_tables.coordinator.transactions import ABORTED, OPEN, UNKNOWN

if TYPE_CHECKING:
    from kafka_records_engine.numpy_types import FLAGS
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

NOT_USED: Final = "not used: it is unknown whose offset it is"
"""The consequence reported for an unreadable key."""

_LEFT_OUT: Final = "its row is left out: this offset or an older one may be the committed one"

CommitKey = tuple[str, str, int]
"""Group, topic and partition."""


class LastCommits:
    """Collects commits whose transactions have ended (`transactions`), and determines which of them are the committed
    offsets."""

    def __init__(self, schemas: Mapping[int, RecordSchema], columns: Iterable[str] = ()) -> None:
        """`columns` are kept in addition to those that this class needs."""
        self._schemas = schemas
        self._types = numbers_of(schemas, COMMITS)
        self._kept = ("offset", "key", "value", "file", "position", "base_offset", *columns)
        self._decided, self._unknown = Latest(self._kept), Latest((*self._kept, "producer_id"))

    def add(self, outcome: str, rows: pa.RecordBatch) -> None:
        """Add commits and tombstones whose transactions had the same outcome."""
        if outcome not in (ABORTED, OPEN):
            (self._unknown if outcome == UNKNOWN else self._decided).add(rows)

    def deciding(self, context: Context) -> Deciding | None:
        """The committed offsets; None if nothing was added. Unreadable commits are reported."""
        decided, unknown = self._decided.rows(), self._unknown.rows()
        parts = [part for part in (decided, unknown) if part is not None]
        if not parts:
            return None
        is_unknown = np.repeat([False, True], [_count(decided), _count(unknown)])
        names = [name for name in self._kept if name in parts[0].schema.names]
        found = DecodedRecords(joined([part.select(names) for part in parts]), self._schemas)
        keys = [found.member(self._types, "key", name) for name in ("group", "topic", "partition")]
        decides = ~found.has_key | last_of_same(np.where(found.has_key, found.offsets, -1), *keys)

        def consequence(row: int) -> str:
            return "its row is left out: an older offset would be wrong" if found.has_key[row] else NOT_USED

        found.report(context, consequence, decides & ~is_unknown)
        if unknown is not None:
            undecided = DecodedRecords(unknown, self._schemas)
            report_undecided(undecided, self._types, (decides & is_unknown)[-unknown.num_rows :], context, _LEFT_OUT)
        is_left = decides & found.has_key & (is_unknown | ~found.is_tombstone)
        return Deciding(found, self._types, is_left & ~found.has_error & ~is_unknown, is_left)


class Deciding(NamedTuple):
    """The collected commits and tombstones. They include the last one of each key."""

    found: DecodedRecords
    types: tuple[int, ...]
    """The numbers of the record types COMMITS."""
    is_usable: FLAGS
    """Flags the elements of `found` that are committed offsets."""
    is_there: FLAGS
    """Like `is_usable`, but also true for offsets that exist although their value is unknown: it cannot be decoded, or
    the outcome of its transaction is unknown."""


def commit_keys(found: DecodedRecords, types: Iterable[int], chosen: pa.Array | None = None) -> list[CommitKey]:
    """The key of each row, or of the `chosen` rows. The parts are None if the key cannot be read, or for a record of
    another type."""
    parts = [found.member(types, "key", name) for name in ("group", "topic", "partition")]
    if chosen is not None:
        parts = [part.take(chosen) for part in parts]
    return list(zip(*(part.to_pylist() for part in parts), strict=True))


def last_offsets(latest: Latest, schemas: Mapping[int, RecordSchema]) -> dict[CommitKey, int]:
    """For each key, the row of its last commit or tombstone. Record types 0 and 1 have the same keys."""
    rows = latest.rows()
    if rows is None:
        return {}
    found = DecodedRecords(rows, schemas)
    last: dict[CommitKey, int] = {}
    keys = commit_keys(found, numbers_of(schemas, COMMITS))
    for key, has_key, offset in zip(keys, found.has_key.tolist(), found.offsets.tolist(), strict=True):
        if has_key:
            last[key] = offset
    return last


def _count(rows: pa.RecordBatch | None) -> int:
    return 0 if rows is None else int(rows.num_rows)
