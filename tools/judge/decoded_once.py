"""Decodes records once for all tables that are read over parts of one log.

A history is read some fifty times: at every cut, by every table, in every way. Most of the time would be spent on
decoding a few hundred rows each time. So all rows are decoded at once, by the same function, and a table gets the rows
that it requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns import RecordColumns, decode_record_columns
from kafka_records_engine.numpy_types import INT64
from kafka_records_runtime.schema import RecordSchema
from kafka_records_tables.coordinator.records import decoded_records

Row = tuple[bytes | None, bytes | None]


class DecodedOnce:
    """The raw rows of a log, which are decoded when a table first requests any of them. It replaces
    `decode_record_columns`."""

    def __init__(self, rows: pa.Table) -> None:
        keys, values = (rows[name].combine_chunks() for name in ("key", "value"))
        whole = list(zip(keys.to_pylist(), values.to_pylist(), strict=True))
        distinct = dict.fromkeys([*whole, *((key, None) for key, _ in whole)])
        self._keys, self._values = (pa.array(each, pa.binary()) for each in zip(*distinct, strict=True))
        self._places: dict[Row, int] = {row: place for place, row in enumerate(distinct)}
        self._by_schemas: dict[int, tuple[Mapping[int, RecordSchema], RecordColumns]] = {}
        self._given: dict[tuple[int, bytes], RecordColumns] = {}

    @contextmanager
    def used(self) -> Iterator[None]:
        """Within this context, tables get these rows, or some of them, from the rows that were decoded before.

        They may also request a row without its value. Everything else that they request is decoded as usual.
        """
        with patch.object(decoded_records, "decode_record_columns", self):
            yield

    def __call__(self, schemas: Mapping[int, RecordSchema], keys: pa.Array, values: pa.Array) -> RecordColumns:
        rows = zip(keys.to_pylist(), values.to_pylist(), strict=True)
        found = [self._places.get(row) for row in rows]
        if None in found:
            return decode_record_columns(schemas, keys, values)
        if id(schemas) not in self._by_schemas:
            self._by_schemas[id(schemas)] = schemas, decode_record_columns(schemas, self._keys, self._values)
        places = np.array(found, np.int64)
        # Many tables request the same records of a cut.
        asked = id(schemas), places.tobytes()
        if asked not in self._given:
            self._given[asked] = _taken(self._by_schemas[id(schemas)][1], places)
        return self._given[asked]


def _taken(columns: RecordColumns, places: INT64) -> RecordColumns:
    """The decoded columns of the records at these places."""
    types = columns.record_type[places]
    known = columns.is_known[places]
    chosen = pa.array(places)
    return RecordColumns(
        record_type=types,
        has_type=columns.has_type[places],
        is_known=known,
        value_version=columns.value_version[places],
        has_version=columns.has_version[places],
        key_bytes_left=columns.key_bytes_left[places],
        value_bytes_left=columns.value_bytes_left[places],
        has_unknown_tags=columns.has_unknown_tags[places],
        records={number: columns.records[number].take(chosen) for number in np.unique(types[known]).tolist()},
        errors=_told(columns.errors, places),
        leniencies=_told(columns.leniencies, places),
    )


def _told(by_place: Mapping[int, Any], places: INT64) -> dict[int, Any]:
    return {row: by_place[place] for row, place in enumerate(places.tolist()) if place in by_place} if by_place else {}
