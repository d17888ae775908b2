"""Every exception of kafka-records, named for the diagnosis.

One tree: `KafkaRecordsError` at the top, below it one family per activity (`DecodeError`, `EncodeError`,
`FramingError`, `JsonError`, ...). The arguments of a constructor are kept as attributes of the same name and
as `args`, in their order, so every error pickles; the text is put together only when somebody prints it.
"""

from __future__ import annotations

from kafka_records_runtime.early_access import early_layout_note


class KafkaRecordsError(Exception):
    """Base of everything this project raises on purpose."""


def plural(count: int, noun: str) -> str:
    """`1 byte`, `2 bytes`."""
    return f"{count} {noun}" if count == 1 else f"{number(count)} {noun}s"


def number(value: object) -> str:
    """The digits of a number, unless it has absurdly many, which Python refuses to print; other values as they are."""
    if not isinstance(value, int) or value.bit_length() <= 128:
        return str(value)
    return f"{'-' if value < 0 else ''}2**{value.bit_length() - 1}"


# -- decoding --------------------------------------------------------------------------------------


class DecodeError(KafkaRecordsError, ValueError):
    """Bytes that are not the message they were read as.

    `path` names the place in Python names, outermost first (`members[2].client_host`); it is empty for the
    message as a whole, and a section of tagged fields is called `tagged_fields`. `offset` is where the
    offending thing starts, counted in bytes from the start of what was given to decode.
    """

    def __init__(self, message_name: str, version: int, path: str, offset: int, *rest: object) -> None:
        super().__init__(message_name, version, path, offset, *rest)
        self.message_name = message_name
        self.version = version
        self.path = path
        self.offset = offset

    @property
    def detail(self) -> str:
        """What is wrong, as the end of a sentence that starts with the path."""
        return "cannot be decoded"

    def __str__(self) -> str:
        place = (
            f"{self.message_name} v{number(self.version)} at byte {number(self.offset)}: {self.path or 'the message'}"
        )
        return f"{place} {self.detail}{early_layout_note(self.message_name)}"


class BufferUnderflow(DecodeError):
    """The input ends inside a value: `needed` bytes were to be read, `left` are there."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, needed: int, left: int) -> None:
        super().__init__(message_name, version, path, offset, needed, left)
        self.needed = needed
        self.left = left

    @property
    def detail(self) -> str:
        return f"needs {plural(self.needed, 'byte')}, {number(self.left)} left"


class UnexpectedNull(DecodeError):
    """A null where the version does not allow one."""

    @property
    def detail(self) -> str:
        return "is null, which this version does not allow"


class NegativeLength(DecodeError):
    """A length or count below zero that is not the one value that stands for null.

    Compact lengths above 2147483647 land here too: Kafka reads them as negative numbers.
    """

    def __init__(self, message_name: str, version: int, path: str, offset: int, length: int) -> None:
        super().__init__(message_name, version, path, offset, length)
        self.length = length

    @property
    def detail(self) -> str:
        return f"has the negative length {number(self.length)}"


class CountTooLarge(DecodeError):
    """An array or tag section that claims more elements than the bytes left can hold (`limit`)."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, count: int, limit: int) -> None:
        super().__init__(message_name, version, path, offset, count, limit)
        self.count = count
        self.limit = limit

    @property
    def detail(self) -> str:
        return f"claims {plural(self.count, 'element')}, the bytes left hold at most {number(self.limit)}"


class StringTooLong(DecodeError):
    """A string of more than 32767 bytes, which Kafka refuses in every version, compact or not."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, length: int) -> None:
        super().__init__(message_name, version, path, offset, length)
        self.length = length

    @property
    def detail(self) -> str:
        return f"is a string of {number(self.length)} bytes, 32767 is the limit"


class InvalidUtf8(DecodeError):
    """A string that is not UTF-8. `offset` is that of the first bad byte, `reason` what Python's decoder
    says."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, reason: str) -> None:
        super().__init__(message_name, version, path, offset, reason)
        self.reason = reason

    @property
    def detail(self) -> str:
        return f"is not UTF-8: {self.reason}"


class InvalidVarint(DecodeError):
    """An unsigned varint of more than five bytes, or one with bits above the 32 it may have."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, reason: str) -> None:
        super().__init__(message_name, version, path, offset, reason)
        self.reason = reason

    @property
    def detail(self) -> str:
        return f"has {self.reason}"


class InvalidMarker(DecodeError):
    """A nullable struct whose first byte is neither the mark of null nor that of a struct."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, marker: int, null: int) -> None:
        super().__init__(message_name, version, path, offset, marker, null)
        self.marker = marker
        self.null = null

    @property
    def detail(self) -> str:
        return f"starts with marker {number(self.marker)}, a nullable struct has {number(self.null)} (null) or 1"


class InvalidTag(DecodeError):
    """A tag that cannot stand where it stands: a defined one in a version where its field is not tagged, or a
    number no writer can produce."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, tag: int, reason: str) -> None:
        super().__init__(message_name, version, path, offset, tag, reason)
        self.tag = tag
        self.reason = reason

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)}, {self.reason}"


class DuplicateTag(DecodeError):
    """The same tag twice in one section."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, tag: int) -> None:
        super().__init__(message_name, version, path, offset, tag)
        self.tag = tag

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)} twice"


class TagOrder(DecodeError):
    """Tags of one section out of ascending order: encoding could not give the same bytes again."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, tag: int, previous: int) -> None:
        super().__init__(message_name, version, path, offset, tag, previous)
        self.tag = tag
        self.previous = previous

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)} after tag {number(self.previous)}, tags ascend"


class TagSizeMismatch(DecodeError):
    """A known tag whose declared size is not the size of its value."""

    def __init__(
        self, message_name: str, version: int, path: str, offset: int, tag: int, declared: int, used: int
    ) -> None:
        super().__init__(message_name, version, path, offset, tag, declared, used)
        self.tag = tag
        self.declared = declared
        self.used = used

    @property
    def detail(self) -> str:
        return f"is tag {number(self.tag)} of {plural(self.declared, 'byte')}, its value takes {number(self.used)}"


class TrailingBytes(DecodeError):
    """`count` bytes after the end of the message."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, count: int) -> None:
        super().__init__(message_name, version, path, offset, count)
        self.count = count

    @property
    def detail(self) -> str:
        return f"ends here, {plural(self.count, 'byte')} left over"


# -- encoding --------------------------------------------------------------------------------------


class EncodeError(KafkaRecordsError, ValueError):
    """A value that cannot be written at the version asked for. `path` is as in `DecodeError`."""

    def __init__(self, message_name: str, version: int | None, path: str, *rest: object) -> None:
        super().__init__(message_name, version, path, *rest)
        self.message_name = message_name
        self.version = version
        self.path = path

    @property
    def detail(self) -> str:
        """What is wrong, as the end of a sentence that starts with the path."""
        return "cannot be encoded"

    def __str__(self) -> str:
        version = "" if self.version is None else f" v{number(self.version)}"
        return f"{self.message_name}{version}: {self.path or 'the message'} {self.detail}"


class FieldNotInVersion(EncodeError):
    """A field with a value other than its default, in a version that lacks it, and the spec does not let it
    be dropped.

    Kafka raises UnsupportedVersionException ("Attempted to write a non-default ...").
    """

    @property
    def detail(self) -> str:
        return "is set, but this version has no such field"


class NullNotAllowed(EncodeError):
    """None where the version has no null."""

    @property
    def detail(self) -> str:
        return "is None, which this version does not allow"


class ValueOutOfRange(EncodeError):
    """A number outside the range of its type, `lowest` to `highest`."""

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
        return f"is {number(self.value)}, {self.type} holds {number(self.lowest)} to {number(self.highest)}"


class WrongType(EncodeError):
    """A value of a Python type the field does not take. An int is no bool, but a bool is an int, as in Python."""

    def __init__(self, message_name: str, version: int | None, path: str, expected: str, found: str) -> None:
        super().__init__(message_name, version, path, expected, found)
        self.expected = expected
        self.found = found

    @property
    def detail(self) -> str:
        return f"is of type {self.found}, expected {self.expected}"


class WrongLength(EncodeError):
    """A uuid that does not have 16 bytes."""

    def __init__(self, message_name: str, version: int | None, path: str, length: int) -> None:
        super().__init__(message_name, version, path, length)
        self.length = length

    @property
    def detail(self) -> str:
        return f"has {plural(self.length, 'byte')}, a uuid has 16"


class TextTooLong(EncodeError):
    """A string of more than 32767 bytes of UTF-8; the limit holds for compact strings too."""

    def __init__(self, message_name: str, version: int | None, path: str, length: int) -> None:
        super().__init__(message_name, version, path, length)
        self.length = length

    @property
    def detail(self) -> str:
        return f"takes {number(self.length)} bytes of UTF-8, 32767 is the limit"


class InvalidText(EncodeError):
    """A string with a lone surrogate at `position`, which UTF-8 cannot express (Kafka would write `?`)."""

    def __init__(self, message_name: str, version: int | None, path: str, position: int) -> None:
        super().__init__(message_name, version, path, position)
        self.position = position

    @property
    def detail(self) -> str:
        return f"has a lone surrogate at character {number(self.position)}"


class UnknownField(EncodeError):
    """A key in a struct given as a dict that is no field of the struct."""

    def __init__(self, message_name: str, version: int | None, path: str, key: str) -> None:
        super().__init__(message_name, version, path, key)
        self.key = key

    @property
    def detail(self) -> str:
        return f"has the key {self.key!r}, which is no field of it"


class TagsNotSupported(EncodeError):
    """Unknown tagged fields on a struct, in a version whose structs have no section of tagged fields."""

    @property
    def detail(self) -> str:
        return "is not empty, but this version has no tagged fields"


class TagsUnsorted(EncodeError):
    """Unknown tags that do not ascend, or one that is there twice."""

    def __init__(self, message_name: str, version: int | None, path: str, tag: int, previous: int) -> None:
        super().__init__(message_name, version, path, tag, previous)
        self.tag = tag
        self.previous = previous

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)} after tag {number(self.previous)}, tags ascend without repeats"


class TagClash(EncodeError):
    """An unknown tag with the number of a field the struct defines."""

    def __init__(self, message_name: str, version: int | None, path: str, tag: int, field: str) -> None:
        super().__init__(message_name, version, path, tag, field)
        self.tag = tag
        self.field = field

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)}, which belongs to {self.field}"


# -- both ways -------------------------------------------------------------------------------------


class UnsupportedVersion(DecodeError, EncodeError):
    """A version that is not one of `versions`: refused before the first byte is read or written."""

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
        return f"has {self._known}"

    @property
    def _known(self) -> str:
        if not self.versions:
            return "no versions"
        lowest, highest = self.versions[0], self.versions[-1]
        return (
            f"version {number(lowest)} only"
            if lowest == highest
            else f"the versions {number(lowest)} to {number(highest)}"
        )

    def __str__(self) -> str:
        return f"{self.message_name} has no version {number(self.version)}, it has {self._known}"


# -- records, JSON, packages -----------------------------------------------------------------------


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
    """A JSON value that is not the message it was read as. `path` is in the names of the JSON, `reason` a
    sentence's end that starts with the path."""

    def __init__(self, message_name: str, version: int, path: str, reason: str) -> None:
        super().__init__(message_name, version, path, reason)
        self.message_name = message_name
        self.version = version
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.message_name} v{number(self.version)}: {self.path or 'the message'} {self.reason}"


class SchemaFormatError(KafkaRecordsError, ValueError):
    """A schema generated for another format of this runtime: regenerate the package, or install the runtime
    it wants."""

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
