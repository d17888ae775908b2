"""Errors around messages: framing of records, JSON, formats of schemas, unknown names and numbers."""

from __future__ import annotations

from kafka_records_runtime._error_base import KafkaRecordsError, number, plural


class FramingError(KafkaRecordsError, ValueError):
    """A record whose key or value does not start like those of its topic (`kafka_records_runtime.framing`).

    `offset` is the byte of the value that is wrong; it is None for the errors of coordinator framing, which are about
    a key or a value as a whole.
    """

    offset: int | None = None


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


class UnexpectedKey(FramingError):
    """A metadata record with a key of `length` bytes, which Kafka rejects."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def __str__(self) -> str:
        return f"the record has a key of {plural(self.length, 'byte')}, a metadata record has none"


class NullValue(FramingError):
    """A metadata record without a value; it has no tombstones."""

    def __str__(self) -> str:
        return "the record has no value"


class UnknownFrameVersion(FramingError):
    """A metadata record whose value begins with a frame version other than 1."""

    offset: int = 0

    def __init__(self, frame_version: int) -> None:
        super().__init__(frame_version)
        self.frame_version = frame_version

    def __str__(self) -> str:
        return f"the value has the frame version {number(self.frame_version)} at byte 0, only 1 is known"


class TruncatedFrame(FramingError):
    """A metadata record of `length` bytes that ends before or inside `part` of its frame, which begins at `offset`."""

    def __init__(self, part: str, offset: int, length: int) -> None:
        super().__init__(part, offset, length)
        self.part = part
        self.offset: int = offset
        self.length = length

    def __str__(self) -> str:
        return f"the value has {plural(self.length, 'byte')}: the {self.part} at byte {number(self.offset)} is cut off"


class InvalidFrameNumber(FramingError):
    """A metadata record with a `part` of its frame, at `offset`, that is not a varint or too large a number
    (`fault`)."""

    def __init__(self, part: str, offset: int, fault: str) -> None:
        super().__init__(part, offset, fault)
        self.part = part
        self.offset: int = offset
        self.fault = fault

    def __str__(self) -> str:
        return f"the {self.part} at byte {number(self.offset)} of the value {self.fault}"


class UnknownApiKey(FramingError):
    """A metadata record with an unknown api key at `offset`; Kafka stops reading there."""

    def __init__(self, api_key: int, offset: int) -> None:
        super().__init__(api_key, offset)
        self.api_key = api_key
        self.offset: int = offset

    def __str__(self) -> str:
        place = f"at byte {number(self.offset)} of the value"
        return f"no record of this topic has the api key {number(self.api_key)}, {place}"


class JsonError(KafkaRecordsError, ValueError):
    """A JSON value that is not the expected message or record. `path` has the names of the JSON; `detail` ends a
    sentence that starts with it. `version` is None for records."""

    def __init__(self, message_name: str, version: int | None, path: str, detail: str) -> None:
        super().__init__(message_name, version, path, detail)
        self.message_name = message_name
        self.version = version
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        version = "" if self.version is None else f" v{number(self.version)}"
        whole = "the record" if self.version is None else "the message"
        return f"{self.message_name}{version}: {self.path or whole} {self.detail}"


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
    """An api key that no request of the package has; `known` lists the existing ones."""

    def __init__(self, key: int, known: tuple[int, ...]) -> None:
        super().__init__(key, known)
        self.key = key
        self.known = known

    def __str__(self) -> str:
        return f"no request here has the api key {number(self.key)}; known are {', '.join(map(number, self.known))}"
