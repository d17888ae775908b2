"""Row decoding for `columns.py`: from lists of bytes to objects, and from objects to Arrow arrays.

The loops have one expression per row, because that is the fastest way in Python. Only batches with broken rows are read
by loops that catch errors of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records import registry
from kafka_records_engine.columns import ARROW_TYPES
from kafka_records_runtime.errors import DecodeError
from kafka_records_runtime.kafka.uuids import ZERO_UUID
from kafka_records_runtime.schema import FieldSchema, MessageSchema, StructSchema, covers
from tools.benchmarks._column_batches import Batch
from tools.benchmarks._row_contenders import kio_class

UUID_TYPE: Final = pa.binary(16)
"""Uuids stay bytes here. Converting them to text would take these contenders longer than the work that is compared."""

_TYPES: Final[Mapping[str, pa.DataType]] = {**ARROW_TYPES, "uuid": UUID_TYPE}


class Bytes(NamedTuple):
    """The input of row decoders."""

    keys: list[bytes]
    values: list[bytes | None]


class Objects(NamedTuple):
    """Decoded objects; None for a row without one."""

    keys: list[Any]
    values: list[Any]
    failed: list[int]


class Arrays(NamedTuple):
    """An array per field, and the rows that failed."""

    columns: dict[str, pa.Array]
    failed: list[int]


Loop = Callable[[Bytes], Objects]


def bytes_of(batch: Batch) -> Bytes:
    """The rows as Python bytes."""
    return Bytes([] if batch.keys is None else batch.keys.to_pylist(), batch.values.to_pylist())


# -------------------------------------------------------------------------------------------------------------- loops


def generated_loop(batch: Batch) -> Loop:
    """A loop that decodes with the generated classes."""
    read_key: Any = batch.key_message and registry.message_class(batch.key_message.name).decode
    read_value: Any = registry.message_class(batch.message.name).decode

    def loop(rows: Bytes) -> Objects:
        return Objects(
            [read_key(key[2:], 0) for key in rows.keys],
            [None if value is None else read_value(value[2:], value[0] << 8 | value[1]) for value in rows.values],
            [],
        )

    def guarded_loop(rows: Bytes) -> Objects:
        values: list[Any] = []
        failed = []
        for row, value in enumerate(rows.values):
            try:
                values.append(None if value is None else read_value(value[2:], value[0] << 8 | value[1]))
            except (DecodeError, IndexError):
                values.append(None)
                failed.append(row)
        return Objects([read_key(key[2:], 0) for key in rows.keys], values, failed)

    return guarded_loop if batch.broken else loop


def kio_loop(batch: Batch) -> Loop:
    """A loop that decodes with kio. kio has one class per version, so the caller chooses the reader."""
    from kio.serial import entity_reader

    lowest, highest = batch.message.versions or (0, -1)
    readers: Any = {version: entity_reader(kio_class(batch.message, version)) for version in range(lowest, highest + 1)}
    read_key: Any = batch.key_message and entity_reader(kio_class(batch.key_message, 0))

    def loop(rows: Bytes) -> Objects:
        return Objects(
            [read_key(key, 2)[0] for key in rows.keys],
            [None if value is None else readers[value[0] << 8 | value[1]](value, 2)[0] for value in rows.values],
            [],
        )

    def guarded_loop(rows: Bytes) -> Objects:
        values: list[Any] = []
        failed = []
        for row, value in enumerate(rows.values):
            try:
                values.append(None if value is None else readers[value[0] << 8 | value[1]](value, 2)[0])
            except Exception:  # kio's own errors, and KeyError or IndexError for the version
                values.append(None)
                failed.append(row)
        return Objects([read_key(key, 2)[0] for key in rows.keys], values, failed)

    return guarded_loop if batch.broken else loop


# ------------------------------------------------------------------------------------------------- objects into Arrow


def generated_to_arrow(batch: Batch) -> Callable[[Objects], Arrays]:
    """A function that puts objects of the generated classes into arrays."""
    key = _Fields(batch.key_message, bytes) if batch.key_message else None
    return _to_arrow(batch, key, _Fields(batch.message, bytes))


def kio_to_arrow(batch: Batch) -> Callable[[Objects], Arrays]:
    """A function that puts kio's objects into arrays. It takes longer for a field that some versions lack."""
    found = {int.from_bytes(value[:2], "big") for value in batch.values.drop_null().to_pylist()}
    versions = frozenset(version for version in found if covers(batch.message.versions, version))
    key = _Fields(batch.key_message, _kio_uuid, frozenset({0})) if batch.key_message else None
    return _to_arrow(batch, key, _Fields(batch.message, _kio_uuid, versions))


def _kio_uuid(value: Any) -> Any:
    return ZERO_UUID if value is None else value.bytes


def _to_arrow(batch: Batch, key: _Fields | None, value: _Fields) -> Callable[[Objects], Arrays]:
    has_gaps = batch.has_gaps

    def convert(objects: Objects) -> Arrays:
        columns = {} if key is None else key.arrays("key", objects.keys, has_gaps=False)
        return Arrays(columns | value.arrays("value", objects.values, has_gaps), objects.failed)

    return convert


@dataclass(frozen=True)
class _Fields:
    """Puts the fields of many objects into arrays. `versions` are the possible versions of the objects if each version
    has its own class, which lacks the fields of other versions; None if one class has all fields."""

    message: MessageSchema
    uuid_bytes: Callable[[Any], Any]
    versions: frozenset[int] | None = None

    def arrays(self, prefix: str, objects: list[Any], has_gaps: bool) -> dict[str, pa.Array]:
        """An array for every field of the message, null if the object is None."""
        if not has_gaps:
            arrays = self._arrays(self.message.root, objects)
        else:
            present = [each for each in objects if each is not None]
            numbers = iter(range(len(present)))
            places = pa.array([None if each is None else next(numbers) for each in objects], pa.int32())
            arrays = {name: array.take(places) for name, array in self._arrays(self.message.root, present).items()}
        return {f"{prefix}.{name}": array for name, array in arrays.items()}

    def _arrays(self, struct: StructSchema, objects: list[Any]) -> dict[str, pa.Array]:
        return {each.name: self._field(each, objects) for each in struct.fields}

    def _field(self, field: FieldSchema, objects: list[Any]) -> pa.Array:
        with_field = {covers(field.versions, version) for version in self.versions or ()}
        if with_field == {False}:
            return self._defaults(field, len(objects))
        if False in with_field:
            default = None if field.base == "uuid" else field.default  # kio represents the zero uuid as None
            return self._array(field, [getattr(each, field.name, default) for each in objects])
        return self._array(field, list(map(attrgetter(field.name), objects)))

    def _defaults(self, field: FieldSchema, count: int) -> pa.Array:
        if field.is_array:
            return self._array(field, [field.default] * count)
        return pa.repeat(pa.scalar(field.default, _TYPES[field.base]), count)

    def _array(self, field: FieldSchema, values: list[Any]) -> pa.Array:
        if field.is_array and field.is_struct:
            return self._lists_of_structs(field, values)
        if field.base == "uuid":
            uuid_bytes = self.uuid_bytes
            values = [uuid_bytes(each) for each in values]
        kind = _TYPES[field.base]
        return pa.array(values, pa.list_(kind) if field.is_array else kind)

    def _lists_of_structs(self, field: FieldSchema, values: list[Any]) -> pa.Array:
        absent = None
        if field.nullable is not None:
            absent = pa.array([each is None for each in values])
            values = [each or () for each in values]
        offsets = np.zeros(len(values) + 1, np.int32)
        np.cumsum(list(map(len, values)), out=offsets[1:])
        items = self._arrays(self.message.struct(field.base), list(chain.from_iterable(values)))
        structs = pa.StructArray.from_arrays(list(items.values()), list(items))
        return pa.ListArray.from_arrays(pa.array(offsets), structs, mask=absent)
