"""The last record of each key, for topics and records that no transaction writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS
from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords, numbers_of, of_types, schemas
from kafka_records_tables.tables.decoded.latest import Latest, last_of_same

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


class LastRecords(NamedTuple):
    """Decoded records, the last of each key among them."""

    found: DecodedRecords
    types: tuple[int, ...]
    usable: FLAGS
    """Which of `found` are the last of their key and have a value that could be read."""


def last_records(
    batches: Iterator[pa.RecordBatch],
    context: Context,
    folder: str,
    names: Sequence[str],
    key: str,
    *,
    about: str,
    left_out: str,
) -> LastRecords | None:
    """The last records with each value of the field `key` of their keys; None when there is none.

    Reports those that cannot be used: what keys that cannot be read are `about`, and what is `left_out` where the value
    that decides cannot be. `names` are those of the records, `folder` that of their specs.
    """
    records = schemas(context, folder)
    types = numbers_of(records, names)
    latest = Latest(("offset", "key", "value", "file", "position", "base_offset"))
    not_used = f"not used: nobody can tell which {about} it is about"
    for batch in of_types(batches, types, context, not_used):
        latest.add(batch.filter(pc.is_null(batch.column("control"))))
    kept = latest.rows()
    if kept is None:
        return None
    found = DecodedRecords(kept, records)
    name = found.member(types, "key", key)
    decides = ~found.has_key | last_of_same(np.where(found.has_key, found.offsets, -1), name)
    found.report(context, lambda row: left_out if found.has_key[row] else not_used, decides)
    return LastRecords(found, types, decides & found.has_key & ~found.has_error & ~found.is_tombstone)
