"""The contenders of `columns.py`: the ways to decode a batch.

A contender gets a batch, prepares its own input (Arrow arrays, or lists of Python bytes), and returns a function that
decodes it. Only this function is timed. `shown` converts its result into plain values, with which the contenders are
compared (`_column_proof.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from kafka_records_engine.columns import Columns, RecordColumns, arrow_type, decode_column, decode_record_columns
from kafka_records_engine.columns.walker_values import plain_values
from kafka_records_runtime.errors import DecodeError, FramingError
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.records.framing import split_value
from kafka_records_runtime.schema import MessageSchema, RecordSchema
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS
from kafka_records_runtime.wire import walker
from tests.row_reader import RowReader
from tools.benchmarks._column_batches import Batch
from tools.benchmarks._column_objects import (
    UUID_TYPE,
    Arrays,
    Bytes,
    Objects,
    bytes_of,
    generated_loop,
    generated_to_arrow,
    kio_loop,
    kio_to_arrow,
)

Evidence = dict[str, list[Any]]
"""Plain values by column, `key.<field>` or `value.<field>`; under FAILED, the numbers of the rows that could not be
decoded."""

FAILED: Final = "failed"


@dataclass(frozen=True)
class Decoder:
    """`decode(argument)` is timed; `shown` converts its result into plain values."""

    argument: Any
    decode: Callable[[Any], Any]
    shown: Callable[[Any], Evidence]


@dataclass(frozen=True)
class Contender:
    """The function that prepares a batch, and what a reader needs to know about the contender."""

    prepare: Callable[[Batch], Decoder]
    note: str


# ------------------------------------------------------------------------------------------------------------ columns


def _columns(batch: Batch) -> Decoder:
    schema = batch.schema
    if isinstance(schema, MessageSchema):
        return Decoder(batch.values, lambda values: decode_column(schema, values), _shown_columns)
    number, schemas = schema.type, {schema.type: schema}

    def decode(columns: tuple[pa.Array, pa.Array]) -> RecordColumns:
        return decode_record_columns(schemas, *columns)

    def shown(result: RecordColumns) -> Evidence:
        key, value = result.records[number].flatten()
        return {**_shown_struct("key", key), **_shown_struct("value", value), FAILED: sorted(result.errors)}

    return Decoder((batch.keys, batch.values), decode, shown)


def _shown_columns(result: Columns) -> Evidence:
    return {**_shown_struct("value", result.values), FAILED: sorted(result.errors)}


def _shown_struct(prefix: str, column: pa.StructArray) -> Evidence:
    names = [each.name for each in column.type]
    return {f"{prefix}.{name}": each.to_pylist() for name, each in zip(names, column.flatten(), strict=True)}


# ---------------------------------------------------------------------------------------- objects, and Arrow from them


def _rows(batch: Batch) -> Decoder:
    def shown(objects: Objects) -> Evidence:
        columns = _shown_objects("value", batch.message, objects.values)
        if batch.key_message is not None:
            columns |= _shown_objects("key", batch.key_message, objects.keys)
        return {**columns, FAILED: objects.failed}

    return Decoder(bytes_of(batch), generated_loop(batch), shown)


def _shown_objects(prefix: str, message: MessageSchema, objects: list[Any]) -> Evidence:
    return {
        f"{prefix}.{name}": [None if each is None else _plain_object(getattr(each, name)) for each in objects]
        for name in (each.name for each in message.root.fields)
    }


def _plain_object(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain_object(each) for each in value]
    if isinstance(value, msgspec.Struct):
        names = (name for name in value.__struct_fields__ if name != UNKNOWN_TAGS)
        return {name: _plain_object(getattr(value, name)) for name in names}
    return str(value) if isinstance(value, Uuid) else value


def _rows_to_arrow(batch: Batch) -> Decoder:
    loop, to_arrow = generated_loop(batch), generated_to_arrow(batch)
    return Decoder(bytes_of(batch), lambda rows: to_arrow(loop(rows)), _shown_arrays)


def _kio_to_arrow(batch: Batch) -> Decoder:
    loop, to_arrow = kio_loop(batch), kio_to_arrow(batch)
    return Decoder(bytes_of(batch), lambda rows: to_arrow(loop(rows)), _shown_arrays)


def _shown_arrays(arrays: Arrays) -> Evidence:
    shown: Evidence = {
        name: [_plain_value(value, each.type) for value in each.to_pylist()] for name, each in arrays.columns.items()
    }
    return {**shown, FAILED: arrays.failed}


def _plain_value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if kind == UUID_TYPE:
        return str(Uuid(value))
    if pa.types.is_list(kind):
        return [_plain_value(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        return {each.name: _plain_value(value[each.name], each.type) for each in kind}
    return value


# ------------------------------------------------------------------------------------------------------------- walker


class Trees(NamedTuple):
    """Struct arrays that were made of dicts, and the rows that failed."""

    structs: dict[str, pa.StructArray]
    failed: list[int]


def _walker(batch: Batch) -> Decoder:
    schema = batch.schema
    loop = _walked_messages(schema) if isinstance(schema, MessageSchema) else _walked_records(schema)

    def shown(trees: Trees) -> Evidence:
        columns: Evidence = {FAILED: trees.failed}
        for prefix, struct in trees.structs.items():
            columns |= _shown_struct(prefix, struct)
        return columns

    return Decoder(bytes_of(batch), loop, shown)


def _walked_records(schema: RecordSchema) -> Callable[[Bytes], Trees]:
    read = RowReader({schema.type: schema}).read
    key_type, value_type = arrow_type(schema.key), arrow_type(schema.value)

    def loop(rows: Bytes) -> Trees:
        records = [read(key, value) for key, value in zip(rows.keys, rows.values, strict=True)]
        structs = {
            "key": pa.array([each.key for each in records], key_type),
            "value": pa.array([each.value for each in records], value_type),
        }
        return Trees(structs, [row for row, each in enumerate(records) if each.error is not None])

    return loop


def _walked_messages(message: MessageSchema) -> Callable[[Bytes], Trees]:
    plain, kind = plain_values(message), arrow_type(message)

    def loop(rows: Bytes) -> Trees:
        values: list[Any] = []
        failed = []
        for row, value in enumerate(rows.values):
            try:
                values.append(None if value is None else plain(_walked(message, value)))
            except (DecodeError, FramingError):
                values.append(None)
                failed.append(row)
        return Trees({"value": pa.array(values, kind)}, failed)

    return loop


def _walked(message: MessageSchema, value: bytes) -> Any:
    version, data = split_value(value)
    return walker.decode(message, data, version, lenient=True, allow_trailing=True)[0]


# -------------------------------------------------------------------------------------------------------- all of them

CONTENDERS: Final[dict[str, Contender]] = {
    "columns": Contender(_columns, "Arrow to Arrow: decode_record_columns; decode_column for a message by itself"),
    "rows": Contender(_rows, "bytes to objects and no further: a loop over Cls.decode of the generated classes"),
    "rows → Arrow": Contender(_rows_to_arrow, "bytes to Arrow: the objects of that loop, then pa.array for each field"),
    "walker → Arrow": Contender(_walker, "bytes to Arrow: dicts by the schema walker (RowReader), then pa.array"),
    "kio → Arrow": Contender(
        _kio_to_arrow, "bytes to Arrow: objects by kio's entity_reader, then pa.array for each field"
    ),
}
"""The contenders by the header of their column. The others are compared with the first one."""
