"""Errors about values that cannot be written, and about versions that can be neither read nor written."""

from __future__ import annotations

from kafka_records_runtime.errors._base import KafkaRecordsError, number, plural
from kafka_records_runtime.errors._decode import DecodeError


class EncodeError(KafkaRecordsError, ValueError):
    """A value cannot be written in the requested version. `path` is as in `DecodeError`."""

    def __init__(self, message_name: str, version: int | None, path: str, *rest: object) -> None:
        super().__init__(message_name, version, path, *rest)
        self.message_name = message_name
        self.version = version
        self.path = path

    @property
    def detail(self) -> str:
        """The problem, as the end of a sentence that starts with the path."""
        return "cannot be encoded"

    def __str__(self) -> str:
        version = "" if self.version is None else f" v{number(self.version)}"
        return f"{self.message_name}{version}: {self.path or 'the message'} {self.detail}"


class FieldNotInVersion(EncodeError):
    """A field has a non-default value in a version without that field. The spec does not declare it ignorable, so it
    must not be dropped.

    Kafka raises UnsupportedVersionException ("Attempted to write a non-default ...").
    """

    @property
    def detail(self) -> str:
        return "is set, but this version has no such field"


class NullNotAllowed(EncodeError):
    """A field is None but cannot be null in this version."""

    @property
    def detail(self) -> str:
        return "is None, which this version does not allow"


class ValueOutOfRange(EncodeError):
    """A number is outside the range of its type, `lowest` to `highest`."""

    def __init__(
        self,
        message_name: str,
        version: int | None,
        path: str,
        type: str,
        value: int,
        lowest: int,
        highest: int,
    ) -> None:
        super().__init__(message_name, version, path, type, value, lowest, highest)
        self.type = type
        self.value = value
        self.lowest = lowest
        self.highest = highest

    @property
    def detail(self) -> str:
        return f"is {number(self.value)}, but {self.type} holds {number(self.lowest)} to {number(self.highest)}"


class WrongType(EncodeError):
    """A value has a Python type that the field does not accept. A bool field rejects an int, but an integer field
    accepts a bool, as in Python."""

    def __init__(self, message_name: str, version: int | None, path: str, expected: str, found: str) -> None:
        super().__init__(message_name, version, path, expected, found)
        self.expected = expected
        self.found = found

    @property
    def detail(self) -> str:
        return f"is of type {self.found}, expected {self.expected}"


class WrongLength(EncodeError):
    """A uuid does not have 16 bytes."""

    def __init__(self, message_name: str, version: int | None, path: str, length: int) -> None:
        super().__init__(message_name, version, path, length)
        self.length = length

    @property
    def detail(self) -> str:
        return f"has {plural(self.length, 'byte')}, but a uuid has 16"


class TextTooLong(EncodeError):
    """A string has more than 32767 bytes of UTF-8. The limit also applies to compact strings."""

    def __init__(self, message_name: str, version: int | None, path: str, length: int) -> None:
        super().__init__(message_name, version, path, length)
        self.length = length

    @property
    def detail(self) -> str:
        return f"takes {number(self.length)} bytes of UTF-8, more than the limit of 32767"


class InvalidText(EncodeError):
    """A string has a lone surrogate at `position`, which UTF-8 cannot encode (Kafka would write `?`)."""

    def __init__(self, message_name: str, version: int | None, path: str, position: int) -> None:
        super().__init__(message_name, version, path, position)
        self.position = position

    @property
    def detail(self) -> str:
        return f"has a lone surrogate at character {number(self.position)}"


class UnknownField(EncodeError):
    """A struct was given as a dict with a key that is not one of its fields."""

    def __init__(self, message_name: str, version: int | None, path: str, key: str) -> None:
        super().__init__(message_name, version, path, key)
        self.key = key

    @property
    def detail(self) -> str:
        return f"has the key {self.key!r}, which is not a field of it"


class TagsNotSupported(EncodeError):
    """A struct has unknown tagged fields, but structs have no tagged fields in this version."""

    @property
    def detail(self) -> str:
        return "is not empty, but this version has no tagged fields"


class TagsUnsorted(EncodeError):
    """Unknown tags are not in ascending order, or a tag occurs twice."""

    def __init__(self, message_name: str, version: int | None, path: str, tag: int, previous: int) -> None:
        super().__init__(message_name, version, path, tag, previous)
        self.tag = tag
        self.previous = previous

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)} after tag {number(self.previous)}, but tags must ascend without repeats"


class TagClash(EncodeError):
    """An unknown tag has the number of a field that the struct defines."""

    def __init__(self, message_name: str, version: int | None, path: str, tag: int, field: str) -> None:
        super().__init__(message_name, version, path, tag, field)
        self.tag = tag
        self.field = field

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)}, which belongs to {self.field}"


class UnsupportedVersion(DecodeError, EncodeError):
    """A version is not one of `versions`. Raised before the first byte is read or written."""

    version: int

    def __init__(self, message_name: str, version: int, versions: range) -> None:
        KafkaRecordsError.__init__(self, message_name, version, versions)
        self.message_name = message_name
        self.version = version
        self.path = ""
        self.offset = 0
        self.versions = versions

    @property
    def detail(self) -> str:
        return f"cannot be used: {self._known}"

    @property
    def _known(self) -> str:
        if not self.versions:
            return "it has no versions"
        lowest, highest = self.versions[0], self.versions[-1]
        return (
            f"its only version is {number(lowest)}"
            if lowest == highest
            else f"its versions are {number(lowest)} to {number(highest)}"
        )

    def __str__(self) -> str:
        return f"{self.message_name} has no version {number(self.version)}: {self._known}"
