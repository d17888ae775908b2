"""The last record of each key, for records that are never written in transactions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.coordinator.records.latest import Latest, last_of_same
from kafka_records_tables.tables.record_reader import RecordReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class LastRecords(NamedTuple):
    """Decoded records, which include the last record of each key."""

    found: DecodedRecords
    types: tuple[int, ...]
    usable: FLAGS
    """Flags for the elements of `found` that are the last of their key and have a readable value."""


class LastOfKeyReader(RecordReader):
    """A reader of the last record for each value of the key field `key`.

    `names` are the names of the records; `folder` is the folder of their specs. Reports unusable records: `about`
    describes unreadable keys, and `left_out` says what is left out if the last value is unreadable.
    """

    last_of_key = True

    def __init__(
        self, context: Context, folder: str, names: Sequence[str], key: str, *, about: str, left_out: str
    ) -> None:
        self._not_used = f"not used: it is unknown which {about} it is about"
        super().__init__(context, folder, names, self._not_used)
        self._key = key
        self._left_out = left_out
        self._latest = Latest(("offset", "key", "value", "file", "position", "base_offset"))

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._latest.add(rows.filter(pc.is_null(rows.column("control"))))
        return ()

    def finish(self) -> Iterable[pa.RecordBatch]:
        kept = self._latest.rows()
        if kept is None:
            return ()
        found = DecodedRecords(kept, self.schemas)
        name = found.member(self.types, "key", self._key)
        decides = ~found.has_key | last_of_same(np.where(found.has_key, found.offsets, -1), name)
        found.report(self.context, lambda row: self._left_out if found.has_key[row] else self._not_used, decides)
        usable = decides & found.has_key & ~found.has_error & ~found.is_tombstone
        return self.rows_of(LastRecords(found, self.types, usable))

    def rows_of(self, last: LastRecords) -> Iterable[pa.RecordBatch]:
        """The rows of the table from the last records."""
        raise NotImplementedError
