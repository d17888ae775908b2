"""Decoded records: the results of `decode_record` of a topic's package.

A record of a known type is an instance of its generated class, such as `OffsetCommit`, which is a subclass of
`KnownRecord`. Records that this build does not know have other classes: `UnknownTypeRecord` (in metadata framing,
`UnknownApiKeyRecord`) and `UnknownVersionRecord`. Records read with only schemas, without generated classes, are
`PlainRecord`s. All of them are immutable, and patterns such as `case OffsetCommit(key, value)` match them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import msgspec

from kafka_records_runtime.errors import FramingError, UnsupportedVersion
from kafka_records_runtime.records.framing import unknown_api_key

K = TypeVar("K")


def _json_form() -> Any:
    """The module `json_form`. It is imported here because it imports this module, and only calls need it."""
    return import_module("kafka_records_runtime.records.json_form")


class AnyRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True, repr_omit_defaults=True):
    """The fields of every decoded record, in addition to `record_type`, `name`, `key` and `value`."""

    value_version: int | None = None
    """The version of the value; None for a tombstone and for a record of an unknown type."""

    key_bytes_left: int = 0
    """The number of bytes after the message in the key, which Kafka ignores."""

    value_bytes_left: int = 0
    """The number of bytes after the message in the value, which Kafka ignores."""

    leniencies: tuple[str, ...] = ()
    """The other reasons why a strict reader would have rejected the record, by name (`Leniency`), once per
    occurrence."""

    raw_key: bytes | None = None
    """The bytes of the key, if the record has bytes left over or leniencies; encoding `key` may not reproduce them."""

    raw_value: bytes | None = None
    """The bytes of the value, if the record has bytes left over or leniencies; encoding `value` may not reproduce them.
    """

    @property
    def is_lenient(self) -> bool:
        """Whether a strict reader would have rejected the record. If so, `raw_key` and `raw_value` contain its
        bytes."""
        return bool(self.leniencies or self.key_bytes_left or self.value_bytes_left)

    @property
    def is_tombstone(self: Any) -> bool:
        """Whether the record deletes its key."""
        return self.value is None

    @property
    def is_known_type(self) -> bool:
        """Whether the type is known: False for an `UnknownTypeRecord`."""
        return True

    @property
    def is_known_version(self) -> bool:
        """Whether the version is known: False for an `UnknownVersionRecord`."""
        return True

    @property
    def error(self) -> UnsupportedVersion | FramingError | None:
        """Why the value of an `UnknownVersionRecord` or `UnknownApiKeyRecord` was not decoded; None for all others."""
        return None


class JsonRecord(AnyRecord, frozen=True, gc=False):
    """A decoded record that can be written as JSON."""

    def to_json(self) -> dict[str, Any]:
        """This record as Python objects, in the form printed by Kafka's console formatters.

        `{"key": {"type": 1, "data": {...}}, "value": {"version": 3, "data": {...}}}`, with null as the value of a
        tombstone and `{"version": 5, "hex": "..."}` if this build does not know the type or version. The members `data`
        are the results of `to_json` of the key and the value. A record with bytes left over or leniencies also contains
        its bytes: `"raw": {"key": "...", "value": "..."}`, in hex. Nothing is lost: `record_from_json` of the topic's
        package reads the result. Without a `value_version`, the value is shown in the highest version. In metadata
        framing, `key` is null and the value contains the type: `{"type": 2, "version": 0, "data": {...}}`. Raises an
        EncodeError for a key or a value that its version cannot contain.
        """
        return cast("dict[str, Any]", _json_form().to_json(self))


class KnownRecord(JsonRecord, frozen=True, gc=False):
    """The common base of the generated record classes. `key` is a message, and `value` is a message or None."""

    record_type: ClassVar[int]
    """The record type at the start of the keys of such records; in metadata framing, the api key in their values."""

    name: ClassVar[str]
    """The name of the record in Kafka's specs, without Key and Value."""

    KEY_CLASS: ClassVar[Any]
    VALUE_CLASS: ClassVar[Any]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the form returned by `to_json`. Raises JsonError for another form or another record type.

        It also raises JsonError for a value version that this build does not know, but `record_from_json` of the
        topic's package accepts such records.
        """
        return cast(Self, _json_form().known_from_json(cls, data))


class UnknownVersionRecord(JsonRecord, Generic[K], frozen=True, gc=False):
    """A record with a value version that this build does not know, for example from a newer Kafka.

    `key` is decoded; `value` is the undecoded bytes of the value, which start with `value_version`. Kafka's brokers
    stop loading a partition at such a record, so it has an `error`, with the same text as in Spark's column `error` and
    in `kafka-records dump`.
    """

    key: K
    value: bytes
    record_type: int
    name: str
    value_name: str
    """The name of the value in Kafka's specs, such as `OffsetCommitValue`."""

    known_versions: range
    """The versions of the value that this build knows."""

    @property
    def is_known_version(self) -> bool:
        """Always False, because `value` is bytes."""
        return False

    @property
    def error(self) -> UnsupportedVersion:
        """Why the value was not decoded. Raise it if your code should treat the record as unreadable."""
        return UnsupportedVersion(self.value_name, cast(int, self.value_version), self.known_versions)


class UnknownTypeRecord(JsonRecord, frozen=True, gc=False):
    """A record of a type that is retired or unknown to this build.

    `key` and `value` are undecoded bytes; `value` is None for a tombstone. `name` is None unless the type is retired.
    """

    key: bytes
    value: bytes | None
    record_type: int
    name: str | None = None

    @property
    def is_known_type(self) -> bool:
        """Always False, because `key` and `value` are bytes."""
        return False


class UnknownApiKeyRecord(JsonRecord, frozen=True, gc=False):
    """A record in metadata framing with an api key (`record_type`) that is retired or unknown to this build.

    `value` is undecoded bytes. Kafka stops reading at such a record, so it has an `error`, with the same text as in
    Spark's column `error` and in `kafka-records dump`. `name` is None unless the api key is retired.
    """

    value: bytes
    record_type: int
    name: str | None = None
    key: None = None

    @property
    def is_known_type(self) -> bool:
        """Always False, because `value` is bytes."""
        return False

    @property
    def error(self) -> FramingError:
        """Why the value was not decoded. Raise it if your code should treat the record as unreadable."""
        return unknown_api_key(self.value)


class PlainRecord(AnyRecord, frozen=True, gc=False):
    """A record of a known type without a generated class. `key` and `value` are dict trees, decoded with its schemas
    (`walker.decode`)."""

    key: dict[str, Any] | None
    value: dict[str, Any] | None
    record_type: int
    name: str
