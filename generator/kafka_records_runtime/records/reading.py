"""Converts the bytes of a key and a value to a record of `records`, with generated classes or with schemas.

The rules are those of `framing`. Spark workers need no record objects, so they import only `framing`, which works
without msgspec.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from kafka_records_runtime.errors import DecodeError
from kafka_records_runtime.records.classes import (
    KnownRecord,
    PlainRecord,
    UnknownApiKeyRecord,
    UnknownTypeRecord,
    UnknownVersionRecord,
)
from kafka_records_runtime.records.framing import (
    COORDINATOR,
    KEY_VERSION,
    PREFIX,
    Framing,
    SchemaRecordType,
    bytes_behind,
    end_frame,
    record_type_of,
    start_frame,
    unframed_key,
    value_version_of,
)
from kafka_records_runtime.wire.buffers import as_bytes

if TYPE_CHECKING:
    from kafka_records_runtime.messages.codec import Codec
    from kafka_records_runtime.schema import MessageSchema, RecordSchema

R = TypeVar("R", covariant=True)


class RecordType(Protocol[R]):
    """Reads the records of one type, with generated classes or with schemas."""

    @property
    def name(self) -> str: ...

    @property
    def value_name(self) -> str: ...

    @property
    def value_schema(self) -> MessageSchema: ...

    @property
    def value_versions(self) -> range: ...

    def read_key(self, body: bytes, leniencies: list[str]) -> tuple[Any, int]: ...

    def read_value(self, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]: ...

    def record(self, key: Any, value: Any, **others: Any) -> R: ...


def read_record(
    types: Mapping[int, RecordType[R]],
    key: bytes | bytearray | memoryview | None,
    value: bytes | bytearray | memoryview | None,
    retired: Mapping[int, str] = MappingProxyType({}),
    framing: Framing = COORDINATOR,
) -> R | UnknownVersionRecord[Any] | UnknownTypeRecord | UnknownApiKeyRecord:
    """Decode one record with the readers in `types`. `retired` contains the names of types that Kafka no longer uses.

    Raises a FramingError for bytes that do not begin as `framing` requires, and a DecodeError for an unparsable
    message. Unknown types and versions do not raise errors, but a record of an unknown version or, in metadata framing,
    of an unknown type has an `error`.
    """
    if framing != COORDINATOR:
        return _read_metadata_record(types, key, value, retired)
    if type(key) is not bytes:
        if key is None:
            raise unframed_key(None)
        key = as_bytes(key)
    if value is not None and type(value) is not bytes:
        value = as_bytes(value)
    number = record_type_of(key)
    kind = types.get(number)
    if kind is None:
        return UnknownTypeRecord(key, value, number, retired.get(number))
    leniencies: list[str] = []
    message = key[PREFIX.size :]
    typed_key, used = kind.read_key(message, leniencies)
    key_bytes_left = len(message) - used
    typed_value, version, value_bytes_left, is_known_version = None, None, 0, True
    if value is not None:
        version = value_version_of(value)
        is_known_version = version in kind.value_versions
        if is_known_version:
            message = value[PREFIX.size :]
            typed_value, used = kind.read_value(message, version, leniencies)
            value_bytes_left = len(message) - used
    others: dict[str, Any] = {"value_version": version}
    if leniencies or key_bytes_left or value_bytes_left:
        others |= {"key_bytes_left": key_bytes_left, "value_bytes_left": value_bytes_left}
        others |= {"leniencies": tuple(leniencies), "raw_key": key, "raw_value": value}
    if is_known_version:
        return kind.record(typed_key, typed_value, **others)
    data = cast(bytes, value)
    return UnknownVersionRecord(typed_key, data, number, kind.name, kind.value_name, kind.value_versions, **others)


def _read_metadata_record(
    types: Mapping[int, RecordType[R]],
    key: bytes | bytearray | memoryview | None,
    value: bytes | bytearray | memoryview | None,
    retired: Mapping[int, str],
) -> R | UnknownVersionRecord[Any] | UnknownApiKeyRecord:
    data = cast(bytes, None if value is None else as_bytes(value))
    number, at = start_frame(None if key is None else as_bytes(key), data)
    kind = types.get(number)
    if kind is None:
        return UnknownApiKeyRecord(data, number, retired.get(number))
    version, at = end_frame(data, at)
    if version not in kind.value_versions:
        return UnknownVersionRecord(
            None, data, number, kind.name, kind.value_name, kind.value_versions, value_version=version
        )
    leniencies: list[str] = []
    message = data[at:]
    typed, used = kind.read_value(message, version, leniencies)
    if used < len(message):
        raise bytes_behind(kind.value_schema, version, used, len(message) - used)
    others: dict[str, Any] = {"value_version": version}
    if leniencies:
        others |= {"leniencies": tuple(leniencies), "raw_value": data}
    return kind.record(key=None, value=typed, **others)


class PlainRecordType(SchemaRecordType):
    """Reads records as plain values, with schemas only."""

    def record(self, key: Any, value: Any, **others: Any) -> PlainRecord:
        return PlainRecord(key, value, self.schema.type, self.name, **others)


def schema_record_types(schemas: Mapping[int, RecordSchema]) -> dict[int, PlainRecordType]:
    """Readers of plain values for the `RECORDS` of a generated `schemas.<folder>` module."""
    return {number: PlainRecordType(schema) for number, schema in schemas.items()}


class CodecRecordType:
    """Reads records as the generated class `record_class` in `module`, which is imported when the first such record is
    read."""

    def __init__(self, module: str, record_class: str) -> None:
        self._module = module
        self.class_name = record_class

    @cached_property
    def record(self) -> type[KnownRecord]:
        """The class of such records."""
        return cast("type[KnownRecord]", getattr(import_module(self._module), self.class_name))

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def key_class(self) -> Any:
        return self.record.KEY_CLASS

    @property
    def value_class(self) -> Any:
        return self.record.VALUE_CLASS

    @property
    def value_name(self) -> str:
        return self.value_schema.name

    @property
    def value_schema(self) -> MessageSchema:
        return cast("MessageSchema", self.value_class.CODEC.schema)

    @cached_property
    def value_versions(self) -> range:
        return cast(range, self.value_class.VERSIONS)

    def read_key(self, body: bytes, leniencies: list[str]) -> tuple[Any, int]:
        return _read_typed(self.record.KEY_CLASS, body, KEY_VERSION, leniencies)

    def read_value(self, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]:
        return _read_typed(self.record.VALUE_CLASS, body, version, leniencies)


def _read_typed(cls: Any, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]:
    try:
        return cast("tuple[Any, int]", cls.decode_prefix(body, version))
    except DecodeError:
        codec = cast("Codec[Any]", cls.CODEC)
        return codec.decode_lenient(body, version, leniencies)
