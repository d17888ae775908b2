"""Names of the cases that Kafka accepts but the strict decoder rejects.

A lenient decoder accepts all of them as Kafka does. For each occurrence, it appends the name to the given list. Strict
and lenient decoders agree on every message that Kafka itself writes.
"""

from __future__ import annotations

from enum import StrEnum


class Leniency(StrEnum):
    """The cases in which the strict decoder is stricter than Kafka's generated classes."""

    INVALID_UTF8 = "invalid_utf8"
    """Malformed UTF-8 is read as U+FFFD, one for each malformed sequence as Java counts them."""

    NEGATIVE_LENGTH = "negative_length"
    """Any negative length or count is read as null. (A strict decoder accepts only -1.)"""

    VARINT_BITS = "varint_bits"
    """Bits above the 32 of an unsigned varint are dropped."""

    STRUCT_MARKER = "struct_marker"
    """A negative marker of a nullable struct means null, and any other marker means that a struct follows. Inside a
    tag, zero also means null."""

    TAG_SIZE = "tag_size"
    """The declared size of a known tag is ignored."""

    REPEATED_TAG = "repeated_tag"
    """A tag occurs twice. If it is known, the last value counts; if it is unknown, both are kept."""

    TAG_ORDER = "tag_order"
    """Tags are not in ascending order."""

    TAG_NUMBER = "tag_number"
    """An unknown tag has a number that cannot be written: 2147483647, or one that is read as negative."""

    TAG_COUNT = "tag_count"
    """A count of tags above 2147483647 is negative in Kafka, which then reads no tags and leaves the bytes after it
    unread."""

    TRAILING_BYTES = "trailing_bytes"
    """Bytes after the end of the message are ignored."""
