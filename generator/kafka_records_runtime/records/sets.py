"""The record types of one topic with their generated classes. Implements `decode_record` and `encode_record`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from kafka_records_runtime.errors import UnsupportedVersion, WrongType
from kafka_records_runtime.records.classes import KnownRecord
from kafka_records_runtime.records.framing import (
    COORDINATOR,
    KEY_VERSION,
    Framing,
    end_frame,
    framed,
    in_frame,
    start_frame,
    value_version_of,
)
from kafka_records_runtime.records.reading import CodecRecordType, read_record

R = TypeVar("R")


class RecordSet(Generic[R]):
    """The record types of one topic, for the functions of its generated package. `R` is the union of their classes.

    `retired` contains the names of types that Kafka no longer uses.
    """

    def __init__(
        self,
        types: Mapping[int, CodecRecordType],
        retired: Mapping[int, str] = MappingProxyType({}),
        framing: Framing = COORDINATOR,
    ) -> None:
        self.types = types
        self.retired = retired
        self.framing: Framing = framing

    def record_class(self, package: str, name: str) -> type[KnownRecord]:
        """The class of records named `name`, for `__getattr__` of `package`."""
        for kind in self.types.values():
            if kind.class_name == name:
                return kind.record
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)

    def decode(self, key: bytes | bytearray | memoryview | None, value: bytes | bytearray | memoryview | None) -> R:
        """See `read_record`."""
        return cast(R, read_record(self.types, key, value, self.retired, self.framing))

    def from_json(self, data: Mapping[str, Any]) -> R:
        """The record in `data`, which must be in the form returned by a record's `to_json`. Raises JsonError."""
        from kafka_records_runtime.records import json_form

        return cast(R, json_form.from_json(data, self.types, self.retired, self.framing))

    def encode_metadata(self, key: None, value: Any, value_version: int | None) -> tuple[None, bytes]:
        """The bytes of a metadata record. A `value` of type `bytes` is unchanged."""
        if key is not None:
            raise WrongType("record", None, "key", "None, because metadata records have no key", type(key).__name__)
        if isinstance(value, bytes):
            if value_version is not None:
                found = end_frame(value, start_frame(None, value)[1])[0]
                _check_same("the value as given", value_version, found)
            return None, value
        number = getattr(value, "API_KEY", None)
        kind = self.types.get(number) if isinstance(number, int) else None
        if kind is None or not isinstance(value, kind.value_class):
            raise WrongType("record", None, "value", "bytes or a message class of this topic", type(value).__name__)
        version = _checked_version(kind, value_version)
        return None, in_frame(cast(int, number), version, value.encode(version))

    def encode(self, key: Any, value: Any, value_version: int | None) -> tuple[bytes, bytes | None]:
        """The bytes of `key` and `value`. Arguments of type `bytes` are unchanged. If `value` is None, the record is a
        tombstone."""
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
        version = _checked_version(kind, value_version)
        return framed_key, framed(version, value.encode(version))

    def _type_of(self, key: Any) -> tuple[int, CodecRecordType]:
        number = getattr(key, "RECORD_TYPE", None)
        kind = self.types.get(number) if isinstance(number, int) else None
        if kind is None or not isinstance(key, kind.key_class):
            raise WrongType("record", None, "key", "bytes or a key class of this topic", type(key).__name__)
        return cast(int, number), kind


def _check_framed(name: str, value: bytes | None, version: int | None) -> None:
    """Reject a version for a tombstone, which has none, or for bytes that start with a different version."""
    if version is None:
        return
    if value is None:
        raise WrongType(name, version, "value_version", "None, because a tombstone has no version", "int")
    _check_same(f"the value of {name} as given", version, value_version_of(value))


def _check_same(name: str, version: int, found: int) -> None:
    if found != version:
        raise UnsupportedVersion(name, version, range(found, found + 1))


def _checked_version(kind: CodecRecordType, given: int | None) -> int:
    """The version to write: `given`, or the highest if that is None."""
    version = kind.value_versions[-1] if given is None else given
    if not isinstance(version, int):
        raise TypeError(f"a version must be an int, not {type(version).__name__}")
    if version not in kind.value_versions:
        raise UnsupportedVersion(kind.value_class.__name__, version, kind.value_versions)
    return version
