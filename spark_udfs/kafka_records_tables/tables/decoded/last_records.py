"""The last record of each key, for topics and records that no transaction writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS
from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords, filter_record_types, numbers_of, schemas
from kafka_records_tables.tables.decoded.latest import Latest, last_of_same

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class LastRecords(NamedTuple):
    """Decoded records, the last of each key among them."""

    found: DecodedRecords
    types: tuple[int, ...]
    usable: FLAGS
    """Which of `found` are the last of their key and have a value that could be read."""


class LastOfKey:
    """Gathers the last records with each value of the field `key` of their keys.

    `names` are those of the records, `folder` that of their specs. Reports those that cannot be used: what keys that
    cannot be read are `about`, and what is `left_out` where the value that decides cannot be.
    """

    def __init__(
        self, context: Context, folder: str, names: Sequence[str], key: str, *, about: str, left_out: str
    ) -> None:
        self._context = context
        self._records = schemas(context, folder)
        self._types = numbers_of(self._records, names)
        self._key = key
        self._latest = Latest(("offset", "key", "value", "file", "position", "base_offset"))
        self._left_out = left_out
        self._not_used = f"not used: nobody can tell which {about} it is about"

    def take(self, batch: pa.RecordBatch) -> None:
        """Add raw rows."""
        rows = filter_record_types(batch, self._types, self._context, self._not_used)
        self._latest.add(rows.filter(pc.is_null(rows.column("control"))))

    def found(self) -> LastRecords | None:
        """The records at the end of the log; None when there is none."""
        kept = self._latest.rows()
        if kept is None:
            return None
        found = DecodedRecords(kept, self._records)
        name = found.member(self._types, "key", self._key)
        decides = ~found.has_key | last_of_same(np.where(found.has_key, found.offsets, -1), name)
        found.report(self._context, lambda row: self._left_out if found.has_key[row] else self._not_used, decides)
        return LastRecords(found, self._types, decides & found.has_key & ~found.has_error & ~found.is_tombstone)
