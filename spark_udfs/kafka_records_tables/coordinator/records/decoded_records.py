"""Selects the records that a table needs by type, decodes them into columns, and reports undecodable ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.columns import RecordColumns, decode_record_columns, record_arrow_type
from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_engine.findings import UNDECIDED_TRANSACTION, Finding, reason_of, said_of
from kafka_records_engine.numpy_types import FLAGS, INT16, INT64
from kafka_records_runtime.errors import DecodeError, FramingError
from kafka_records_runtime.records.framing import unframed_key
from kafka_records_tables.coordinator.records.latest import LAST_VALUE
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

_BATCH_PLACE: Final = ("file", "position", "base_offset")
"""Columns with the position of a row. A source may lack them."""


_REMEMBERED: Final = 4
"""The number of recently decoded lots that are remembered: enough for tables of state and of history."""


def schemas(context: Context, folder: str) -> Mapping[int, RecordSchema]:
    """The record types of a topic by number, from the generated package named by the context."""
    module = import_module(f"{context.question.package}.schemas.{folder}")
    return cast("Mapping[int, RecordSchema]", module.RECORDS)


def numbers_of(schemas: Mapping[int, RecordSchema], names: Iterable[str]) -> tuple[int, ...]:
    """The numbers of the record types with these names."""
    by_name = {schema.name: number for number, schema in schemas.items()}
    return tuple(by_name[name] for name in names)


def are_of_types(numbers: INT16, types: Iterable[int]) -> FLAGS:
    """Flags the record types that are in `types`. Five times as fast as `numpy.isin`."""
    wanted = np.zeros(1 << 16, np.bool_)
    wanted[np.array([*types], np.int16).view(np.uint16)] = True
    found: FLAGS = wanted[numbers.view(np.uint16)]
    return found


def filter_record_types(
    batch: pa.RecordBatch, types: Iterable[int], context: Context, without_type: str
) -> pa.RecordBatch:
    """Select the control rows, and the records of the given types.

    Reports records whose keys have no type, with the consequence `without_type`.
    """
    numbers, has_type = prefix_column(batch.column("key"))
    kept = has_type & are_of_types(numbers, types)
    is_record = None
    if batch.column("control").null_count < batch.num_rows:
        is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        kept = kept & is_record | ~is_record
    if kept.all():
        return batch
    nameless = ~has_type if is_record is None else ~has_type & is_record
    _tell_without_type(batch, nameless, context, without_type)
    return batch.filter(pa.array(kept))


def report_without_type(batch: pa.RecordBatch, context: Context, consequence: str) -> None:
    """Report the records whose keys have no type, with the `consequence`."""
    _, has_type = prefix_column(batch.column("key"))
    if not has_type.all():
        nameless = ~has_type & batch.column("control").is_null().to_numpy(zero_copy_only=False)
        _tell_without_type(batch, nameless, context, consequence)


def _tell_without_type(batch: pa.RecordBatch, which: FLAGS, context: Context, consequence: str) -> None:
    keys = batch.column("key")
    for row in np.flatnonzero(which).tolist():
        error = unframed_key(len(keys[row].as_buffer()) if keys[row].is_valid else None)
        if context.findings.has_room("damage", reason_of(error)):
            context.findings.add(undecodable(batch, row, error, context, None, consequence))


class DecodedRecords:
    """Some raw rows of one log partition, decoded. Each mask and array has one element per row.

    If the rows have no column `value`, only their keys are decoded.
    """

    def __init__(
        self, rows: pa.RecordBatch, schemas: Mapping[int, RecordSchema], shared: dict[Any, Any] | None = None
    ) -> None:
        """`shared` (`Context.shared`) belongs to all tables of one reading. It contains the rows decoded last, because
        several tables decode the same rows."""
        if "value" not in rows.schema.names:
            rows = rows.append_column("value", pa.nulls(rows.num_rows, pa.binary()))
        self.rows = rows
        self._schemas = schemas
        self.columns: RecordColumns = _columns(rows, schemas, shared)

    def record_name(self, number: int) -> str:
        """The name of a record type."""
        return self._schemas[number].name

    def key_names(self, number: int) -> list[str]:
        """The key fields of a record type."""
        return [field.name for field in self._schemas[number].key.root.fields]

    @cached_property
    def last_value(self) -> INT64:
        """For each row, the offset of the last value of its key (`latest.LAST_VALUE`); -1 without this column."""
        if LAST_VALUE not in self.rows.schema.names:
            return np.full(self.rows.num_rows, -1, np.int64)
        offsets: INT64 = self.rows.column(LAST_VALUE).to_numpy()
        return offsets

    @cached_property
    def offsets(self) -> INT64:
        """The offset of each record in the log."""
        offsets: INT64 = self.rows.column("offset").to_numpy()
        return offsets

    @cached_property
    def timestamps(self) -> list[int | None] | None:
        """When each record was written, in milliseconds since 1970; None if rows have no timestamps."""
        if "timestamp_ms" not in self.rows.schema.names:
            return None
        times: list[int | None] = self.rows.column("timestamp_ms").to_pylist()
        return times

    @cached_property
    def has_key(self) -> FLAGS:
        """For each record, whether its key could be read."""
        has = np.zeros(self.rows.num_rows, np.bool_)
        for record in self.columns.records.values():
            has |= record.is_valid().to_numpy(zero_copy_only=False)
        return has

    @cached_property
    def has_error(self) -> FLAGS:
        """For each record, whether its key or its value could not be decoded."""
        has = np.zeros(self.rows.num_rows, np.bool_)
        has[list(self.columns.errors)] = True
        return has

    @cached_property
    def is_tombstone(self) -> FLAGS:
        """For each record, whether its value is null."""
        flags: FLAGS = self.rows.column("value").is_null().to_numpy(zero_copy_only=False)
        return flags

    def member(self, types: Iterable[int], part: str, name: str) -> pa.Array:
        """The field `name` in the `part` (key or value) of records of the given types; null for all other records."""
        found = [
            pc.struct_field(self.columns.records[number], [part, name])
            for number in types
            if number in self.columns.records
        ]
        if not found:
            kind = record_arrow_type(self._schemas[next(iter(types))]).field(part).type.field(name).type
            return pa.nulls(self.rows.num_rows, kind)
        return pc.coalesce(*found) if len(found) > 1 else found[0]

    def report(self, context: Context, consequence: Callable[[int], str], which: FLAGS | None = None) -> None:
        """Report the undecodable records, and count the irregularities accepted in the other records."""
        columns = self.columns
        for row, error in sorted(columns.errors.items()):
            if (which is None or which[row]) and context.findings.has_room("damage", reason_of(error)):
                number = int(columns.record_type[row]) if columns.has_type[row] else None
                context.findings.add(undecodable(self.rows, row, error, context, number, consequence(row)))
        left = columns.key_bytes_left + columns.value_bytes_left
        if which is not None:
            left = np.where(which, left, 0)
        context.counts.bytes_left += int(left.sum())
        context.counts.with_bytes_left += int((left > 0).sum())
        for row, names in columns.leniencies.items():
            if which is None or which[row]:
                context.counts.leniencies.update(names)


class _Decoded(NamedTuple):
    rows: pa.RecordBatch
    schemas: Mapping[int, RecordSchema]
    columns: RecordColumns

    def is_of(self, rows: pa.RecordBatch, schemas: Mapping[int, RecordSchema]) -> bool:
        """Whether the same keys and values were decoded."""
        return (
            self.rows.num_rows == rows.num_rows
            and self.schemas is schemas
            and all(self.rows.column(name).equals(rows.column(name)) for name in ("key", "value"))
        )


def _columns(rows: pa.RecordBatch, schemas: Mapping[int, RecordSchema], shared: dict[Any, Any] | None) -> RecordColumns:
    if shared is None:
        return decode_record_columns(schemas, rows.column("key"), rows.column("value"))
    remembered: deque[_Decoded] = shared.setdefault(_Decoded, deque(maxlen=_REMEMBERED))
    found = next((each.columns for each in remembered if each.is_of(rows, schemas)), None)
    if found is None:
        found = _columns(rows, schemas, None)
        remembered.append(_Decoded(rows.select(["key", "value"]), schemas, found))
    return found


def nulled(column: pa.Array, nothing: Any) -> pa.Array:
    """The column, with null in place of `nothing`, the value that means "absent"."""
    return pc.if_else(pc.equal(column, nothing), pa.scalar(None, column.type), column)


def undecodable(
    rows: pa.RecordBatch,
    row: int,
    error: DecodeError | FramingError,
    context: Context,
    record_type: int | None,
    consequence: str,
) -> Finding:
    """The finding about an undecodable record. For the metadata log it omits the bytes, because they may contain
    secrets."""
    where = error if isinstance(error, DecodeError) else None
    return Finding(
        severity="damage",
        reason=reason_of(error),
        what=said_of(error),
        consequence=consequence,
        record_type=record_type,
        version=None if where is None else where.version,
        path=None if where is None else where.path,
        byte_offset=None if where is None else where.offset,
        raw_key=rows.column("key")[row].as_py(),
        raw_value=None if context.topic == METADATA else rows.column("value")[row].as_py(),
        **place_of(rows, row, context),
    )


def undecided(
    rows: pa.RecordBatch, row: int, context: Context, record_type: int, what: str, consequence: str
) -> Finding:
    """The finding about a record whose transaction has an unknown outcome; `what` describes the record in words."""
    producer = rows.column("producer_id")[row].as_py()
    return Finding(
        severity="damage",
        reason=UNDECIDED_TRANSACTION,
        what=f"{what}: it is unknown how the transaction of producer {producer} ended, because its marker was not read",
        consequence=consequence,
        record_type=record_type,
        **place_of(rows, row, context),
    )


def place_of(rows: pa.RecordBatch, row: int, context: Context) -> dict[str, Any]:
    """The place of a row, with the fields that its source reports."""
    there = rows.schema.names
    file, position, base_offset = (rows.column(name)[row].as_py() if name in there else None for name in _BATCH_PLACE)
    return {
        "topic": context.topic,
        "partition": context.partition,
        "offset": rows.column("offset")[row].as_py(),
        "file": file,
        "position": position,
        "base_offset": base_offset if position is not None else None,
    }
