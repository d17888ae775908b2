"""Framing of the records of a coordinator topic: key = int16 record type + message, value = int16 version + message.

The int16 is the *prefix* of a key or value. This module is the home of what it looks like: its bytes, how it is split
off and written, and which error a record without one gets. Two modules have the same for many rows at a time, with
the width and the byte order from here: `kafka_records_engine.columns.framing_in_columns` for Arrow columns and
`kafka_records_engine.spark.framing_in_jvm` for Spark expressions. Tests hold them against the functions here.

The rules are those of Kafka's `CoordinatorRecordSerde`: it always reads the key at version 0, checks the version of the
value against the versions of its type, and ignores bytes behind a message. Kafka's readers throw away a record of an
unknown type or version; `Record` keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from struct import Struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from kafka_records_runtime.buffers import as_bytes
from kafka_records_runtime.errors import (
    DecodeError,
    FramingError,
    MissingRecordType,
    MissingValueVersion,
    NullKey,
    UnsupportedVersion,
    WrongType,
)
from kafka_records_runtime.string_limit import MAX_STRING

if TYPE_CHECKING:
    from kafka_records_runtime.codec import Codec
    from kafka_records_runtime.schema import MessageSchema, RecordSchema

PREFIX: Final = Struct(">h")
"""What stands before a message: the record type of a key, the version of a value. NumPy takes `PREFIX.format` too."""

KEY_VERSION: Final = 0
"""The version of every record key."""


# -- the prefix --------------------------------------------------------------------------------------------------------


def prefix_of(data: bytes | None) -> int | None:
    """The int16 that a key or value starts with; None for a null, and for one that is too short."""
    return None if data is None or len(data) < PREFIX.size else cast(int, PREFIX.unpack_from(data)[0])


def record_type_of(key: bytes) -> int:
    """The record type that a key starts with. Raises MissingRecordType for a key that is too short."""
    if len(key) < PREFIX.size:
        raise unframed_key(len(key))
    return cast(int, PREFIX.unpack_from(key)[0])


def value_version_of(value: bytes) -> int:
    """The version that a value starts with. Raises MissingValueVersion for a value that is too short."""
    if len(value) < PREFIX.size:
        raise unframed_value(len(value))
    return cast(int, PREFIX.unpack_from(value)[0])


def split_key(key: bytes | None) -> tuple[int, bytes]:
    """The record type of a key, and the message behind it. Raises NullKey or MissingRecordType."""
    if key is None:
        raise unframed_key(None)
    return record_type_of(key), key[PREFIX.size :]


def split_value(value: bytes) -> tuple[int, bytes]:
    """The version of a value, and the message behind it. Raises MissingValueVersion."""
    return value_version_of(value), value[PREFIX.size :]


def framed(number: int, message: bytes) -> bytes:
    """A key or value: its record type or version, then the message."""
    return PREFIX.pack(number) + message


def unframed_key(length: int | None) -> FramingError:
    """The error of a key whose `length` bytes are too few for a record type; None stands for a null key."""
    return NullKey() if length is None else MissingRecordType(length)


def unframed_value(length: int) -> FramingError:
    """The error of a value whose `length` bytes are too few for a version."""
    return MissingValueVersion(length)


def newer_as_highest(message: MessageSchema, version: int) -> int:
    """The version at which to read a message whose readers take a newer version for the highest they know.

    Kafka does so where newer versions add fields at the end only (`ConsumerProtocol.deserializeSubscription`). The
    values of coordinator records are not read in this way.
    """
    return min(version, -1 if message.versions is None else message.versions[1])


def message_start(text: bytes) -> bytes | None:
    """The first bytes of every key message that begins with the string `text`; None if `text` is too long for one.

    Keys have version 0, so the length of a string is an int16 unless the key is flexible.
    """
    return framed(len(text), text) if len(text) <= MAX_STRING else None


# -- records -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """One decoded record of a coordinator topic.

    `key` is the typed key. A record of an unknown type has the bytes of its key there, and no `name` unless the type
    is retired. `value` is the typed value, None for a tombstone, and the bytes of the value if its type or version is
    unknown. `value_version` is None for tombstones and unknown types.
    `key_bytes_left` and `value_bytes_left` count the bytes behind the messages, which Kafka ignores. `leniencies` names
    everything else that a strict reader would have refused, once for each time. A record with bytes left or leniencies
    has its bytes in `raw_key` and `raw_value`, because `key` and `value` may not give them back; these are None for
    every other record.
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
    """Reads the records of one type, by generated classes or by schemas."""

    @property
    def name(self) -> str: ...

    @property
    def value_versions(self) -> range: ...

    def read_key(self, body: bytes, leniencies: list[str]) -> tuple[Any, int]: ...

    def read_value(self, body: bytes, version: int, leniencies: list[str]) -> tuple[Any, int]: ...


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
        raise unframed_key(None)
    key, value = as_bytes(key), None if value is None else as_bytes(value)
    number, message = split_key(key)
    kind = types.get(number)
    if kind is None:
        return Record(number, retired.get(number), key, value, None)
    leniencies: list[str] = []
    typed_key, used = kind.read_key(message, leniencies)
    key_bytes_left = len(message) - used
    typed_value: Any = value
    version, value_bytes_left = None, 0
    if value is not None:
        version, message = split_value(value)
        if version in kind.value_versions:
            typed_value, used = kind.read_value(message, version, leniencies)
            value_bytes_left = len(message) - used
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
    """Reads records into generated classes, which it imports when it reads the first such record."""

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
        """Frame `key` and `value`. It leaves `bytes` as they are; a `value` of None is a tombstone."""
        if isinstance(key, bytes):
            if value is not None and not isinstance(value, bytes):
                raise WrongType(
                    "record", None, "value", "bytes or None, because the key is bytes", type(value).__name__
                )
            return key, value
        number, kind = self._type_of(key)
        framed_key = framed(number, key.encode(KEY_VERSION))
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
        return framed_key, framed(version, value.encode(version))

    def _type_of(self, key: Any) -> tuple[int, CodecRecordType]:
        number = getattr(key, "RECORD_TYPE", None)
        kind = self.types.get(number) if isinstance(number, int) else None
        if kind is None or not isinstance(key, kind.key_class):
            raise WrongType("record", None, "key", "bytes or a key class of this topic", type(key).__name__)
        return cast(int, number), kind


def _check_framed(name: str, value: bytes | None, version: int | None) -> None:
    """Refuse a version for a tombstone, which has none, and for bytes that start with another one."""
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
