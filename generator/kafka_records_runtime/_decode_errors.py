"""Errors about bytes that cannot be decoded as the expected message."""

from __future__ import annotations

from kafka_records_runtime._error_base import KafkaRecordsError, number, plural


class DecodeError(KafkaRecordsError, ValueError):
    """Bytes that cannot be decoded as the expected message.

    `path` names the place in Python names, outermost first (`members[2].client_host`); it is empty for the
    message as a whole, and a section of tagged fields is called `tagged_fields`. `offset` is where the
    wrong value starts, in bytes from the start of the message, which for a key or value of a record is after the int16
    that it starts with. `note` is what the specs add about this version of the
    message; it is empty if they add nothing.
    """

    note: str = ""

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
        return f"{place} {self.detail}{f'; {self.note}' if self.note else ''}"


class BufferUnderflow(DecodeError):
    """The input ends inside a value: `needed` bytes are needed, but only `left` are left."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, needed: int, left: int) -> None:
        super().__init__(message_name, version, path, offset, needed, left)
        self.needed = needed
        self.left = left

    @property
    def detail(self) -> str:
        return f"needs {plural(self.needed, 'byte')}, {number(self.left)} left"


class UnexpectedNull(DecodeError):
    """A null that the version does not allow."""

    @property
    def detail(self) -> str:
        return "is null, which this version does not allow"


class NegativeLength(DecodeError):
    """A length or count below zero, other than the one that means null.

    Compact lengths above 2147483647 count too: Kafka reads them as negative numbers.
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
    """A string that is not UTF-8. `offset` is that of the first bad byte, `fault` what Python's decoder
    says."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, fault: str) -> None:
        super().__init__(message_name, version, path, offset, fault)
        self.fault = fault

    @property
    def detail(self) -> str:
        return f"is not UTF-8: {self.fault}"


class InvalidVarint(DecodeError):
    """An unsigned varint of more than five bytes, or one with bits above the 32 it may have."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, fault: str) -> None:
        super().__init__(message_name, version, path, offset, fault)
        self.fault = fault

    @property
    def detail(self) -> str:
        return f"has {self.fault}"


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
    """A tag that must not occur: the field is not tagged in this version, or no writer can write this number."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, tag: int, fault: str) -> None:
        super().__init__(message_name, version, path, offset, tag, fault)
        self.tag = tag
        self.fault = fault

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)}, {self.fault}"


class DuplicateTag(DecodeError):
    """The same tag twice in one section."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, tag: int) -> None:
        super().__init__(message_name, version, path, offset, tag)
        self.tag = tag

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)} twice"


class TagOrder(DecodeError):
    """Tags of one section that are not in ascending order, so that encoding could not reproduce the same bytes."""

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
