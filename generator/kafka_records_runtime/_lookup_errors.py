"""Errors around messages: framing of records, JSON, formats of schemas, unknown names and numbers."""

from __future__ import annotations

from kafka_records_runtime._error_base import KafkaRecordsError, number, plural


class FramingError(KafkaRecordsError, ValueError):
    """A record whose key or value lacks what comes before the message."""


class NullKey(FramingError):
    """A record without a key; the coordinators' topics have none."""

    def __str__(self) -> str:
        return "the record has no key"


class MissingRecordType(FramingError):
    """A key of fewer bytes (`length`) than the int16 record type it starts with."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def __str__(self) -> str:
        return f"the key has {plural(self.length, 'byte')}, a key starts with an int16 record type"


class MissingValueVersion(FramingError):
    """A value of fewer bytes (`length`) than the int16 version it starts with."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def __str__(self) -> str:
        return f"the value has {plural(self.length, 'byte')}, a value starts with an int16 version"


class JsonError(KafkaRecordsError, ValueError):
    """A JSON value that is not the message it was read as. `path` has the names of the JSON; `detail` ends a sentence
    that starts with it."""

    def __init__(self, message_name: str, version: int, path: str, detail: str) -> None:
        super().__init__(message_name, version, path, detail)
        self.message_name = message_name
        self.version = version
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.message_name} v{number(self.version)}: {self.path or 'the message'} {self.detail}"


class SchemaFormatError(KafkaRecordsError, ValueError):
    """A schema that was generated for another format of this runtime. Generate the package again, or install the
    runtime that fits it."""

    def __init__(self, name: str, found: int, expected: int) -> None:
        super().__init__(name, found, expected)
        self.name = name
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        return (
            f"the schema of {self.name} has format {number(self.found)}, this runtime reads format"
            f" {number(self.expected)}: generate the package again"
        )


class UnknownMessage(KafkaRecordsError, KeyError):
    """A name that no message of a registry has."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"no message is called {self.name!r}"


class UnknownApi(KafkaRecordsError, KeyError):
    """An api key that no request of the package has; `known` are those it has."""

    def __init__(self, key: int, known: tuple[int, ...]) -> None:
        super().__init__(key, known)
        self.key = key
        self.known = known

    def __str__(self) -> str:
        return f"no request here has the api key {number(self.key)}; there are {', '.join(map(number, self.known))}"
