"""Framing of the records of a coordinator topic: key = int16 record type + message, value = int16 version + message.

The rules are those of Kafka's `CoordinatorRecordSerde`: the key is always read at version 0, the value's version is
checked against the versions its type has, and whatever follows a message is left alone. Where a reader of Kafka's
would throw away a record of a type or version it does not know, `Record` keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from kafka_records_runtime.buffers import as_bytes
from kafka_records_runtime.errors import (
    DecodeError,
    MissingRecordType,
    MissingValueVersion,
    NullKey,
    UnsupportedVersion,
    WrongType,
)

if TYPE_CHECKING:
    from kafka_records_runtime.codec import Codec
    from kafka_records_runtime.schema import RecordSchema

KEY_VERSION: Final = 0
"""The version of every record key."""


@dataclass(frozen=True, slots=True)
class Record:
    """One decoded record of a coordinator topic.

    `key` is the typed key, or the key's bytes when the type is unknown; `name` is None then, but for retired types,
    which have a name and nothing else. `value` is the typed value, None for a tombstone, or the value's bytes when its
    type or version is unknown. `value_version` is None for tombstones and unknown types.
    `key_bytes_left` and `value_bytes_left` count the bytes behind the messages, which Kafka ignores; `leniencies` names
    what else a strict reader would have refused, once for each time. `raw_key` and `raw_value` are the record's bytes
    when one of these says that the values alone may not give them back: None for every other record.
    """

    record_type: int
    name: str | None
    key: Any
    value: Any
    value_version: int | None
    key_bytes_left: int = 0
    value_bytes_left: int = 0
    leniencies: tuple[str, ...] = ()
    raw_key: bytes | None = None
    raw_value: bytes | None = None

    @property
    def is_lenient(self) -> bool:
        """Whether a strict reader would have refused the record; `raw_key` and `raw_value` are its bytes then."""
        return bool(self.leniencies or self.key_bytes_left or self.value_bytes_left)

    @property
    def is_tombstone(self) -> bool:
        """Whether the record deletes its key."""
        return self.value is None

    @property
    def is_known_type(self) -> bool:
        """False when this build has no schema for the type: `key` and `value` are bytes."""
        return not isinstance(self.key, bytes)

    @property
    def is_known_version(self) -> bool:
        """False when the value is kept as bytes because this build has no such version of it."""
        return self.value_version is None or not isinstance(self.value, bytes)


class RecordType(Protocol):
    """How one type of record is read: by generated classes or by schemas."""

    @property
    def name(self) -> str: ...

    @property
    def value_versions(self) -> range: ...

    def read_key(self, body: bytes, leniencies: list[str]) -> tuple[Any, int]: ...

    def read_value(self, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]: ...


def record_type_of(key: bytes) -> int:
    """The record type a key starts with. Raises MissingRecordType for a key of less than two bytes."""
    if len(key) < 2:
        raise MissingRecordType(len(key))
    return int.from_bytes(key[:2], "big", signed=True)


def value_version_of(value: bytes) -> int:
    """The version a value starts with. Raises MissingValueVersion for a value of less than two bytes."""
    if len(value) < 2:
        raise MissingValueVersion(len(value))
    return int.from_bytes(value[:2], "big", signed=True)


def read_record(
    types: Mapping[int, RecordType],
    key: bytes | bytearray | memoryview | None,
    value: bytes | bytearray | memoryview | None,
    retired: Mapping[int, str] = MappingProxyType({}),
) -> Record:
    """Decode one record with the readers in `types`; `retired` has names for types that are gone.

    Raises NullKey, MissingRecordType or MissingValueVersion for bytes that are not framed, and the DecodeError of
    the message for bytes that do not parse. Unknown types and versions are not errors.
    """
    if key is None:
        raise NullKey
    key, value = as_bytes(key), None if value is None else as_bytes(value)
    number = record_type_of(key)
    kind = types.get(number)
    if kind is None:
        return Record(number, retired.get(number), key, value, None)
    leniencies: list[str] = []
    typed_key, used = kind.read_key(key[2:], leniencies)
    key_bytes_left = len(key) - 2 - used
    typed_value: Any = value
    version, value_bytes_left = None, 0
    if value is not None:
        version = value_version_of(value)
        if version in kind.value_versions:
            typed_value, used = kind.read_value(value[2:], version, leniencies)
            value_bytes_left = len(value) - 2 - used
    raw = (key, value) if leniencies or key_bytes_left or value_bytes_left else (None, None)
    return Record(
        number, kind.name, typed_key, typed_value, version, key_bytes_left, value_bytes_left, tuple(leniencies), *raw
    )


class SchemaRecordType:
    """Reads records into plain values (`walker.decode`) with nothing but their schemas."""

    def __init__(self, schema: RecordSchema) -> None:
        from kafka_records_runtime import walker

        self.schema = schema
        self.name = schema.name
        lowest, highest = schema.value.versions or (0, -1)
        self.value_versions = range(lowest, highest + 1)
        self._decode = walker.decode

    def read_key(self, body: bytes, leniencies: list[str]) -> tuple[Any, int]:
        return self._read(self.schema.key, body, KEY_VERSION, leniencies)

    def read_value(self, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]:
        return self._read(self.schema.value, body, version, leniencies)

    def _read(self, schema: Any, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]:
        return self._decode(schema, body, version, lenient=True, allow_trailing=True, leniencies=leniencies)


class CodecRecordType:
    """Reads records into generated classes, imported when the first such record comes along."""

    def __init__(self, name: str, module: str, key_class: str, value_class: str) -> None:
        self.name = name
        self._module = module
        self._key_class = key_class
        self._value_class = value_class

    @property
    def key_class(self) -> Any:
        return getattr(import_module(self._module), self._key_class)

    @property
    def value_class(self) -> Any:
        return getattr(import_module(self._module), self._value_class)

    @property
    def value_versions(self) -> range:
        return cast(range, self.value_class.VERSIONS)

    def read_key(self, body: bytes, leniencies: list[str]) -> tuple[Any, int]:
        return _read_typed(self.key_class, body, KEY_VERSION, leniencies)

    def read_value(self, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]:
        return _read_typed(self.value_class, body, version, leniencies)


def _read_typed(cls: Any, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]:
    try:
        return cast("tuple[Any, int]", cls.decode_prefix(body, version))
    except DecodeError:
        codec = cast("Codec[Any]", cls.CODEC)
        return codec.decode_lenient(body, version, leniencies)


class RecordSet:
    """The record types of one topic, for `decode_record` and `encode_record` of its generated package.

    `retired` has the names of types that are known to be gone.
    """

    def __init__(self, types: Mapping[int, CodecRecordType], retired: Mapping[int, str] = MappingProxyType({})) -> None:
        self.types = types
        self.retired = retired

    def decode(
        self, key: bytes | bytearray | memoryview | None, value: bytes | bytearray | memoryview | None
    ) -> Record:
        """See `read_record`."""
        return read_record(self.types, key, value, self.retired)

    def encode(self, key: Any, value: Any, value_version: int | None) -> tuple[bytes, bytes | None]:
        """Frame `key` and `value`; `bytes` are taken as they stand, a `value` of None is a tombstone."""
        if isinstance(key, bytes):
            if value is not None and not isinstance(value, bytes):
                raise WrongType(
                    "record", None, "value", "bytes or None, because the key is bytes", type(value).__name__
                )
            return key, value
        number, kind = self._type_of(key)
        framed_key = number.to_bytes(2, "big") + key.encode(KEY_VERSION)
        if value is None or isinstance(value, bytes):
            _check_framed(kind.name, value, value_version)
            return framed_key, value
        if not isinstance(value, kind.value_class):
            raise WrongType(kind.name, value_version, "value", kind.value_class.__name__, type(value).__name__)
        version = kind.value_versions[-1] if value_version is None else value_version
        if not isinstance(version, int):
            raise TypeError(f"a version is an int, not {type(version).__name__}")
        if version not in kind.value_versions:
            raise UnsupportedVersion(kind.value_class.__name__, version, kind.value_versions)
        return framed_key, version.to_bytes(2, "big") + value.encode(version)

    def _type_of(self, key: Any) -> tuple[int, CodecRecordType]:
        number = getattr(key, "RECORD_TYPE", None)
        kind = self.types.get(number) if isinstance(number, int) else None
        if kind is None or not isinstance(key, kind.key_class):
            raise WrongType("record", None, "key", "bytes or a key class of this topic", type(key).__name__)
        return cast(int, number), kind


def _check_framed(name: str, value: bytes | None, version: int | None) -> None:
    """A tombstone has no version, and bytes have the one they start with: another one is a mistake."""
    if version is None:
        return
    if value is None:
        raise WrongType(name, version, "value_version", "None, because a tombstone has no version", "int")
    found = value_version_of(value)
    if found != version:
        raise UnsupportedVersion(f"the value of {name} as given", version, range(found, found + 1))


def schema_record_types(schemas: Mapping[int, RecordSchema]) -> dict[int, SchemaRecordType]:
    """Readers into plain values for the `RECORDS` of a generated `schemas.<folder>` module."""
    return {number: SchemaRecordType(schema) for number, schema in schemas.items()}
