"""Errors about the framing of records, JSON, schema formats, and unknown names and numbers."""

from __future__ import annotations

from kafka_records_runtime.errors._base import KafkaRecordsError, number, plural


class FramingError(KafkaRecordsError, ValueError):
    """The key or value of a record does not start like those of its topic (`kafka_records_runtime.records.framing`).

    `offset` is the byte of the value that is wrong. It is None for errors in coordinator framing, which concern a whole
    key or value.
    """

    offset: int | None = None


class NullKey(FramingError):
    """A record has no key, although all records in coordinators' topics have one."""

    def __str__(self) -> str:
        return "the record has no key"


class MissingRecordType(FramingError):
    """A key has fewer bytes (`length`) than the int16 record type that it should start with."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def __str__(self) -> str:
        return f"the key has {plural(self.length, 'byte')}, but a key starts with an int16 record type"


class MissingValueVersion(FramingError):
    """A value has fewer bytes (`length`) than the int16 version that it should start with."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def __str__(self) -> str:
        return f"the value has {plural(self.length, 'byte')}, but a value starts with an int16 version"


class UnexpectedKey(FramingError):
    """A metadata record has a key, of `length` bytes, which Kafka rejects."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def __str__(self) -> str:
        return f"the record has a key of {plural(self.length, 'byte')}, but metadata records have no key"


class NullValue(FramingError):
    """A metadata record has no value. (Metadata has no tombstones.)"""

    def __str__(self) -> str:
        return "the record has no value"


class UnknownFrameVersion(FramingError):
    """The value of a metadata record begins with a frame version other than 1."""

    offset: int = 0

    def __init__(self, frame_version: int) -> None:
        super().__init__(frame_version)
        self.frame_version = frame_version

    def __str__(self) -> str:
        return f"the value has the frame version {number(self.frame_version)} at byte 0, but only version 1 is known"


class TruncatedFrame(FramingError):
    """A metadata record of `length` bytes ends before or inside `part` of its frame, which begins at `offset`."""

    def __init__(self, part: str, offset: int, length: int) -> None:
        super().__init__(part, offset, length)
        self.part = part
        self.offset: int = offset
        self.length = length

    def __str__(self) -> str:
        return f"the value has {plural(self.length, 'byte')}: the {self.part} at byte {number(self.offset)} is cut off"


class InvalidFrameNumber(FramingError):
    """A `part` of a metadata record's frame, at `offset`, is not a varint or is too large (`fault`)."""

    def __init__(self, part: str, offset: int, fault: str) -> None:
        super().__init__(part, offset, fault)
        self.part = part
        self.offset: int = offset
        self.fault = fault

    def __str__(self) -> str:
        return f"the {self.part} at byte {number(self.offset)} of the value {self.fault}"


class UnknownApiKey(FramingError):
    """A metadata record has an unknown api key at `offset`. Kafka stops reading there."""

    def __init__(self, api_key: int, offset: int) -> None:
        super().__init__(api_key, offset)
        self.api_key = api_key
        self.offset: int = offset

    def __str__(self) -> str:
        place = f"at byte {number(self.offset)} of the value"
        return f"no record of this topic has the api key {number(self.api_key)}, {place}"


class JsonError(KafkaRecordsError, ValueError):
    """A JSON value is not the expected message or record.

    `path` uses the names in the JSON; `detail` ends a sentence that starts with the path. `version` is None for
    records.
    """

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
    """A schema was generated in a format that this runtime does not read. Regenerate the package, or install the
    matching runtime."""

    def __init__(self, name: str, found: int, expected: int) -> None:
        super().__init__(name, found, expected)
        self.name = name
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        return (
            f"the schema of {self.name} has format {number(self.found)}, but this runtime reads format"
            f" {number(self.expected)}: generate the package again"
        )


class UnknownMessage(KafkaRecordsError, KeyError):
    """No message of a registry has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"no message is called {self.name!r}"


class UnknownApi(KafkaRecordsError, KeyError):
    """The package has no request with this api key; `known` lists the existing ones."""

    def __init__(self, key: int, known: tuple[int, ...]) -> None:
        super().__init__(key, known)
        self.key = key
        self.known = known

    def __str__(self) -> str:
        known = ", ".join(map(number, self.known))
        return f"no request here has the api key {number(self.key)}; the known ones are {known}"
