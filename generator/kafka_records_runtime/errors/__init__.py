"""All exceptions of kafka-records, each named after its diagnosis. Import them from here.

They form one tree, with `KafkaRecordsError` at the top and below it one family per activity (`DecodeError`,
`EncodeError`, `FramingError`, `JsonError`, ...). Constructor arguments become attributes of the same names and, in
order, `args`, so every error can be pickled. The text is built only when it is printed.
"""

from __future__ import annotations

from kafka_records_runtime.errors._base import KafkaRecordsError, number, plural
from kafka_records_runtime.errors._decode import (
    BufferUnderflow,
    CountTooLarge,
    DecodeError,
    DuplicateTag,
    InvalidMarker,
    InvalidTag,
    InvalidUtf8,
    InvalidVarint,
    NegativeLength,
    StringTooLong,
    TagOrder,
    TagSizeMismatch,
    TrailingBytes,
    UnexpectedNull,
)
from kafka_records_runtime.errors._encode import (
    EncodeError,
    FieldNotInVersion,
    InvalidText,
    NullNotAllowed,
    TagClash,
    TagsNotSupported,
    TagsUnsorted,
    TextTooLong,
    UnknownField,
    UnsupportedVersion,
    ValueOutOfRange,
    WrongLength,
    WrongType,
)
from kafka_records_runtime.errors._lookup import (
    FramingError,
    InvalidFrameNumber,
    JsonError,
    MissingRecordType,
    MissingValueVersion,
    NullKey,
    NullValue,
    SchemaFormatError,
    TruncatedFrame,
    UnexpectedKey,
    UnknownApi,
    UnknownApiKey,
    UnknownFrameVersion,
    UnknownMessage,
)

__all__ = [
    "BufferUnderflow",
    "CountTooLarge",
    "DecodeError",
    "DuplicateTag",
    "EncodeError",
    "FieldNotInVersion",
    "FramingError",
    "InvalidFrameNumber",
    "InvalidMarker",
    "InvalidTag",
    "InvalidText",
    "InvalidUtf8",
    "InvalidVarint",
    "JsonError",
    "KafkaRecordsError",
    "MissingRecordType",
    "MissingValueVersion",
    "NegativeLength",
    "NullKey",
    "NullNotAllowed",
    "NullValue",
    "SchemaFormatError",
    "StringTooLong",
    "TagClash",
    "TagOrder",
    "TagSizeMismatch",
    "TagsNotSupported",
    "TagsUnsorted",
    "TextTooLong",
    "TrailingBytes",
    "TruncatedFrame",
    "UnexpectedKey",
    "UnexpectedNull",
    "UnknownApi",
    "UnknownApiKey",
    "UnknownField",
    "UnknownFrameVersion",
    "UnknownMessage",
    "UnsupportedVersion",
    "ValueOutOfRange",
    "WrongLength",
    "WrongType",
    "number",
    "plural",
]

for _error in tuple(globals().values()):
    if isinstance(_error, type) and issubclass(_error, KafkaRecordsError):
        # Tracebacks and pickles should name the module from which users import.
        _error.__module__ = __name__
