"""Errors about bytes that cannot be decoded as the expected message."""

from __future__ import annotations

from kafka_records_runtime.errors._base import KafkaRecordsError, number, plural


class DecodeError(KafkaRecordsError, ValueError):
    """The bytes cannot be decoded as the expected message.

    `path` is the place of the error in Python names, outermost first (`members[2].client_host`). It is empty for the
    message as a whole. A section of tagged fields is called `tagged_fields`. `offset` is the byte where the wrong value
    starts, counted from the start of the message. (In a record's key or value, the message starts after the int16.)
    `note` is a remark from the specs about this version of the message, or empty.
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
        """The problem, as the end of a sentence that starts with the path."""
        return "cannot be decoded"

    def __str__(self) -> str:
        place = (
            f"{self.message_name} v{number(self.version)} at byte {number(self.offset)}: {self.path or 'the message'}"
        )
        return f"{place} {self.detail}{f'; {self.note}' if self.note else ''}"


class BufferUnderflow(DecodeError):
    """The input ends inside a value, which needs `needed` bytes but has only `left`."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, needed: int, left: int) -> None:
        super().__init__(message_name, version, path, offset, needed, left)
        self.needed = needed
        self.left = left

    @property
    def detail(self) -> str:
        are = "is" if self.left == 1 else "are"
        return f"needs {plural(self.needed, 'byte')}, but {number(self.left)} {are} left"


class UnexpectedNull(DecodeError):
    """A value is null, which the version does not allow."""

    @property
    def detail(self) -> str:
        return "is null, which this version does not allow"


class NegativeLength(DecodeError):
    """A length or count is negative but not the one that means null.

    This includes compact lengths above 2147483647, which Kafka reads as negative numbers.
    """

    def __init__(self, message_name: str, version: int, path: str, offset: int, length: int) -> None:
        super().__init__(message_name, version, path, offset, length)
        self.length = length

    @property
    def detail(self) -> str:
        return f"has the negative length {number(self.length)}"


class CountTooLarge(DecodeError):
    """The count of an array or tag section exceeds the number of elements that fit into the remaining bytes
    (`limit`)."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, count: int, limit: int) -> None:
        super().__init__(message_name, version, path, offset, count, limit)
        self.count = count
        self.limit = limit

    @property
    def detail(self) -> str:
        return f"claims {plural(self.count, 'element')}, but the remaining bytes hold at most {number(self.limit)}"


class StringTooLong(DecodeError):
    """A string has more than 32767 bytes, which Kafka rejects in every version, compact or not."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, length: int) -> None:
        super().__init__(message_name, version, path, offset, length)
        self.length = length

    @property
    def detail(self) -> str:
        return f"is a string of {number(self.length)} bytes, more than the limit of 32767"


class InvalidUtf8(DecodeError):
    """A string is not UTF-8. `offset` is that of the first bad byte; `fault` is the message of Python's decoder."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, fault: str) -> None:
        super().__init__(message_name, version, path, offset, fault)
        self.fault = fault

    @property
    def detail(self) -> str:
        return f"is not UTF-8: {self.fault}"


class InvalidVarint(DecodeError):
    """An unsigned varint has more than five bytes, or more than 32 bits."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, fault: str) -> None:
        super().__init__(message_name, version, path, offset, fault)
        self.fault = fault

    @property
    def detail(self) -> str:
        return f"has {self.fault}"


class InvalidMarker(DecodeError):
    """The first byte of a nullable struct is neither the marker for null nor the marker for a struct."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, marker: int, null: int) -> None:
        super().__init__(message_name, version, path, offset, marker, null)
        self.marker = marker
        self.null = null

    @property
    def detail(self) -> str:
        return f"starts with marker {number(self.marker)}, but a nullable struct has {number(self.null)} (null) or 1"


class InvalidTag(DecodeError):
    """A tag is not allowed, because its field is not tagged in this version, or because its number cannot be
    written."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, tag: int, fault: str) -> None:
        super().__init__(message_name, version, path, offset, tag, fault)
        self.tag = tag
        self.fault = fault

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)}, {self.fault}"


class DuplicateTag(DecodeError):
    """The same tag occurs twice in one section."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, tag: int) -> None:
        super().__init__(message_name, version, path, offset, tag)
        self.tag = tag

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)} twice"


class TagOrder(DecodeError):
    """The tags of one section are not in ascending order, so encoding could not reproduce the same bytes."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, tag: int, previous: int) -> None:
        super().__init__(message_name, version, path, offset, tag, previous)
        self.tag = tag
        self.previous = previous

    @property
    def detail(self) -> str:
        return f"has tag {number(self.tag)} after tag {number(self.previous)}, but tags must ascend"


class TagSizeMismatch(DecodeError):
    """The declared size of a known tag differs from the size of its value."""

    def __init__(
        self, message_name: str, version: int, path: str, offset: int, tag: int, declared: int, used: int
    ) -> None:
        super().__init__(message_name, version, path, offset, tag, declared, used)
        self.tag = tag
        self.declared = declared
        self.used = used

    @property
    def detail(self) -> str:
        return f"is tag {number(self.tag)} of {plural(self.declared, 'byte')}, but its value takes {number(self.used)}"


class TrailingBytes(DecodeError):
    """`count` bytes follow the end of the message."""

    def __init__(self, message_name: str, version: int, path: str, offset: int, count: int) -> None:
        super().__init__(message_name, version, path, offset, count)
        self.count = count

    @property
    def detail(self) -> str:
        return f"ends here, but is followed by {plural(self.count, 'byte')}"
