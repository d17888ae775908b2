"""Checks that struct columns can be encoded as messages, and converts their values for the schema walker.

Such a column comes from a `from_…` function or from any user query, so it may contain anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as arrow
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import from_arrow_type

from kafka_records_engine.columns import UNKNOWN_TAGS_TYPE
from kafka_records_engine.spark.errors import InvalidUuid, MissingField
from kafka_records_runtime.errors import EncodeError, UnknownField, WrongType
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import FieldSchema, MessageSchema, StructSchema
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS, struct_layouts
from kafka_records_runtime.text.spark_names import SPARK_TYPES
from kafka_records_runtime.wire.failure import WriteFailure

Convert = Callable[[Any], Any]
Fits = Callable[[pa.DataType], bool]


def _is_text(type: pa.DataType) -> bool:
    return bool(arrow.is_string(type) or arrow.is_large_string(type))


def _is_binary(type: pa.DataType) -> bool:
    return bool(arrow.is_binary(type) or arrow.is_large_binary(type))


def _is_list(type: pa.DataType) -> bool:
    return bool(arrow.is_list(type) or arrow.is_large_list(type))


def _is_number(type: pa.DataType) -> bool:
    return bool(arrow.is_floating(type) or arrow.is_integer(type))


_FITS: Final[Mapping[str, Fits]] = {
    "BooleanType": arrow.is_boolean,
    "ByteType": arrow.is_integer,
    "ShortType": arrow.is_integer,
    "IntegerType": arrow.is_integer,
    "LongType": arrow.is_integer,
    "DoubleType": _is_number,
    "StringType": _is_text,
    "BinaryType": _is_binary,
}
"""For each Spark type of a field, the column types from which it can be written. A number that is too large is an error
of its row."""


# -- whether a column fits ------------------------------------------------------------------------


def check_fields(message: MessageSchema, type: pa.DataType, version: int) -> None:
    """Raise the first EncodeError that explains why a column of `type` cannot be encoded as this version of `message`.

    The error is MissingField for a missing field (tagged fields and fields that the version lacks may be missing),
    UnknownField for a superfluous one, or WrongType for a column of another type. Array elements are `[]` in its path.
    """
    for error in _Check(message, version).struct(message.root, type, ""):
        raise error


class _Check:
    def __init__(self, message: MessageSchema, version: int) -> None:
        self._message = message
        self._version = version
        self._layouts = struct_layouts(message, version)

    def struct(self, struct: StructSchema, type: pa.DataType, path: str) -> Iterator[EncodeError]:
        if arrow.is_null(type):
            return
        if not arrow.is_struct(type):
            yield self._wrong_type(path, "struct", type)
            return
        fields = {layout.field.name: layout for layout in self._layouts[struct.name].fields}
        names = [item.name for item in type]
        for item in type:
            inner = f"{path}.{item.name}" if path else item.name
            if names.count(item.name) > 1:
                yield self._error(WrongType, inner, "one field", f"{names.count(item.name)} fields of that name")
            elif item.name == UNKNOWN_TAGS:
                yield from self._tags(item.type, inner)
            elif item.name not in fields:
                yield self._error(UnknownField, path, item.name)
            else:
                yield from self._field(fields[item.name].field, item.type, inner)
        for name, layout in fields.items():
            if layout.present and not layout.tagged and name not in names:
                yield self._error(MissingField, path, name)

    def _field(self, field: FieldSchema, type: pa.DataType, path: str) -> Iterator[EncodeError]:
        if not field.is_array or arrow.is_null(type):
            yield from self._element(field, type, path)
        elif _is_list(type):
            yield from self._element(field, type.value_type, f"{path}[]")
        else:
            yield self._wrong_type(path, "array", type)

    def _element(self, field: FieldSchema, type: pa.DataType, path: str) -> Iterator[EncodeError]:
        if field.is_struct:
            yield from self.struct(self._message.struct(field.base), type, path)
        elif not arrow.is_null(type) and not _FITS[SPARK_TYPES[field.base]](type):
            yield self._wrong_type(path, getattr(spark, SPARK_TYPES[field.base])().simpleString(), type)

    def _tags(self, type: pa.DataType, path: str) -> Iterator[EncodeError]:
        expected = UNKNOWN_TAGS_TYPE.value_type
        if arrow.is_null(type):
            return
        pair = type.value_type if _is_list(type) else type
        fits = arrow.is_struct(pair) and [item.name for item in pair] == [item.name for item in expected]
        if not (_is_list(type) and fits and arrow.is_integer(pair[0].type) and _is_binary(pair[1].type)):
            yield self._wrong_type(path, from_arrow_type(UNKNOWN_TAGS_TYPE).simpleString(), type)

    def _wrong_type(self, path: str, expected: str, found: pa.DataType) -> EncodeError:
        return self._error(WrongType, path, expected, from_arrow_type(found).simpleString())

    def _error(self, error: type[EncodeError], path: str, *rest: object) -> EncodeError:
        return error(self._message.name, self._version, path, *rest)


# -- its values -----------------------------------------------------------------------------------


def walker_values(message: MessageSchema, type: pa.DataType) -> Convert:
    """A function that converts a value of a column of `type`, as returned by `to_pylist`, for `walker.encode`.

    The function changes structs in place. Texts become uuids where `message` has a uuid, and unknown tagged fields
    become pairs (null means there are none). Raises a WriteFailure for text that is not a uuid. Values that do not fit
    the message are left unchanged.
    """
    return _of_struct(message, message.root, type) or _unchanged


def _of_struct(message: MessageSchema, struct: StructSchema, type: pa.DataType) -> Convert | None:
    if not arrow.is_struct(type):
        return None
    fields = {field.name: field for field in struct.fields}
    changes: list[tuple[str, Convert]] = []
    for item in type:
        change: Convert | None = _tag_pairs if item.name == UNKNOWN_TAGS else None
        if item.name in fields:
            change = _of_field(message, fields[item.name], item.type)
        if change is not None:
            changes.append((item.name, change))
    return _struct_change(changes) if changes else None


def _of_field(message: MessageSchema, field: FieldSchema, type: pa.DataType) -> Convert | None:
    if field.is_array and not _is_list(type):
        return None
    inner = type.value_type if field.is_array else type
    change = _of_struct(message, message.struct(field.base), inner) if field.is_struct else None
    if field.base == "uuid" and _is_text(inner):
        change = _uuid
    return _array_change(change) if change is not None and field.is_array else change


def _struct_change(changes: list[tuple[str, Convert]]) -> Convert:
    def convert(value: Any) -> Any:
        if value is not None:
            for name, change in changes:
                value[name] = _at(name, change, value[name])
        return value

    return convert


def _array_change(change: Convert) -> Convert:
    def convert(values: Any) -> Any:
        if values is None:
            return None
        return [_at(f"[{index}]", change, value) for index, value in enumerate(values)]

    return convert


def _at(part: str, change: Convert, value: Any) -> Any:
    try:
        return change(value)
    except WriteFailure as failure:
        failure.parts.append(part)
        raise


def _uuid(text: str | None) -> Uuid | None:
    if text is None:
        return None
    try:
        return Uuid.from_string(text)
    except ValueError:
        raise WriteFailure(InvalidUuid, text) from None


def _tag_pairs(tags: list[dict[str, Any] | None] | None) -> tuple[Any, ...]:
    return tuple(tag and (tag["tag"], tag["data"]) for tag in tags or ())


def _unchanged(value: Any) -> Any:
    return value
