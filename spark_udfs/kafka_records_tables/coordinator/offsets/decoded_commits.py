"""Commits and tombstones of offsets, decoded into columns. Each distinct key is decoded once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.columns import decode_column
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commits import COMMITS, read_columns, value_columns
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, numbers_of

if TYPE_CHECKING:
    from kafka_records_runtime.schema import RecordSchema

KEY: Final = ("group_id", "topic", "partition")
"""The columns of `DecodedCommits.keys`."""

VALUE: Final = ("offset", "leader_epoch", "metadata", "topic_id", "commit_timestamp_ms")
"""The columns of `DecodedCommits.values`."""


class DecodedCommits:
    """Some raw rows of the record types COMMITS, decoded. Each vector has one element per row.

    Usually all rows have the newer record type and can be fully decoded (`is_plain`). Then each distinct key is decoded
    once, and null values are skipped. Otherwise, `found` decodes row by row to determine the error of each row.
    """

    keys: pa.RecordBatch
    """The keys, with the columns KEY. A key may occur several times."""
    key: INT64
    """For each row, the index of its key in `keys`."""
    values: pa.RecordBatch
    """The values, with the columns VALUE."""
    value: INT64
    """For each row, the index of its value in `values`; -1 if it has no readable value."""
    has_key: FLAGS
    """For each row, whether its key can be read."""
    has_error: FLAGS
    """For each row, whether its key or its value cannot be read."""

    def __init__(self, rows: pa.RecordBatch, schemas: Mapping[int, RecordSchema]) -> None:
        self.rows = rows
        self.types = numbers_of(schemas, COMMITS)
        self._schemas = schemas
        self.is_tombstone: FLAGS = rows.column("value").is_null().to_numpy(zero_copy_only=False)
        """For each row, whether its value is null."""
        self.is_plain = self._decode_at_once()
        """Whether all rows were fully decoded, so that there is nothing to report."""
        if not self.is_plain:
            self._decode_one_by_one()

    @cached_property
    def found(self) -> DecodedRecords:
        """The rows, decoded one by one, with the error of each row."""
        return DecodedRecords(self.rows, self._schemas)

    def _decode_at_once(self) -> bool:
        """Decode each distinct key once, and the values. Returns False if rows have to be decoded one by one."""
        encoded = self.rows.column("key").dictionary_encode()
        distinct = DecodedRecords(pa.RecordBatch.from_arrays([encoded.dictionary], names=["key"]), self._schemas)
        of_keys, number = distinct.columns, self.types[-1]
        if of_keys.errors or of_keys.leniencies or of_keys.key_bytes_left.any():
            return False
        if (of_keys.record_type != number).any() or not len(encoded):
            return False
        raw = self.rows.column("value")
        decoded = decode_column(self._schemas[number].value, raw.drop_null() if raw.null_count else raw)
        if decoded.errors or decoded.leniencies or decoded.bytes_left.any():
            return False
        self._columns_of(distinct, decoded.values)
        self.key = encoded.indices.to_numpy().astype(np.int64)
        self.value = np.arange(len(self.key))
        if raw.null_count:
            self.value = np.where(self.is_tombstone, -1, np.cumsum(~self.is_tombstone) - 1)
        self.has_key = np.ones(len(self.key), np.bool_)
        self.has_error = np.zeros(len(self.key), np.bool_)
        return True

    def _columns_of(self, distinct: DecodedRecords, values: pa.StructArray) -> None:
        keys = (distinct.member(self.types, "key", name) for name in ("group", "topic", "partition"))
        self.keys = pa.RecordBatch.from_arrays(list(keys), names=list(KEY))
        named = value_columns({field.name: pc.struct_field(values, field.name) for field in values.type})
        self.values = pa.RecordBatch.from_arrays([named[name] for name in VALUE], names=list(VALUE))

    def _decode_one_by_one(self) -> None:
        found = self.found
        columns = read_columns(found, self.types)
        self.keys = pa.RecordBatch.from_arrays([columns[name] for name in KEY], names=list(KEY))
        self.values = pa.RecordBatch.from_arrays([columns[name] for name in VALUE], names=list(VALUE))
        self.has_key, self.has_error = found.has_key, found.has_error
        self.key = np.arange(len(self.has_key))
        has_value = self.has_key & ~self.has_error & ~self.is_tombstone
        self.value = np.where(has_value, self.key, -1)
